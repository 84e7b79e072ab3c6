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
#
# Arguments are passed on to 'theseus compare', such as --device cuda or --limit 500.
set -euo pipefail
: "${THESEUS:=theseus}" "${SOURCE:?}" "${TARGET:?}" "${TUNED:?}" "${DATA:?}" "${OUT:?}" "${LAYOUT:=task}"
mkdir -p "$OUT"

# compare NAME ARGUMENTS: one table, OUT/NAME.
compare() {
  local name=$1 task settings=()
  shift
  for task in "${tasks[@]}"; do
    local data=$DATA/$task
    [[ $LAYOUT == found ]] || data=$task:$data
    settings+=(--setting "$task" "$TUNED/$task" "$data")
  done
  echo "## $name"
  "$THESEUS" compare --source "$SOURCE" --target "$TARGET" "${settings[@]}" --out "$OUT/$name" "$@"
}

read -ra tasks <<<"${TASKS:-cars dtd eurosat gtsrb mnist resisc45 sun397 svhn}"
