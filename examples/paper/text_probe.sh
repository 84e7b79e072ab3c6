#!/usr/bin/env bash
# T5-3B to T5-Large: a linear probe on the frozen encoder, five tasks of inference, B = 20, 50, 100.
TASKS=${TASKS:-snli mnli rte qnli scitail}
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
compare probe --task probe --alpha 1 --methods none,procrustes --batches "${BATCHES:-20,50,100}" "$@"
