#!/usr/bin/env bash
# How alike the activations of both models are before and after the maps, on examples that made none of them.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
files=()
for task in $TASKS; do
  files+=("$OUT/cosine/$task.json")
  once "$OUT/cosine/$task.json" "$THESEUS" diagnose --source "$SOURCE" --target "$TARGET" \
    --tuned "$TUNED/$task" --examples "$(data_of "$task")" --batches "${BATCHES:-14}" --json \
    --device "$DEVICE" --quiet "$@"
done
python3 "$PAPER/tables.py" cosine "${files[@]}"
"$THESEUS" report "${files[@]}" -o "$OUT/cosine.html" --force
