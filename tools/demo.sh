#!/usr/bin/env bash
# The demo behind ./run demo. Two small vision transformers of different width read MNIST's digits; the
# narrow one was also fine-tuned to read them through heavy noise. That skill is carried to the wide one,
# without training and without labels, and measured beside doing nothing, other rules and fine-tuning.
set -euo pipefail

usage() {
  echo "usage: tools/demo.sh BINARY [--from-scratch] [--out DIR]    (./run demo builds the binary first)" >&2
  exit 2
}
[[ $# -ge 1 && -x $1 ]] || usage
binary=$(realpath "$1")
shift
tools=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/demo
models=$tools/models
scratch=
out=demo-result
while [[ $# -gt 0 ]]; do
  case $1 in
    --from-scratch) scratch=yes ;;
    --out)
      [[ $# -ge 2 ]] || usage
      out=$2
      shift
      ;;
    *) usage ;;
  esac
  shift
done
if [[ -e $out && ! -e $out/.demo ]]; then
  echo "tools/demo.sh: $out is there already, and not from a demo; name another with --out" >&2
  exit 2
fi
rm -rf "$out"
out=$(realpath -m "$out")
mkdir -p "$out"
touch "$out/.demo"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

say() { printf '\n# %s\n' "$*"; }
show() {
  printf '$ theseus %s\n' "$*"
  "$binary" "$@"
}
# accuracy MODEL: percent of the noisy test digits that it reads.
accuracy() {
  "$binary" evaluate --model "$1" --data mnist:noisy --split test --quiet --json |
    python3 -c 'import json, sys; print("%.1f" % (100 * json.load(sys.stdin)["value"]))'
}

say "MNIST digits, as they are and under heavy noise."
cp -r "$tools/digits" clean
python3 -B "$tools/noisy.py" clean noisy
cp -r noisy "$out/noisy"  # to try other commands on

# How tools/demo/models were made, too.
train() {  # NAME WIDTH SEED
  python3 -B "$tools/initial.py" "initial-$1" --width "$2" --seed "$3"
  show finetune --model "initial-$1" --data mnist:clean --out "$1" --steps 2400 --lr 1e-3 --weight-decay 0.05 \
    --seed "$3" --validation none
}
frozen=(--freeze cls_token --freeze pos_embed --freeze 'patch_embed.*' --freeze 'head.*')
if [[ $scratch ]]; then
  say "Training the pair: some twenty minutes on two cores."
  train source 128 1
  train target 192 2
  show finetune --model source --data mnist:noisy --out tuned --steps 1200 --lr 5e-4 --weight-decay 0.05 \
    --seed 1 --validation none "${frozen[@]}"
  models=$directory
fi

say "The source, 128 wide, the source fine-tuned on noisy digits, and a target, 192 wide, that was trained" \
  "apart from it and never saw noise."
show inspect "$models/target"
source_before=$(accuracy "$models/source")
source_tuned=$(accuracy "$models/tuned")
before=$(accuracy "$models/target")

say "Carry what fine-tuning changed, with 320 noisy digits and no labels."
pair=(--source "$models/source" --tuned "$models/tuned" --target "$models/target")
data=(--examples mnist:noisy --batches 10 --method stream)
show transport "${pair[@]}" "${data[@]}" --out at-one
at_one=$(accuracy at-one)

say "How strong should it be? Ask 500 digits with labels."
show transport "${pair[@]}" "${data[@]}" --write update --out update --quiet
show sweep --target "$models/target" --update update --data mnist:noisy --split train --limit 500 --step 0.5 \
  --patience 4 --out "$out/strength.json"
alpha=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["best"]["alpha"])' "$out/strength.json")
show transport "${pair[@]}" "${data[@]}" --alpha "$alpha" --out "$out/model"
after=$(accuracy "$out/model")

say "Other rules, with the same digits and strengths."
show compare --source "$models/source" --target "$models/target" --setting noise "$models/tuned" mnist:noisy \
  --methods none,pad,random,pinv-tikhonov,linear,procrustes,stream --batches 10 --validation train \
  --test test --limit 500 --step 0.5 --to 4 --out "$out/comparison"

say "What fine-tuning the target itself gives, with 6000 labels."
show finetune --model "$models/target" --data mnist:noisy --out tuned-target --steps 200 --batch-size 64 \
  --lr 5e-4 --weight-decay 0.05 --validation none "${frozen[@]}"
ceiling=$(accuracy tuned-target)

show report "$out/model" "$out/strength.json" "$out/comparison" tuned-target -o "$out/report.html"

say "Accuracy on 1000 noisy digits, in percent"
row() { printf '%-44s %6s\n' "$@"; }
row "source" "$source_before"
row "source, fine-tuned on noise" "$source_tuned"
row "target, before" "$before"
row "target, transported at strength 1" "$at_one"
row "target, transported at strength $alpha" "$after"
row "target, fine-tuned on noise" "$ceiling"
recovered=$(python3 -c 'import sys
before, after, ceiling = map(float, sys.argv[1:])
print(round(100 * (after - before) / (ceiling - before)))' "$before" "$after" "$ceiling")
say "Without training the target went from $before to $after percent: $recovered percent of what fine-tuning" \
  "it would give. The model and report.html are in $out."
if ((recovered < 30)); then
  echo "tools/demo.sh: less than 30 percent arrived" >&2
  exit 1
fi
