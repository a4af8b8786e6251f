#!/usr/bin/env bash
# Compiles the switch's data path in the kernel to target/xdp/switch.bpf.o, unless it is newer than its source.
# Installs clang for that, and ethtool, which `rackweave rack up --netns` needs with it. Nothing else needs them.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh

source=crates/express/bpf/switch.bpf.c
object=target/xdp/switch.bpf.o
packages=()
command -v clang >/dev/null || packages+=(clang)
command -v ethtool >/dev/null || packages+=(ethtool)
[ -e /usr/include/linux/bpf.h ] || packages+=(linux-libc-dev)

[ ${#packages[@]} = 0 ] || install_packages "for the switch's data path in the kernel" "${packages[@]}" || true

if ! command -v clang >/dev/null; then
  echo "setup-xdp: no clang, which compiles the switch's data path; as root: apt-get install clang" >&2
  exit 1
fi

if [ ! -e "$object" ] || [ "$source" -nt "$object" ]; then
  mkdir -p "$(dirname "$object")"
  # Debian has the headers of the machine in a folder of their own, which clang does not know for this target.
  clang -O2 -g -Wall -Wextra -Werror -target bpf -mcpu=v3 -I"/usr/include/$(uname -m)-linux-gnu" \
    -c "$source" -o "$object.new"
  mv "$object.new" "$object"
fi
