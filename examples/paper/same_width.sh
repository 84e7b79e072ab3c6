#!/usr/bin/env bash
# The same architecture (ViT-B/16) with another pre-training, DataComp-XL to LAION-2B: K examples of each
# class. gradient-mask (the paper's GradFix) and gradient-output also use their labels.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
for shots in ${SHOTS:-1 2 5 10 20}; do
  compare "shots-$shots" --shots "$shots" \
    --methods none,copy,permutation,gradient-mask:vote=majority,gradient-output,procrustes,procrustes:mask "$@"
done
