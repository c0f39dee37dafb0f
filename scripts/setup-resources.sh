#!/bin/bash
# What the snippets are tried on, as far as this machine lacks it: unpacked below DIR, with a command for each program in
# DIR/bin. Installs nothing: Debian's packages would start services. usage: setup-resources.sh DIR
set -euo pipefail

DIR=$(realpath -m "$1")

# lacks PROGRAM...: whether one of them is neither installed nor unpacked.
lacks() {
    local program
    for program; do
        PATH=$PATH:/usr/sbin:$DIR/bin command -v "$program" >/dev/null || return 0
    done
    return 1
}

postgres_package() {
    apt-cache depends postgresql | sed -n 's/^ *Depends: \(postgresql-[0-9]*\)$/\1/p'
}

update() {
    if [ "$(id -u)" -ne 0 ]; then
        echo 'the tests need more than is installed here, please run: sudo apt-get update' >&2
        exit 1
    fi
    apt-get update -qq
}

# closure PACKAGE...: these and the libraries that are missing, but for the just-in-time compiler, which is not used.
closure() {
    local named
    named=$(printf '%s\n' "$@")
    apt-get -s --no-install-recommends install "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
        grep -vE '^lib(llvm|z3)' | grep -E "^lib" || :
    echo "$named"
}

download() {
    (cd "$WORK/debs" && closure "$@" | sort -u | xargs apt-get -qq -o APT::Sandbox::User=root download)
}

from_debian() {
    local package program libraries
    apt-cache show "$1" >/dev/null 2>&1 || update
    mkdir "$WORK/debs"
    download "$@" || { update && download "$@"; }
    for package in "$WORK"/debs/*.deb; do
        dpkg -x "$package" "$WORK/root"
    done
    rm -r "$WORK/debs"
    libraries=$(cd "$WORK/root" && find . -name '*.so*' -printf '%h\n' | sort -u | sed "s|^\.|$DIR/root|" | paste -sd:)
    for program in "$WORK"/root/usr/{bin,sbin,lib/postgresql/*/bin}/*; do
        [ ! -x "$program" ] || command_for "${program#"$WORK/"}" "$libraries"
    done
}

# command_for PROGRAM LIBRARIES: a command that finds its libraries.
command_for() {
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH='\''%s'\''\nexec '\''%s'\'' "$@"\n' "$2" "$DIR/$1" >"$WORK/bin/${1##*/}"
    chmod 755 "$WORK/bin/${1##*/}"
}

from_pypi() {
    python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$WORK/root/python" "$1"
    printf '#!/bin/sh\nexport PYTHONPATH='\''%s'\''\nexec python3 -m awscli "$@"\n' "$DIR/root/python" >"$WORK/bin/aws"
    chmod 755 "$WORK/bin/aws"
}

packages=()
if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && lacks postgres initdb psql; then
    packages+=("$(postgres_package)" "$(postgres_package | sed 's/-/-client-/')")
fi
if lacks mariadbd mysql; then packages+=(mariadb-server-core mariadb-client-core); fi
if lacks redis-server redis-cli; then packages+=(redis-server redis-tools); fi
if lacks sqlite3; then packages+=(sqlite3); fi
if lacks curl; then packages+=(curl); fi
aws=$(if lacks aws; then echo awscli; fi)
[ "${#packages[@]}" -gt 0 ] || [ -n "$aws" ] || exit 0

# All or nothing, and all anew when something is missing.
mkdir -p "$DIR"
WORK=$(mktemp -d "$DIR.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/root" "$WORK/bin"
[ "${#packages[@]}" -eq 0 ] || from_debian "${packages[@]}"
[ -z "$aws" ] || from_pypi "$aws"
chmod 755 "$WORK"
rm -rf "$DIR"
mv "$WORK" "$DIR"
