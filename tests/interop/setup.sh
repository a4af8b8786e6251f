#!/usr/bin/env bash
# Makes a small Linux host to boot in QEMU: Debian's kernel and its NVMe/TCP modules, busybox, nvme-cli, fio, mkfs.ext4.
#
# Everything lies under target/interop and is made again only when it is missing. Prints nothing when all is there.
# Exit code 3: this machine has no QEMU and cannot install it.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=target/interop
programs=(nvme fio mke2fs)
modules=(virtio_pci virtio_net nvme-tcp ext4 crc32c_generic crc32c-intel)
packages=(qemu-system-x86 busybox-static nvme-cli fio e2fsprogs)

have() { command -v "$1" >/dev/null; }

have_all() {
  have qemu-system-x86_64 && have busybox && [ -z "$(missing_programs)" ]
}

missing_programs() {
  local program
  for program in "${programs[@]}"; do have "$program" || echo "$program"; done
}

install_packages() {
  if [ "$(id -u)" != 0 ] || ! have apt-get; then
    echo "interop: needs qemu-system-x86_64, busybox (static), ${programs[*]}: install the packages ${packages[*]}" >&2
    exit 3
  fi
  echo "interop: installing ${packages[*]}"
  apt-get update --quiet --quiet || true
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "${packages[@]}" \
    >"$place/install.log" 2>&1 || { tail -5 "$place/install.log" >&2; exit 3; }
}

# The kernel is unpacked, not installed: the machine itself stays as it is.
fetch_kernel() {
  local package
  have apt-get || { echo "interop: no kernel in $place/kernel, and no apt-get to fetch one" >&2; exit 3; }
  apt-get update --quiet --quiet || true
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
  [ -n "$package" ] || { echo "interop: no package linux-image-amd64 is known here" >&2; exit 3; }
  echo "interop: fetching $package"
  rm -rf "$place/packages" "$place/kernel"
  mkdir -p "$place/packages"
  (cd "$place/packages" && apt-get download --quiet --quiet "$package" 2>/dev/null) || exit 3
  dpkg-deb --extract "$place"/packages/linux-image-*.deb "$place/kernel"
}

# Copies a module after those that it needs, and notes the order.
add_module() {
  local name=$1 file needed
  grep -qx "${name//-/_}" "$place/module-names" && return
  echo "${name//-/_}" >>"$place/module-names"
  file=$(find "$place/kernel/lib/modules" -name "${name//[-_]/[-_]}.ko" | head -n 1)
  [ -n "$file" ] || return 0 # It is built in.
  needed=$(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | head -n 1)
  for needed in ${needed//,/ }; do add_module "$needed"; done
  cp "$file" "$root/modules/"
  basename "$file" >>"$root/modules/order"
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

make_initramfs() {
  root=$place/root
  rm -rf "$root"
  mkdir -p "$root"/{bin,usr/bin,dev,proc,sys,run,tmp,mnt,etc/nvme,modules}
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cp tests/interop/init.sh "$root/init"
  cp tests/interop/steps.sh "$root/steps.sh"
  chmod +x "$root/init"
  : >"$place/module-names"
  : >"$root/modules/order"
  for module in "${modules[@]}"; do add_module "$module"; done
  for program in "${programs[@]}"; do add_program "$program"; done
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$place/initramfs.part"
  mv "$place/initramfs.part" "$place/initramfs"
}

mkdir -p "$place"
have_all || install_packages
compgen -G "$place/kernel/boot/vmlinuz-*" >/dev/null || fetch_kernel
for source in setup init steps; do
  [ "$place/initramfs" -nt "tests/interop/$source.sh" ] || { make_initramfs; break; }
done
