#!/bin/sh
# The build needs protoc and the .proto files of protobuf itself: installs them, or says how.
set -eu

PACKAGES='protobuf-compiler libprotobuf-dev'
PROTOC=${PROTOC:-protoc}

usable() {
    probe=$(mktemp -d)
    printf 'syntax = "proto3";\nimport "google/protobuf/descriptor.proto";\n' >"$probe/probe.proto"
    if "$PROTOC" ${PROTOC_INCLUDE:+-I"$PROTOC_INCLUDE"} -I"$probe" -o/dev/null "$probe/probe.proto" >/dev/null 2>&1; then
        status=0
    else
        status=1
    fi
    rm -rf "$probe"
    return $status
}

if usable; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "fenced needs protoc and its includes to build: install protobuf (Debian: $PACKAGES)" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo 'fenced needs protoc and its includes to build, please run:' >&2
    echo "    sudo apt-get update && sudo apt-get install -y $PACKAGES" >&2
    exit 1
fi
apt-get update -qq
# shellcheck disable=SC2086  # two words on purpose
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $PACKAGES
if ! usable; then
    echo "protoc is installed but cannot import google/protobuf/descriptor.proto, see $PACKAGES" >&2
    exit 1
fi
