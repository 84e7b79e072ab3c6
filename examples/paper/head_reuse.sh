#!/usr/bin/env bash
# T5-3B to T5-Large without a new head: the tuned source's, carried through the maps. T5 has no classification
# head of its own, so one is fitted on the tuned source first. Beside it the target without the update.
TASKS=${TASKS:-mnli qnli rte scitail snli}
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for batches in ${BATCHES:-20 50 100}; do
  for task in $TASKS; do
    place=$OUT/head/$batches/$task
    align "$task" "$place" --batches "$batches" --batch-size "${BATCH_SIZE:-32}"
    once "$place.json" "$THESEUS" sweep --target "$TARGET" --device "$DEVICE" --alignment "$place" \
      --tuned "$TUNED/$task" --head-from "$TUNED/$task" --data "$(data_of "$task")" \
      --split val --from 0 --to 1 --step 1 --json --quiet "$@"
  done
  echo "## reused heads, B = $batches: alpha 0 is the target alone"
  python3 "$PAPER/tables.py" strengths "$OUT/head/$batches"/*.json
done
