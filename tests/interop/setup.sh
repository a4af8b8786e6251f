#!/usr/bin/env bash
# Makes a small Linux host to boot in QEMU: `setup.sh own|new`.
#
# `own` has this machine's Debian kernel and nvme-cli. `new` has those of a later Debian suite
# (INTEROP_SUITE), with the kernel's DH-HMAC-CHAP and TLS, tlshd and keyctl. Its packages come from the
# mirror that this machine's apt is configured with, by lists and a cache of its own: the machine's
# sources stay as they are.
#
# Everything lies under target/interop and is made again only when it is missing. Prints nothing when
# all is there.
#
# Exit code 3: QEMU cannot be installed here, whoever tries: not a Debian of an amd64 machine, not root,
# or its archive has no such package. In CI, which is root on Debian, everything else that goes wrong
# (no network, a package that breaks) is a failure, exit code 1, and not a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."

export PATH=$PATH:/usr/sbin:/sbin
guest=${1:?usage: setup.sh own|new}
case "$guest" in
own)
  place=target/interop
  programs=(nvme fio mke2fs ip tc)
  # The last is left to whoever follows the guide.
  modules=(virtio_pci virtio_net ext4 crc32c_generic crc32c-intel veth bridge sch_netem nvme-tcp)
  ;;
new)
  suite=${INTEROP_SUITE:-trixie}
  place=target/interop/$suite
  programs=(nvme tlshd keyctl fio)
  # TLS: the records' cipher, and the module that a socket asks for by name.
  modules=(virtio_net crc32c_generic crc32c-intel aesni-intel gcm ccm tls nvme-tcp)
  ;;
*) echo "usage: $0 own|new" >&2; exit 2 ;;
esac
host_programs=(nvme fio mke2fs ip tc)
packages=(qemu-system-x86 busybox-static nvme-cli fio e2fsprogs iproute2 kmod xz-utils)
suite_packages=(nvme-cli ktls-utils keyutils fio)

have() { command -v "$1" >/dev/null; }

have_all() {
  have qemu-system-x86_64 && have busybox && have modinfo && [ -z "$(missing_programs)" ]
}

missing_programs() {
  local program
  for program in "${host_programs[@]}"; do have "$program" || echo "$program"; done
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
  case "$guest" in own) update_lists ;; new) update_suite "$suite" ;; esac
  package=$(depends_of linux-image-amd64 linux-image-)
  [ -n "$package" ] || cannot "${suite:-this machine}'s archives have no package linux-image-amd64"
  # Since Debian 14 the image and its modules are packages of their own.
  package="$package $(depends_of "$package" 'linux-(binary|modules)-')"
  echo "interop: fetching $package"
  rm -rf "$place/packages" "$place/kernel"
  mkdir -p "$place/packages"
  (cd "$place/packages" && suite_apt get download --quiet --quiet $package >../download.log 2>&1) ||
    failed "apt-get download $package: $(tail -n 1 "$place/download.log")"
  for package in "$place"/packages/*.deb; do dpkg-deb --extract "$package" "$place/kernel"; done
  rm -rf "$place/packages"
  if [ ! -d "$place/kernel/boot" ]; then
    mkdir "$place/kernel/boot"
    cp "$place"/kernel/usr/lib/modules/*/vmlinuz "$place/kernel/boot/vmlinuz-$(kernel_version)"
  fi
}

kernel_version() { basename "$(dirname "$(find "$place/kernel" -path '*/modules/*/kernel' -type d | head -n 1)")"; }

# depends_of PACKAGE PATTERN: packages that it depends on, of those whose names begin so.
depends_of() { suite_apt cache depends "$1" 2>/dev/null | awk -v of="^$2" '$1 == "Depends:" && $2 ~ of { print $2 }'; }

