#!/bin/bash
# Builds fenced with one fault after the other, each a patch of tests/mutants, and runs the check that the patch names:
# one that passes has not found its fault. usage: mutants.sh [NAME...]
# MUTANTS=N: only N of them, drawn by lot. BASELINE=no: do not see first whether the checks pass without a fault.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
BASE=$(pwd)/tests/mutants
BUILT=${CARGO_TARGET_DIR:-$(pwd)/target}
WORK=$BUILT/mutants
SOURCE=$WORK/source
LOG=$WORK/log
export CARGO_TARGET_DIR=$WORK/target

check_of() {
    sed -n '2s/^# found by: //p' "$BASE/$1.patch"
}

# What the dependencies came to is taken over from the usual build; their compilation does not depend on the directory.
mkdir -p "$CARGO_TARGET_DIR/debug"
for part in deps build .fingerprint; do
    if [ -d "$BUILT/debug/$part" ] && [ ! -d "$CARGO_TARGET_DIR/debug/$part" ]; then
        cp -al "$BUILT/debug/$part" "$CARGO_TARGET_DIR/debug/$part"
    fi
done

listed() {
    (cd "$1" && find Cargo.toml Cargo.lock README.md ARCHITECTURE.md src tests man completions -type f -print0 | sort -z)
}

# The source as it is here. Unchanged files keep their time, so that only what a patch touched is built again.
fresh_source() {
    local file
    mkdir -p "$SOURCE"/{src,tests,man,completions}
    while IFS= read -r -d '' file; do
        if ! cmp -s "$file" "$SOURCE/$file"; then
            mkdir -p "$SOURCE/$(dirname "$file")"
            cp "$file" "$SOURCE/$file"
        fi
    done < <(listed .)
    comm -z -13 <(listed .) <(listed "$SOURCE") | (cd "$SOURCE" && xargs -0r rm)
}

# cargo test with the words of a check, all of them but the test's name with "build".
test_with() {
    local words
    read -ra words <<<"$2"
    local test=${words[-1]}
    unset 'words[-1]'
    [[ $test = -* ]] && echo "no test is named in: $2" >&2 && exit 1
    cd "$SOURCE"
    if [ "$1" = build ]; then
        "$CARGO" test -q --locked "${words[@]}" --no-run
    else
        timeout 300 "$CARGO" test -q --locked "${words[@]}" "$test" -- --nocapture
    fi
}

if [ $# -gt 0 ]; then
    chosen=("$@")
else
    mapfile -t chosen < <(find "$BASE" -name '*.patch' -printf '%f\n' | sed 's/\.patch$//' | sort)
    if [ -n "${MUTANTS:-}" ]; then
        mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | shuf -n "$MUTANTS")
    fi
fi

fresh_source
if [ "${BASELINE:-yes}" = yes ]; then
    for name in "${chosen[@]}"; do check_of "$name"; done | sort -u | while read -r check; do
        if ! (test_with build "$check" && test_with run "$check") >"$LOG" 2>&1; then
            echo "without any fault this fails already: $check" >&2
            tail -n 40 "$LOG" >&2
            exit 1
        fi
    done
fi

survived=0
for name in "${chosen[@]}"; do
    check=$(check_of "$name")
    fresh_source
    began=$SECONDS
    if ! patch -s -d "$SOURCE" -p1 <"$BASE/$name.patch" >"$LOG" 2>&1; then
        outcome='DOES NOT APPLY'
    elif ! (test_with build "$check") >"$LOG" 2>&1; then
        outcome='DOES NOT BUILD'
    elif (test_with run "$check") >"$LOG" 2>&1; then
        outcome='SURVIVED'
    else
        outcome=found
    fi
    echo "$name: $outcome by ${check##* } ($((SECONDS - began)) s)"
    if [ "$outcome" != found ]; then
        survived=$((survived + 1))
        tail -n 20 "$LOG" >&2
    fi
done
fresh_source
echo "${#chosen[@]} faults, $((${#chosen[@]} - survived)) found"
[ "$survived" -eq 0 ]
