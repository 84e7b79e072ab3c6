#!/usr/bin/env bash
# The demo behind ./run demo: a fine-tune is carried to a wider model, through files, and its accuracy
# is measured before and after. Fails if the accuracy does not arrive.
set -euo pipefail

if [[ $# -ne 1 || ! -x $1 ]]; then
  echo "usage: tools/demo.sh BINARY    (./run demo builds the binary first)" >&2
  exit 2
fi
binary=$(realpath "$1")
tools=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/demo
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

say() { printf '\n# %s\n' "$*"; }
show() {
  printf '$ theseus %s\n' "$*"
  "$binary" "$@"
}
script() {
  printf '$ %s\n' "$*"
  python3 -B "$tools/$1" "${@:2}"
}
# read_digits MODEL: sets `percent`, how many of the test digits the model reads.
read_digits() {
  printf '$ theseus forward %s --inputs test.safetensors --out %s.safetensors\n' "$1" "$1"
  "$binary" forward "$1" --inputs test.safetensors --out "$1.safetensors" >/dev/null
  percent=$(python3 -B "$tools/accuracy.py" "$1.safetensors" labels.json)
  printf '%s reads %s %% of the noisy digits\n' "$1" "$percent"
}

say "Digits under heavy noise: 256 without labels, and 500 others to test on."
script digits.py .

say "The source is a small vision transformer that learned to read clean digits."
cp -r "$tools/model/base" "$tools/model/tuned" .
show inspect base
read_digits base
base=$percent

say "The same model, fine-tuned on noisy digits."
read_digits tuned
tuned=$percent

say "The target is twice as wide and reads like the source before fine-tuning. Its features, heads" \
  "and hidden units are shuffled, so that nothing can be copied."
script widen.py base wide
show inspect wide
read_digits wide
before=$percent

say "Carry what fine-tuning changed to the target, with the unlabelled digits and no training."
pair=(--source base --tuned tuned --target wide --calibration calibration.safetensors)
show plan "${pair[@]}"
show transport "${pair[@]}" --out carried
read_digits carried
after=$percent

say "Accuracy on noisy digits, in percent"
row() { printf '%-28s %6s\n' "$@"; }
row "source" "$base"
row "source, fine-tuned" "$tuned"
row "target, before" "$before"
row "target, after" "$after"

if [[ $after != "$tuned" ]]; then
  echo "tools/demo.sh: the target should read as many as the fine-tuned source" >&2
  exit 1
fi
say "That is all. The files were temporary and are gone."
