#!/usr/bin/env bash
# Seconds and memory of a transport against the target's width, and of the gradient method on the same examples.
# TARGETS are models of growing width, by default TARGET alone; their weights may be random. One task is enough.
# The gradient method (GradFix, gradient-mask) needs equal shapes. On a target of other shapes its mask goes on top
# of our maps, so that the difference of the two rows is what the gradients of this width take.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
files=()

# measure METHOD TARGET ARGUMENTS
measure() {
  local place=$OUT/cost/$1/${2##*/} target=$2
  shift 2
  files+=("$place.json")
  once "$place.json" python3 "$PAPER/measure.py" "$THESEUS" transport --source "$SOURCE" --target "$target" \
    --tuned "$TUNED/${TASKS%% *}" --examples "$(data_of "${TASKS%% *}")" --batches "${BATCHES:-1}" \
    --write update --out "$place" --fresh --json --quiet --device "$DEVICE" "$@"
}

labelled=(--labelled "$(data_of "${TASKS%% *}")")
for target in ${TARGETS:-$TARGET}; do
  measure procrustes "$target" "$@"
  if same_shapes "$SOURCE" "$target"; then
    measure gradient-mask "$target" --method gradient-mask --vote majority "${labelled[@]}" "$@"
  else
    measure procrustes:mask "$target" --mask normal --vote majority "${labelled[@]}" "$@"
  fi
done
python3 "$PAPER/tables.py" cost "${files[@]}"
