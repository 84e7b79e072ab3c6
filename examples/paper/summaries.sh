#!/usr/bin/env bash
# Flan-T5 to T5 v1.1, summaries of CNN/DailyMail by ROUGE-L, alpha 1, 800 examples to align.
TASKS=${TASKS:-cnn_dailymail}
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
compare summaries --task summarise --alpha 1 --methods none,procrustes --batches "${BATCHES:-25}" "$@"
