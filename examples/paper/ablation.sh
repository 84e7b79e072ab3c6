#!/usr/bin/env bash
# ViT-B/16 to ViT-B/16-plus: other ways to make maps, with what they do to the norm of the update.
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
compare ablation --methods pinv,pinv-tikhonov,linear,linear-ortho,pinv-ortho,procrustes \
  --batches "${BATCHES:-2,5,10}" "$@"
python3 "$PAPER/tables.py" norms "$OUT/ablation/compare.json"
