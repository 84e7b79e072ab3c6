#!/usr/bin/env bash
# ViT-B/16-plus (LAION-400M) to ViT-B/16 (DataComp-XL): how many batches, and which tokens pair.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
compare batches --methods none,procrustes --batches "${BATCHES:-1,2,5,10,20}" "$@"
for tokens in mean linear grid; do
  compare "tokens-$tokens" --methods procrustes --tokens "$tokens" --batches "${TOKENS_BATCHES:-1,2,5}" "$@"
done
