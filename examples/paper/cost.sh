#!/usr/bin/env bash
# Seconds and memory of a transport against the target's width. TARGETS are models of growing width, by default
# TARGET alone; their weights may be random. One task is enough. The gradient method, with which the paper
# compares, (gradient-mask) is left out here.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
files=()
for target in ${TARGETS:-$TARGET}; do
  name=$(basename "$target")
  files+=("$OUT/cost/$name.json")
  once "$OUT/cost/$name.json" python3 "$PAPER/measure.py" "$THESEUS" transport --source "$SOURCE" \
    --target "$target" --tuned "$TUNED/${TASKS%% *}" --calibration "$(data_of "${TASKS%% *}")" \
    --batches "${BATCHES:-1}" --write update --out "$OUT/cost/$name" --fresh --json --quiet \
    --device "$DEVICE" "$@"
done
python3 "$PAPER/tables.py" cost "${files[@]}"
