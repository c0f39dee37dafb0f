#!/bin/bash
# What a run costs beside flock(1): whole processes, alternating in one loop, so that both see the same machine.
# usage: bench.sh FENCED [PAIRS]
set -euo pipefail

fenced=$(realpath "$1")
pairs=${2:-200}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
chmod 700 "$directory"
unset "${!FENCED_@}"

# took COMMAND...: its wall time in microseconds, in REPLY.
took() {
    local start=${EPOCHREALTIME/./}
    "$@"
    REPLY=$((${EPOCHREALTIME/./} - start))
}

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

for ((pair = 0; pair < pairs; pair++)); do
    took "$fenced" run --store "file://$directory" --lock bench -- true
    echo "$REPLY" >>"$directory/fenced.us"
    took flock "$directory/flock" true
    echo "$REPLY" >>"$directory/flock.us"
done

ours=$(median "$directory/fenced.us")
theirs=$(median "$directory/flock.us")
echo "uncontended run of true, median of $pairs pairs: fenced $ours µs, flock $theirs µs, ratio" \
    "$(awk "BEGIN { printf \"%.2f\", $ours / $theirs }")"
