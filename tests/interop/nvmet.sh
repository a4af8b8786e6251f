#!/usr/bin/env bash
# Boots a Debian kernel in QEMU as an NVMe/TCP target (nvmet), and lets `rackweave disk` and `rackweave attack` use it.
#
#   nvmet.sh FOLDER   a folder with an unpacked linux-image package (boot/, lib/modules/); target/interop/kernel when not given
#
# The outcome of the attacks is compared with tests/interop/nvmet-verdicts.toml. With NVMET_REPORT=FILE the report goes
# there (JSON, or JUnit for a name in .xml), and with NVMET_HOLD=yes the guest stays until Enter is pressed.
# Prints a line a step and "N passed, N failed, N skipped". Exit code 1 when a step failed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin

kernel=${1:-target/interop/kernel}
rackweave=${RACKWEAVE:-target/release/rackweave}
table=tests/interop/nvmet-verdicts.toml
subsystem=nqn.2026-11.io.rackweave:nvmet
modules=(virtio_pci virtio_net crc32c_generic crc32c-intel crc32c-x86_64 nvmet nvmet-tcp brd)
seconds_boot=${NVMET_SECONDS:-240}
passed=0
failed=0
guest=

skip() {
  echo "nvmet: SKIPPED: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

for program in qemu-system-x86_64 busybox modinfo depmod; do
  command -v "$program" >/dev/null || skip "no $program here; tests/interop/setup.sh installs it"
done
image=$(compgen -G "$kernel/boot/vmlinuz-*" | head -n 1) || skip "no kernel in $kernel"
version=${image##*/vmlinuz-}
library=$(find "$kernel" -type d -path "*/modules/$version" | head -n 1)

mkdir -p target/interop
run=$(mktemp -d "$PWD/target/interop/nvmet.XXXXXX")
root=$run/root
clean_up() {
  [ -z "$guest" ] || kill "$guest" 2>/dev/null || true
  wait 2>/dev/null || true
  [ "$failed" != 0 ] || rm -rf "$run"
}
trap clean_up EXIT

# Copies a module and those that it needs. What is built in is no file.
add_module() {
  local name=${1//-/_} file needed
  ! grep -qx "$name" "$run/names" || return 0
  echo "$name" >>"$run/names"
  file=$(find "$library" -name "${name//_/[-_]}.ko*" | head -n 1)
  [ -n "$file" ] || return 0
  needed=$(modinfo --field depends "$file")
  for needed in ${needed//,/ }; do add_module "$needed"; done
  case "$file" in
  *.xz) xz --decompress --stdout "$file" ;;
  *.zst) zstd --decompress --stdout --quiet "$file" ;;
  *) cat "$file" ;;
  esac >"$root/lib/modules/$version/$name.ko"
}

# The guest's first process: one subsystem with a RAM disk, at a port of TCP.
write_init() {
  cat >"$root/init" <<END
#!/bin/sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in ${modules[*]}; do
  case \$module in brd) modprobe brd rd_nr=1 rd_size=65536 ;; *) modprobe \$module 2>/dev/null ;; esac
done
mount -t configfs none /sys/kernel/config
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
cd /sys/kernel/config/nvmet
mkdir subsystems/$subsystem ports/1
echo 1 >subsystems/$subsystem/attr_allow_any_host
mkdir subsystems/$subsystem/namespaces/1
echo -n /dev/ram0 >subsystems/$subsystem/namespaces/1/device_path
echo 1 >subsystems/$subsystem/namespaces/1/enable
echo ipv4 >ports/1/addr_adrfam
echo tcp >ports/1/addr_trtype
echo 0.0.0.0 >ports/1/addr_traddr
echo 4420 >ports/1/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/$subsystem ports/1/subsystems/$subsystem
dmesg | tail -n 4
echo "GUEST ready"
while :; do sleep 3600; done
END
  chmod +x "$root/init"
}

make_guest() {
  mkdir -p "$root"/{bin,dev,proc,sys} "$root/lib/modules/$version"
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  : >"$run/names"
  local module
  for module in "${modules[@]}"; do add_module "$module"; done
  depmod --basedir "$root" "$version" 2>"$run/depmod.log" || true
  write_init
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$run/initramfs"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_guest() {
  qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 512 -nographic -no-reboot -monitor none -serial stdio \
    -kernel "$image" -initrd "$run/initramfs" -append "console=ttyS0 panic=-1 ${NVMET_APPEND:-}" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$port-10.0.2.15:4420" -device virtio-net-pci,netdev=net,romfile= \
    </dev/null >"$run/console.log" 2>"$run/qemu.log" &
  guest=$!
}

await_guest() {
  local deadline=$((SECONDS + seconds_boot))
  until grep -q "GUEST ready" "$run/console.log"; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$guest" 2>/dev/null; then
      echo "nvmet: the guest did not come up in $seconds_boot s"
      tail -n 20 "$run/console.log" "$run/qemu.log"
      return 1
    fi
    sleep 0.5
  done
}

# step NAME COMMAND...
step() {
  local name=$1
  shift
  if "$@" >"$run/output" 2>&1; then
    echo "nvmet: ok $name"
    passed=$((passed + 1))
  else
    echo "nvmet: FAILED $name (exit code $?)"
    tail -n 40 "$run/output" | sed 's/^/    /'
    failed=$((failed + 1))
  fi
}

# Nothing that the attacks brought about may have hurt the kernel.
kernel_is_whole() { ! grep -E "BUG|Oops|WARNING:|general protection|refcount_t|Call Trace" "$run/console.log"; }

attacks() {
  local -a report=()
  [ -z "${NVMET_REPORT:-}" ] || report=(--report "$NVMET_REPORT")
  "$rackweave" attack "127.0.0.1:$port" --expect "$table" "${report[@]}"
}

make_guest
port=$(free_port)
start_guest
await_guest || failed=1
if [ "$failed" = 0 ]; then
  echo "nvmet: Linux $version at 127.0.0.1:$port"
  if [ "${NVMET_HOLD:-}" = yes ]; then read -r _; fi
  step "discovery and identify" "$rackweave" disk "127.0.0.1:$port" identify
  step "writes that are read back" "$rackweave" disk "127.0.0.1:$port" verify --overwrite --bytes 4MiB
  step "the same with digests" "$rackweave" disk "127.0.0.1:$port" --header-digest --data-digest verify --overwrite --bytes 1MiB
  step "attacks end as the table says" attacks
  step "the kernel's log has no fault" kernel_is_whole
  step "writes after the attacks" "$rackweave" disk "127.0.0.1:$port" verify --overwrite --bytes 1MiB
fi
[ "$failed" = 0 ] || echo "nvmet: logs are in $run"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
