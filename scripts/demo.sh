#!/bin/sh
# Runs a job twice under the embedded store, in a directory of its own. usage: demo.sh FENCED
set -eu

fenced=$(realpath "$1")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
chmod 700 "$directory"

# Nothing of an outer run or of the user's settings has a say here.
for name in $(env | sed -n 's/^\(FENCED_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done

# shellcheck disable=SC2016  # expanded by the job's own shell
job='echo "    the job runs, holding $FENCED_LOCK with token $FENCED_TOKEN"'
for run in first second; do
    echo "$run run:"
    echo "    \$ fenced run --store file://$directory --lock demo -- sh -c '…'"
    "$fenced" run --store "file://$directory" --lock demo -- sh -c "$job; echo \$FENCED_TOKEN >>$directory/tokens"
done

tokens=$(tr '\n' ' ' <"$directory/tokens")
# shellcheck disable=SC2086  # one word a token
set -- $tokens
if [ "$#" -ne 2 ] || [ "$1" -ge "$2" ]; then
    echo "the tokens should be two and increase, but were: $tokens" >&2
    exit 1
fi
echo "The second token ($2) is greater than the first ($1): what the job writes to can refuse an older one."
