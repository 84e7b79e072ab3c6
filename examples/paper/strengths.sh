#!/usr/bin/env bash
# How much the strength matters: the whole curve over alpha for every K. Where both models have the same shapes also the
# curve of GradFix (gradient-mask), from the same examples with their labels.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

# curve FILE TASK ARGUMENTS
curve() {
  local file=$1 task=$2
  shift 2
  once "$file" "$THESEUS" sweep --target "$TARGET" --device "$DEVICE" --data "$(data_of "$task")" \
    --split "${SPLIT:-test}" --from 0 --to "${MOST:-3}" --step "${STEP:-0.5}" --patience 1000 --json --quiet "$@"
}

equal=no
same_shapes "$SOURCE" "$TARGET" && equal=yes
for shots in ${SHOTS:-1 5 20}; do
  for task in $TASKS; do
    place=$OUT/strengths/$shots/$task
    align "$task" "$place" --shots "$shots"
    maps=(--alignment "$place" --tuned "$TUNED/$task")
    curve "$place-curve.json" "$task" "${maps[@]}" "$@"
    [[ $equal == yes ]] || continue
    [[ -e $place-masked ]] || "$THESEUS" transport --source "$SOURCE" --target "$TARGET" --quiet \
      --tuned "$TUNED/$task" --labelled "$(data_of "$task")" --shots "$shots" \
      --method gradient-mask --vote majority --write update --device "$DEVICE" --out "$place-masked"
    curve "$place-gradient-mask.json" "$task" --update "$place-masked" "$@"
  done
  echo "## alpha, K = $shots"
  python3 "$PAPER/tables.py" strengths "$OUT/strengths/$shots"/*-curve.json
  if [[ $equal == yes ]]; then
    echo "## alpha, gradient-mask, K = $shots"
    python3 "$PAPER/tables.py" strengths "$OUT/strengths/$shots"/*-gradient-mask.json
  fi
done
"$THESEUS" report "$OUT"/strengths/*/*.json -o "$OUT/strengths.html" --force
