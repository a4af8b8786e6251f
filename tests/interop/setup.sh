#!/usr/bin/env bash
# Makes a small Linux host to boot in QEMU: Debian's kernel and its NVMe/TCP modules, busybox, nvme-cli, fio, mkfs.ext4.
#
# Everything lies under target/interop and is made again only when it is missing. Prints nothing when all is there.
#
# Exit code 3: QEMU cannot be installed here, whoever tries: not a Debian of an amd64 machine, not root, or its archive has no such package. In CI, which is
# root on Debian, everything else that goes wrong (no network, a package that breaks) is a failure, exit code 1, and not a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."

export PATH=$PATH:/usr/sbin:/sbin
place=target/interop
programs=(nvme fio mke2fs)
# The last is left to whoever follows the guide.
modules=(virtio_pci virtio_net ext4 crc32c_generic crc32c-intel nvme-tcp)
packages=(qemu-system-x86 busybox-static nvme-cli fio e2fsprogs kmod xz-utils)

have() { command -v "$1" >/dev/null; }

have_all() {
  have qemu-system-x86_64 && have busybox && have modinfo && [ -z "$(missing_programs)" ]
}

missing_programs() {
  local program
  for program in "${programs[@]}"; do have "$program" || echo "$program"; done
}

# cannot WHY: nothing that anybody does here would help.
cannot() {
  echo "interop: $1" >&2
  exit 3
}

# failed WHY: it might have worked. Elsewhere than in CI that is a reason to skip.
failed() {
  echo "interop: $1" >&2
  if [ "${CI:-}" = true ]; then exit 1; fi
  exit 3
}

is_known() { [ -n "$(apt-cache policy "$1" | sed -n 's/^ *Candidate: \([^(].*\)/\1/p')" ]; }

# Lists of packages, once.
update_lists() {
  [ -z "${lists_are_new:-}" ] || return 0
  lists_are_new=yes
  apt-get update --quiet --quiet >"$place/update.log" 2>&1 || failed "apt-get update: $(tail -n 1 "$place/update.log")"
}

install_packages() {
  [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] && have apt-get || cannot "the guest is made from Debian's packages for amd64, and this is no such machine"
  [ "$(id -u)" = 0 ] || cannot "as root: apt-get install ${packages[*]}"
  update_lists
  local package
  for package in "${packages[@]}"; do is_known "$package" || cannot "this machine's archives have no package $package"; done
  echo "interop: installing ${packages[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "${packages[@]}" \
    >"$place/install.log" 2>&1 </dev/null || failed "apt-get install: $(tail -n 5 "$place/install.log")"
}

# The kernel is unpacked, not installed: the machine itself stays as it is.
fetch_kernel() {
  local package
  have apt-get || cannot "no kernel in $place/kernel, and no apt-get to fetch one"
  update_lists
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ { print $2; exit }')
  [ -n "$package" ] || cannot "this machine's archives have no package linux-image-amd64"
  echo "interop: fetching $package"
  rm -rf "$place/packages" "$place/kernel"
  mkdir -p "$place/packages"
  (cd "$place/packages" && apt-get download --quiet --quiet "$package" >../download.log 2>&1) ||
    failed "apt-get download $package: $(tail -n 1 "$place/download.log")"
  dpkg-deb --extract "$place"/packages/linux-image-*.deb "$place/kernel"
  rm -rf "$place/packages"
}

# Copies a module and those that it needs to where modprobe finds them.
add_module() {
  local name=${1//-/_} file needed
  grep -qx "$name" "$place/module-names" && return
  echo "$name" >>"$place/module-names"
  file=$(find "$place/kernel" -name "${name//_/[-_]}.ko*" | head -n 1)
  [ -n "$file" ] || return 0 # It is built in.
  needed=$(modinfo --field depends "$file")
  for needed in ${needed//,/ }; do add_module "$needed"; done
  unpacked "$file" >"$root/lib/modules/$version/$name.ko"
}

# Later Debians compress their modules, and busybox cannot load such ones.
unpacked() {
  case "$1" in
  *.xz) xz --decompress --stdout "$1" ;;
  *.zst) zstd --decompress --stdout "$1" ;;
  *) cat "$1" ;;
  esac
}

# A program with the libraries that it is linked with, under the paths where it looks for them.
add_program() {
  local file
  file=$(command -v "$1")
  cp "$file" "$root/usr/bin/$1"
  ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp --dereference --no-clobber "$library" "$root$library"
  done
}

# What the guide tells a newcomer to type on the Linux host, and how to undo it: a line a command.
write_guide() {
  local guide=docs/guide/live-target.md
  {
    sed -n '/^## From nothing/,/^## Without/s/^    //p' "$guide" | sed -n '/^modprobe/,$p'
    grep -o 'Undo it with .*' "$guide" | grep -o '`[^`]*`' | tr -d '`'
  } | sed 's/ADDRESS/10.0.2.2/; s/4420/$guide_port/' >"$root/guide"
  [ "$(wc -l <"$root/guide")" = 5 ] || { echo "interop: the guide's lines are not found in $guide" >&2; exit 1; }
}

make_initramfs() {
  root=$place/root
  version=$(basename "$(dirname "$(find "$place/kernel" -name modules.builtin)")")
  rm -rf "$root"
  mkdir -p "$root"/{bin,usr/bin,dev,proc,sys,run,tmp,mnt,etc/nvme} "$root/lib/modules/$version"
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cp tests/interop/init.sh "$root/init"
  cp tests/interop/steps.sh "$root/steps.sh"
  chmod +x "$root/init"
  : >"$place/module-names"
  for module in "${modules[@]}"; do add_module "$module"; done
  printf '%s\n' "${modules[@]}" >"$root/modules"
  depmod --basedir "$root" "$version" 2>"$place/depmod.log"
  for program in "${programs[@]}"; do add_program "$program"; done
  ln -s mke2fs "$root/usr/bin/mkfs.ext4"
  write_guide
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$place/initramfs.part"
  mv "$place/initramfs.part" "$place/initramfs"
}

mkdir -p "$place"
have_all || install_packages
compgen -G "$place/kernel/boot/vmlinuz-*" >/dev/null || fetch_kernel
for source in tests/interop/{setup,init,steps}.sh docs/guide/live-target.md; do
  [ "$place/initramfs" -nt "$source" ] || { make_initramfs; break; }
done
