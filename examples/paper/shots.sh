#!/usr/bin/env bash
# K examples of each class instead of B batches: for ViT-B/16 to ViT-B/16-plus, and for the way back.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for shots in ${SHOTS:-1 2 5 10 20}; do
  compare "shots-$shots" --methods none,procrustes --shots "$shots" "$@"
done
