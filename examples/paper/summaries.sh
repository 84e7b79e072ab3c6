#!/usr/bin/env bash
# Flan-T5 to T5 v1.1, summaries of CNN/DailyMail by ROUGE-L: 200, 500 and 800 examples to align, four strengths.
TASKS=${TASKS:-cnn_dailymail}
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for alpha in ${ALPHAS:-0.5 1 2 4}; do
  compare "summaries-$alpha" --task summarise --alpha "$alpha" --methods none,procrustes \
    --batch-size "${BATCH_SIZE:-100}" --batches "${BATCHES:-2,5,8}" "$@"
done
