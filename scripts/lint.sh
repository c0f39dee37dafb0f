#!/bin/bash
# Formatting, lints and documentation, all warnings denied; the dependency tree where cargo-deny is installed.
set -euo pipefail

CARGO=${CARGO:-cargo}
step() {
    echo "+ $*" >&2
    "$@"
}

step "$CARGO" fmt --check
step "$CARGO" clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' step "$CARGO" doc --locked --no-deps --document-private-items
if command -v cargo-deny >/dev/null; then
    step "$CARGO" deny --locked check licenses bans sources
else
    echo 'cargo-deny is not installed: licenses, bans and sources of the dependencies were not checked' >&2
fi
if command -v shellcheck >/dev/null; then
    step shellcheck scripts/*.sh .ci/run
    # What a variable holds is expanded by the job's own shell.
    step shellcheck -s sh -e SC2016 src/snippets/*.sh
else
    echo 'shellcheck is not installed: the scripts were not checked' >&2
fi
