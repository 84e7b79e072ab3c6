#!/usr/bin/env bash
# How much the strength matters: the whole curve over alpha for every K, and the alpha that is chosen without
# labels. GradFix (gradient-mask) needs labels and is left out here.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for shots in ${SHOTS:-1 5 20}; do
  for task in $TASKS; do
    place=$OUT/strengths/$shots/$task
    align "$task" "$place" --shots "$shots"
    for way in curve label-free; do
      free=()
      [[ $way == curve ]] || free=(--label-free)
      once "$place-$way.json" "$THESEUS" sweep --target "$TARGET" --device "$DEVICE" --alignment "$place" \
        --tuned "$TUNED/$task" --data "$(data_of "$task")" --split "${SPLIT:-test}" --from 0 \
        --to "${MOST:-3}" --step "${STEP:-0.5}" --patience 1000 --json --quiet "${free[@]}" "$@"
    done
  done
  echo "## alpha, K = $shots"
  python3 "$PAPER/tables.py" strengths "$OUT/strengths/$shots"/*-curve.json
  echo "## alpha without labels, K = $shots"
  python3 "$PAPER/tables.py" strengths "$OUT/strengths/$shots"/*-label-free.json
done
"$THESEUS" report "$OUT"/strengths/*/*.json -o "$OUT/strengths.html" --force
