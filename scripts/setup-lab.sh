#!/bin/sh
# Unpacks Debian's Redis, with the libraries that it needs beside Debian's base, for `make lab`. Installs none of it: the
# package would start a service. usage: setup-lab.sh DIR
set -eu

DIR=$1

as_root() {
    if [ "$(id -u)" -ne 0 ]; then
        echo 'the lab needs more than is installed here, please run:' >&2
        echo "    sudo $1" >&2
        exit 1
    fi
    sh -c "$1"
}

# The server's packages: redis-server is a link into redis-tools, whose libraries are named by its dependencies.
packages() {
    echo redis-server redis-tools
    apt-cache depends --important redis-tools | sed -n 's/^ *|*Depends: \(lib[^ ]*\)$/\1/p' | grep -vx libc6
}

download() {
    # shellcheck disable=SC2046  # one word a package
    (cd "$WORK" && apt-get -qq -o APT::Sandbox::User=root download $(packages))
}

# place: puts the program and its libraries into DIR/redis, whole or not at all.
place() {
    rm -rf "${DIR:?}/redis" "$DIR/redis.part"
    mkdir -p "$DIR/redis.part/lib"
    cp -L "$WORK/debian/usr/bin/redis-server" "$DIR/redis.part/redis-server"
    find "$WORK/debian" -name 'lib*.so.*' -exec cp -P {} "$DIR/redis.part/lib" \;
    LD_LIBRARY_PATH="$DIR/redis.part/lib" "$DIR/redis.part/redis-server" --version >/dev/null
    mv "$DIR/redis.part" "$DIR/redis"
}

if [ -x "$DIR/redis/redis-server" ]; then
    exit 0
fi
mkdir -p "$DIR"
WORK=$(mktemp -d "$DIR/work.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
if ! apt-cache show redis-server redis-tools >/dev/null 2>&1; then
    as_root 'apt-get update -qq'
fi
if ! download; then
    as_root 'apt-get update -qq'
    download
fi
for package in "$WORK"/*.deb; do
    dpkg -x "$package" "$WORK/debian"
done
place