# suite_apt get|cache ARGUMENTS...: apt of the guest's suite.
suite_apt() {
  local -a options=()
  local command=apt-$1
  shift
  if [ "$guest" = new ]; then
    options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=-
      -o Dir::Etc::PreferencesParts=- -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status"
      -o "Dir::Cache=$apt/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root)
  fi
  "$command" "${options[@]}" "$@"
}

# The mirror that this machine gets Debian from.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Component: main' 'Created-By: Packages' |
    head -n 1
}

# update_suite SUITE: its own lists, as if nothing were installed.
update_suite() {
  [ -n "$(mirror)" ] || update_lists
  [ -n "$(mirror)" ] || cannot "apt knows no mirror of Debian's main archive here"
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  : >"$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $1 main" >"$apt/sources.list"
  suite_apt get update --quiet --quiet >"$place/update.log" 2>&1 ||
    failed "apt-get update of $1: $(tail -n 1 "$place/update.log")"
}

# The suite's programs with all that they depend on, unpacked and not installed.
fetch_programs() {
  local package
  update_suite "$suite"
  echo "interop: fetching ${suite_packages[*]} of $suite"
  suite_apt get install --quiet --quiet --yes --no-install-recommends --download-only "${suite_packages[@]}" \
    >"$place/install.log" 2>&1 || failed "packages of $suite: $(tail -n 1 "$place/install.log")"
  rm -rf "$place/unpacked" "$place/unpacked.part"
  mkdir -p "$place/unpacked.part"
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$place/unpacked.part"; done
  mv "$place/unpacked.part" "$place/unpacked"
  rm -rf "$apt"
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
  local file library
  file=$([ -z "$from" ] || PATH=$from/usr/sbin:$from/usr/bin; command -v "$1")
  cp "$file" "$root/usr/bin/$1"
  libraries_of "$file" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "${library#"$from"}")"
    cp --dereference --no-clobber "$library" "$root${library#"$from"}"
  done
}

# The suite's programs are asked by the suite's own loader.
libraries_of() {
  local -r loader=$from/usr/lib64/ld-linux-x86-64.so.2
  if [ -z "$from" ]; then
    ldd "$1"
  else
    # librados names its own folder by an absolute path, which would lead out of the suite.
    "$loader" --library-path "$from/usr/lib/x86_64-linux-gnu:$from/usr/lib/x86_64-linux-gnu/ceph" --list "$1"
    mkdir -p "$root/lib64" && cp --no-clobber "$loader" "$root/lib64/"
  fi
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
  version=$(kernel_version)
  rm -rf "$root"
  mkdir -p "$root"/{bin,usr/bin,dev,proc,sys,run,tmp,mnt,etc/nvme} "$root/lib/modules/$version"
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cp tests/interop/init.sh "$root/init"
  cp "tests/interop/$guest/steps.sh" "$root/steps.sh"
  cp tests/interop/common.sh "$root/common.sh"
  chmod +x "$root/init"
  : >"$place/module-names"
  for module in "${modules[@]}"; do add_module "$module"; done
  printf '%s\n' "${modules[@]}" >"$root/modules"
  depmod --basedir "$root" "$version" 2>"$place/depmod.log"
  for program in "${programs[@]}"; do add_program "$program"; done
  if [ "$guest" = own ]; then
    ln -s mke2fs "$root/usr/bin/mkfs.ext4"
    write_guide
  fi
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$place/initramfs.part"
  mv "$place/initramfs.part" "$place/initramfs"
}

mkdir -p "$place"
apt=$PWD/$place/apt
# Where the guest's programs come from: this machine, or what was unpacked.
from=
[ "$guest" = own ] || from=$PWD/$place/unpacked
have_all || install_packages
compgen -G "$place/kernel/boot/vmlinuz-*" >/dev/null || fetch_kernel
[ -z "$from" ] || [ -d "$from" ] || fetch_programs
for source in tests/interop/{setup,init,common,$guest/steps}.sh docs/guide/live-target.md; do
  [ "$place/initramfs" -nt "$source" ] || { make_initramfs; break; }
done
