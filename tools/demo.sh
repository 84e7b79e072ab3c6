#!/usr/bin/env bash
# The demo behind ./run demo: a tiny model is written, looked at and run.
set -euo pipefail

if [[ $# -ne 1 || ! -x $1 ]]; then
  echo "usage: tools/demo.sh BINARY    (./run demo builds the binary first)" >&2
  exit 2
fi
binary=$(realpath "$1")
tools=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

say() { printf '\n# %s\n' "$*"; }
show() {
  printf '$ theseus %s\n' "$*"
  "$binary" "$@"
}

say "A Llama with random weights, as Hugging Face tools store it, and two prompts for it."
printf '$ make_tiny_model.py .\n'
python3 "$tools/make_tiny_model.py" .
ls -1 model/config.json model/model.safetensors inputs.safetensors

say "What is in there? Nothing is loaded but the headers."
show inspect model

say "Run it, and let it continue each prompt by eight tokens."
show forward model --inputs inputs.safetensors --out outputs.safetensors --generate 8

say "The outputs are a safetensors file, too. Any tool that knows the format can read it."
show inspect outputs.safetensors

say "That is all. The files were temporary and are gone."
