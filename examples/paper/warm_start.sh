#!/usr/bin/env bash
# Fine-tuning of the target from its base and from the carried update: loss and accuracy by step.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for task in $TASKS; do
  update=$OUT/warm/$task/update
  mkdir -p "$OUT/warm/$task"
  [[ -e $update ]] || "$THESEUS" transport --source "$SOURCE" --target "$TARGET" \
    --tuned "$TUNED/$task" --calibration "$(data_of "$task")" --batches "${BATCHES:-10}" \
    --write update --out "$update" --quiet --device "$DEVICE"
  for start in cold warm; do
    from=()
    [[ $start == cold ]] || from=(--start-from "$update")
    [[ -e $OUT/warm/$task/$start ]] || "$THESEUS" finetune --model "$TARGET" \
      --data "$(data_of "$task")" --out "$OUT/warm/$task/$start" --steps "${STEPS:-200}" \
      --device "$DEVICE" "${from[@]}" "$@"
  done
done
