# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
#
# What the scripts of this folder share. Each packs TREE, which is an installation of hlaunch below a
# prefix as `cmake --install` makes it, into one file below OUTDIR. The same tree makes the same bytes:
# all times are SOURCE_DATE_EPOCH, which is the commit's where it is not set.

set -euo pipefail
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
root=$(readlink -f "$root")

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() { say "$*"; exit 1; }

# need PROGRAM PACKAGE: fails if there is no such program.
need() { command -v "$1" > /dev/null || fail "needs $1, of Debian's package $2: apt-get install $2"; }

# The arguments of each: TREE OUTDIR, as absolute paths in `tree` and `out`.
read_arguments() {
  [[ $# == 2 && -x $1/bin/hlaunch ]] ||
    fail "usage: ${0##*/} TREE OUTDIR, where TREE/bin/hlaunch is the program"
  mkdir -p "$2"
  tree=$(readlink -f "$1") out=$(readlink -f "$2")
}

version=$(sed -n 's/^project(hlaunch VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
: "${SOURCE_DATE_EPOCH:=$(git -C "$root" log -1 --format=%ct 2> /dev/null ||
  stat -c %Y "$root/CMakeLists.txt")}"
export SOURCE_DATE_EPOCH LC_ALL=C

# The processor of a program: x86_64 or aarch64.
arch_of() {
  case $(od -An -j18 -N2 -tu2 "$1" | tr -d ' ') in
    62) echo x86_64 ;;
    183) echo aarch64 ;;
    *) fail "$1 is no program for x86_64 or aarch64" ;;
  esac
}

# Makes a copy of the tree's files at $1 that belongs to root and is SOURCE_DATE_EPOCH old.
copy_tree() {
  mkdir -p "$1"
  cp -a "$tree/." "$1"
  find "$1" -name __pycache__ -prune -exec rm -rf {} +
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# A folder for this script alone, gone with it.
make_work() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
}

# What a package does once its files are in place: the head's user, and what runs of the cluster's
# daemons is started anew, with the new program. Nothing else is started or stopped: no daemon that did
# not run, no job, and no service that holds a job's rendezvous.
after_install() {
  sed '/^#DEBHELPER#$/,$d' "$root/deploy/debian/hlaunch.postinst"
  cat << 'END'
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
  systemctl --system try-restart hlaunchd.service hlaunch-head.service || true
fi
END
}

# What a package does before its files go for good: daemons end, and jobs do not. Whether they start with
# the host stays as it is, for a package that comes back.
before_removal() {
  cat << 'END'
if [ -d /run/systemd/system ]; then
  systemctl --system stop hlaunchd.service hlaunch-head.service || true
fi
END
}

# Puts the settings of TREE into their place below /etc of the folder $1.
copy_settings() {
  install -D -m 644 "$tree/share/hlaunch/hlaunchd.conf" "$1/etc/hlaunch/hlaunchd.conf"
  find "$1/etc" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}
