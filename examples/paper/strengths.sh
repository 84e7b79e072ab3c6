#!/usr/bin/env bash
# How much the strength matters: alpha 1, 1.5 and 2 without choosing.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for alpha in 1 1.5 2; do
  compare "alpha-$alpha" --methods none,procrustes --alpha "$alpha" --batches "${BATCHES:-10}" "$@"
done
