#!/usr/bin/env bash
# ViT-B/16 (LAION-2B) to ViT-B/16-plus (LAION-400M), eight tasks, B random batches of 32 images: all
# methods at B = 1, ours for more.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
compare methods --methods none,pad,random,random-transported,pinv,pinv-tikhonov,linear-ortho,procrustes \
  --batches 1 "$@"
compare batches --methods procrustes --batches "${BATCHES:-1,2,5,10,20,50}" "$@"
