#!/usr/bin/env bash
# ViT-B/16-plus to ViT-B/16 (DataComp-XL): which tokens pair, and how many batches.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for match in grid linear mean; do
  compare "match-$match" --methods none,procrustes --match "$match" --batches 1 "$@"
done
compare batches --methods procrustes --batches "${BATCHES:-1,2,5,10,20}" "$@"
