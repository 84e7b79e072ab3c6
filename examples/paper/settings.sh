# shellcheck shell=bash
# What the scripts beside this one share. They are sourced with bash, and take from the environment
#
#   THESEUS   the program (theseus)
#   SOURCE    the old base model          TARGET   the new base model
#   TUNED     a directory with the tuned old model of every task: TUNED/cars, TUNED/dtd, ...
#   DATA      a directory with the data of every task as they are distributed: DATA/cars, ...
#   TASKS     which tasks (the script's own)
#   LAYOUT    "task" to read DATA/TASK as the layout of that name, "found" to recognise it
#   OUT       where the tables go; what is there is not computed again
#   DEVICE    cpu, cuda or cuda:N (cpu)
#
# and what a script itself names. Arguments are passed on to the command that measures, such as --limit 500.
set -euo pipefail
: "${THESEUS:=theseus}" "${SOURCE:?}" "${TARGET:?}" "${TUNED:?}" "${DATA:?}" "${OUT:?}" "${LAYOUT:=task}"
: "${DEVICE:=cpu}"
mkdir -p "$OUT"
PAPER=$(dirname "${BASH_SOURCE[0]}")
export PAPER
: "${TASKS:=cars dtd eurosat gtsrb mnist resisc45 sun397 svhn}"

# data_of TASK: what --data and --examples read.
data_of() {
  if [[ $LAYOUT == found ]]; then echo "$DATA/$1"; else echo "$1:$DATA/$1"; fi
}

# compare NAME ARGUMENTS: one table, OUT/NAME.
compare() {
  local name=$1 task settings=()
  shift
  for task in $TASKS; do
    settings+=(--setting "$task" "$TUNED/$task" "$(data_of "$task")")
  done
  echo "## $name"
  "$THESEUS" compare --source "$SOURCE" --target "$TARGET" "${settings[@]}" --out "$OUT/$name" \
    --device "$DEVICE" "$@"
}

# once FILE COMMAND...: its standard output in FILE, unless that is there.
once() {
  local file=$1
  shift
  if [[ ! -e $file ]]; then
    mkdir -p "$(dirname "$file")"
    "$@" >"$file.partial"
    mv "$file.partial" "$file"
  fi
}

# align TASK PLACE ARGUMENTS: maps from the task's own examples, unless they are there.
align() {
  local task=$1 place=$2
  shift 2
  mkdir -p "$(dirname "$place")"
  [[ -e $place ]] || "$THESEUS" align --source "$SOURCE" --target "$TARGET" --quiet \
    --device "$DEVICE" --examples "$(data_of "$task")" --out "$place" "$@"
}

# same_shapes OLD NEW: whether both have the same towers, so that an update can be taken as it is.
same_shapes() {
  local model towers=()
  for model in "$@"; do
    towers+=("$("$THESEUS" inspect "$model" --json | python3 "$PAPER/tables.py" towers /dev/stdin)")
  done
  [[ ${towers[0]} == "${towers[1]}" ]]
}
