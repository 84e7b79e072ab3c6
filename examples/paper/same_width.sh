#!/usr/bin/env bash
# The same architecture (ViT-B/16) with another pre-training, DataComp-XL to LAION-2B: K examples of each
# class. GradFix needs gradients and is not among the methods yet.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for shots in ${SHOTS:-1 2 5 10 20}; do
  compare "shots-$shots" --methods none,identity,permutation,procrustes --shots "$shots" "$@"
done
