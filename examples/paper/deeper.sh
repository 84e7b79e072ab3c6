#!/usr/bin/env bash
# ViT-B/16 to ViT-L/14 (both DataComp-XL): other width and depth, by the paper's stretched source and by
# matched blocks. The stretched source alone (the paper's 8.5 %) is never written, so it has no row.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for depth in stretch divided; do
  compare "depth-$depth" --methods none,procrustes --depth "$depth" --batches "${BATCHES:-10}" "$@"
done
