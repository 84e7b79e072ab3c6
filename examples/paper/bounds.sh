#!/usr/bin/env bash
# The rows "fine-tune": the tuned old models, and the tuned new ones where TUNED_TARGET has them. SPLIT and
# arguments as of 'theseus evaluate'.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for side in "$TUNED" ${TUNED_TARGET:+"$TUNED_TARGET"}; do
  name=$([[ $side == "$TUNED" ]] && echo old || echo new)
  for task in $TASKS; do
    once "$OUT/bounds/$name/$task.json" "$THESEUS" evaluate "$side/$task" --data "$(data_of "$task")" \
      --split "${SPLIT:-test}" --json --quiet --device "$DEVICE" "$@"
  done
  echo "## tuned, $name model"
  python3 "$PAPER/tables.py" scores "$OUT/bounds/$name"/*.json
done
