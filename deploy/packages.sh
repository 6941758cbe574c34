# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
#
# The packages of Debian and Ubuntu hlaunch is built from and tested with, and how they are installed and the
# tree is built. Sourced by deploy/quickstart, tests/run and deploy/container/Containerfile.

build_packages=(build-essential cmake ninja-build pkg-config protobuf-compiler
  protobuf-compiler-grpc libgrpc++-dev libprotobuf-dev libabsl-dev libcli11-dev
  nlohmann-json3-dev libasio-dev libspdlog-dev libhwloc-dev libre2-dev libssl-dev zlib1g-dev libpmix-dev
  libboost-dev)
# What the programs need on a machine that does not build them.
run_packages=(libgrpc++1.51 libprotobuf32 libssl3 zlib1g python3)
test_packages=(python3 python3-venv libgtest-dev libgmock-dev libbenchmark-dev git util-linux procps
  iproute2 iptables clang-14 lld-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev python3-torch mpich libmpich-dev openmpi-bin libopenmpi-dev
  podman openssh-server openssh-client runc catatonit systemd systemd-container mmdebstrap python3-yaml strace ccache zsh groff-base busybox-static
  slurmctld slurmd slurm-client munge etcd-server etcd-client valgrind)
# For all that deploy/release makes.
release_packages=(python3 binutils xz-utils dpkg-dev rpm debhelper dh-python lintian)
# For a Kubernetes cluster of namespaces, which only `tests/run --full` makes.
kube_packages=(golang-go rsync dpkg-dev etcd-server containerd containernetworking-plugins
  kubernetes-client openssl)

# The oldest that will do: CMake for its presets (version 6), GCC for C++20, gRPC for what it takes
# over sockets. Debian 12 has just these.
least_cmake=3.25 least_gcc=12 least_grpc=1.51

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() { say "$*"; exit 1; }

# too_old WHAT FOUND LEAST: true, with a line about it, if FOUND is an older version than LEAST.
too_old() {
  [[ -n $2 && $(printf '%s\n' "$2" "$3" | sort -V | head -n 1) != "$3" ]] || return 1
  say "$1 is $2 here, and hlaunch needs $3 or newer"
}

# Fails with the way out where what builds hlaunch is too old; what is not there is not judged.
check_versions() {
  local old='' PATH=/usr/bin:/bin:$PATH
  too_old CMake "$(cmake --version 2> /dev/null | sed -n 's/^cmake version //p')" $least_cmake && old=yes
  too_old GCC "$(${CXX:-g++} -dumpfullversion 2> /dev/null)" $least_gcc && old=yes
  too_old gRPC "$(pkg-config --modversion grpc++ 2> /dev/null)" $least_grpc && old=yes
  [[ -z $old ]] || fail "Debian 12 and 13 and Ubuntu 24.04 have what it needs; Ubuntu 22.04 has not." \
    "Build it in a container of one of those: podman build -f deploy/container/Containerfile ."
}

# Installs those of the packages that are missing; says what to do where it may not.
install_packages() {
  command -v dpkg-query > /dev/null || fail "this script knows Debian's packages only; install" \
    "the like of: $*, with CMake $least_cmake, GCC $least_gcc, gRPC $least_grpc or newer; then: cmake --preset release && ninja -C build"
  local installed missing=() package root=()
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2> /dev/null |
    sed -n 's/^ii *//p') || true  # It fails if one of them is unknown.
  for package in "$@"; do
    grep -qx -- "$package" <<< "$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if [[ $(id -u) != 0 ]]; then
    command -v sudo > /dev/null || fail "these packages are missing and I am not root; run" \
      "as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  # What an earlier run left half done when it was stopped.
  [[ -z $(ls -A /var/lib/dpkg/updates 2> /dev/null) ]] ||
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || true
  "${apt[@]}" update || fail "apt-get update failed; its lines above say why. Mend that, $again"
  say_size "${apt[@]}" install --no-install-recommends "${missing[@]}"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get install failed; its lines above say why. Mend that, $again"
}
again="then run ${0##*/} again: it goes on where it stopped"

# say_size APT_COMMAND…: what it fetches and takes, in apt's words; fails where the disk has no room for that.
say_size() {
  local told needs free
  told=$(LC_ALL=C "$@" --assume-no 2> /dev/null | sed -n 's/^Need to get \(.*\) of archives\.$/\1 to fetch/p
    s/^After this operation, \(.*\) of additional disk space will be used\.$/\1 of disk/p') || true
  [[ $told ]] || return 0
  say "${told//$'\n'/, }"
  needs=$(sed -n 's/^\([0-9,]*\)[0-9.]* MB of disk$/\1/p' <<< "$told") free=$(free_megabytes /usr)
  needs=${needs//,/}
  ((${needs:-0} < free)) || fail "there is no room for that: $free MB are free at /usr. Make room, $again"
}

free_megabytes() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }

# Configures with the preset $1 (further words are cmake's) unless that was done since the presets
# changed. Debian's cmake and ninja come first: the packages above are made for them. Sanitizers run
# with the clang that they bring; the presets take any compiler.
configure() {
  local preset=$1 dir=build
  shift
  case $preset in
    asan | tsan)
      set -- -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 -DHLAUNCH_WERROR=ON \
        -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld "$@"
      ;;
  esac
  case $preset in release | test) ;; *) dir=build-$preset ;; esac
  local stamp="$dir/configured-$preset" wanted="$*"
  if [[ -f $stamp && $(< "$stamp") == "$wanted" && $stamp -nt CMakePresets.json ]]; then
    return 0  # ninja runs cmake again where a CMakeLists.txt changed.
  fi
  rm -f "$dir"/configured-*
  PATH=/usr/bin:/bin:$PATH cmake --preset "$preset" "$@" || return 1
  printf '%s' "$wanted" > "$stamp"
}

# Prints the first of $PYTHON_EXEC, PATH's python3 and Debian's python3 that has torch.
python_with_torch() {
  local python
  for python in "${PYTHON_EXEC:-}" "$(command -v python3)" /usr/bin/python3; do
    if [[ -n $python ]] && "$python" -c '
import importlib.util, sys
sys.exit(importlib.util.find_spec("torch") is None)' > /dev/null 2>&1; then
      printf '%s\n' "$python"
      return 0
    fi
  done
  return 1
}
