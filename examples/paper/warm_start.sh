#!/usr/bin/env bash
# Fine-tuning of the target from its base and from the carried update: loss and accuracy by step.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
runs=()
for task in $TASKS; do
  place=$OUT/warm/$task
  mkdir -p "$place"
  [[ -e $place/update ]] || "$THESEUS" transport --source "$SOURCE" --target "$TARGET" \
    --tuned "$TUNED/$task" --examples "$(data_of "$task")" --batches "${BATCHES:-10}" \
    --write update --out "$place/update" --quiet --device "$DEVICE"
  for start in cold warm; do
    from=()
    [[ $start == cold ]] || from=(--start-from "$place/update")
    [[ -e $place/$start ]] || "$THESEUS" finetune --model "$TARGET" --data "$(data_of "$task")" \
      --out "$place/$start" --steps "${STEPS:-200}" --device "$DEVICE" --quiet "${from[@]}" "$@"
    runs+=("$place/$start")
  done
  echo "## $task"
  python3 "$PAPER/tables.py" training "$place"/{cold,warm}/theseus.json
done
"$THESEUS" report "${runs[@]}" -o "$OUT/warm_start.html" --force
