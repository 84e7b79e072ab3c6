#!/usr/bin/env bash
# T5-3B to T5-Large: a new linear probe on frozen encoders, five tasks of inference. Maps and probe see the
# same B batches of 32, for the old base, the new one, and the new one with the update. The labels of GLUE's
# test splits are kept back, so scores are of the validation splits.
TASKS=${TASKS:-mnli qnli rte scitail snli}
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for batches in ${BATCHES:-20 50 100}; do
  budget=$((batches * ${BATCH_SIZE:-32}))
  compare "probe-$batches" --task probe --alpha 1 --methods none,procrustes --batches "$batches" \
    --batch-size "${BATCH_SIZE:-32}" --training-limit "$budget" --test val "$@"
  for task in $TASKS; do
    once "$OUT/probe-$batches/old-$task.json" "$THESEUS" evaluate "$SOURCE" --task probe --split val \
      --data "$(data_of "$task")" --training-limit "$budget" --json --quiet \
      --device "$DEVICE" "$@"
  done
  echo "## the old base, B = $batches"
  python3 "$PAPER/tables.py" scores "$OUT/probe-$batches"/old-*.json
done
