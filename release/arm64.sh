#!/usr/bin/env bash
# Runs a command in a Debian for 64-bit Arm, under qemu-user: release/arm64.sh FOLDER COMMAND...
#
# The first time it makes FOLDER/root of Debian's packages, with a clone of this checkout in
# FOLDER/root/te-select, where the command runs. FOLDER is there as /given. Run it as root. Nothing of
# the system is changed: the emulator is registered in a user namespace of its own (Linux 6.7).
set -euo pipefail

SUITE=bookworm # its Python is the one that a wheel for the root must be made with
PACKAGES=bash,ca-certificates,coreutils,dash,findutils,g++,gcc,git,grep,gzip,libc6-dev,make
PACKAGES+=,libc-bin,python3,python3-dev,python3-venv,sed,tar
CORE=neoverse-n1

enter() { # ROOT FOLDER QEMU COMMAND..., as the first process of the namespace
  local root="$1" folder="$2" qemu="$3"
  shift 3
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  local head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  # F opens the emulator now, so that the root need not have it.
  printf '%s' ":arm64:M::$head:$mask:$qemu:FPC" > /proc/sys/fs/binfmt_misc/register
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
  mount --bind "$root/cpuinfo" "$root/proc/cpuinfo" # qemu before 8.2 shows the host's
  mount --bind "$folder" "$root/given"
  mount --rbind /etc/ssl "$root/etc/ssl"
  mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
  # Without its cache, Python asks the C compiler for each library.
  [[ -e "$root/etc/ld.so.cache" ]] || chroot "$root" /sbin/ldconfig
  local kept
  mapfile -t kept < <(env | grep -E '^(PIP_|SSL_CERT_)')
  exec env -i "${kept[@]}" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin QEMU_CPU="$CORE" \
    chroot "$root" /bin/bash -c 'cd /te-select && exec "$@"' bash "$@"
}

make_root() { # ROOT
  mmdebstrap --variant=extract --arch=arm64 --include="$PACKAGES" "$SUITE" "$1.new"
  # No package is set up, so what that would have done is done here.
  ln -s gcc "$1.new/usr/bin/cc"
  ln -s g++ "$1.new/usr/bin/c++"
  touch "$1.new/etc/resolv.conf"
  mkdir "$1.new/given"
  for cpu in $(seq 0 $(($(nproc) - 1))); do
    printf '%s\n' "processor	: $cpu" \
      'Features	: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc asimddp' \
      'CPU implementer	: 0x41' 'CPU architecture: 8' 'CPU part	: 0xd0c' ''
  done > "$1.new/cpuinfo"
  git clone --quiet . "$1.new/te-select"
  mv "$1.new" "$1"
}

if (($# < 2)); then
  echo "usage: $0 FOLDER COMMAND..." >&2
  exit 2
fi
if [[ "$1" == --enter ]]; then
  shift
  enter "$@"
fi
for program in qemu-aarch64-static mmdebstrap unshare; do
  command -v "$program" > /dev/null && continue
  echo "$program is not found; on Debian: apt install qemu-user-static mmdebstrap util-linux" >&2
  exit 1
done
if [[ "$EUID" != 0 ]]; then
  echo "$0 makes a root of packages, so it is run as root" >&2
  exit 1
fi
own="$(realpath "$0")"
mkdir -p "$1"
folder="$(realpath "$1")"
shift
cd "$(dirname "$own")/.."
rm -rf "$folder/root.new"
[[ -d "$folder/root" ]] || make_root "$folder/root"
git -C "$folder/root/te-select" pull --quiet --ff-only "$PWD" HEAD
exec unshare --user --map-root-user --mount --pid --fork --kill-child \
  "$own" --enter "$folder/root" "$folder" "$(command -v qemu-aarch64-static)" "$@"
