#!/usr/bin/env bash
# Boots one Debian kernel in QEMU and lets it use our target: `guest.sh own|new all|small|tls|latency|delays`.
#
# Prints a line a step and "N passed, N failed" at the end. Where QEMU cannot be installed it says so and skips.
# Software emulation on purpose: what is tested is right or wrong, not fast, and nested virtualisation hangs on some machines.
set -euo pipefail
cd "$(dirname "$0")/../.."

guest=${1:-own}
steps=${2:-all}
rackweave=${RACKWEAVE:-target/release/rackweave}
# Linux 6.12 patches its code while it boots, and QEMU 7.2 with two processors may run half of a patch: it panicked.
case "$guest" in
own) place=target/interop memory=768 processors=2 ;;
new) place=target/interop/${INTEROP_SUITE:-trixie} memory=1024 processors=1 ;;
*) echo "usage: $0 own|new all|small|tls|latency|delays" >&2; exit 2 ;;
esac
case "$steps" in
all | latency) seconds_max=${INTEROP_SECONDS:-1800} ;;
small | tls | delays) seconds_max=${INTEROP_SECONDS:-900} ;;
*) echo "usage: $0 own|new all|small|tls|latency|delays" >&2; exit 2 ;;
esac

if tests/interop/setup.sh "$guest"; then :; else
  code=$?
  [ "$code" = 3 ] || exit "$code"
  echo "interop: SKIPPED: QEMU and a guest for it cannot be installed here"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

run=$(mktemp -d "$place/run.XXXXXX")
log=$run/console.log
target_pid=
guest_pid=
started=()

clean_up() {
  local pid
  for pid in $guest_pid $target_pid "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  stop_racks
  wait 2>/dev/null || true
}
trap clean_up EXIT

start_target() {
  "$rackweave" target --config "$run/target.toml" >>"$run/target.log" 2>&1 &
  target_pid=$!
}

. tests/interop/rack.sh
# What the guest finds around it: `prepare` starts it and sets the `words` of the kernel's command line,
# `answer` does what the guest asks for.
. "tests/interop/$guest/around.sh"

# A rack inside the guest needs our own program, with its libraries. Linux unpacks archives one after the other.
add_rackweave() {
  local root=$run/root library
  initramfs=$place/initramfs
  [ "$steps" = delays ] || return 0
  mkdir -p "$root/usr/bin"
  cp "$rackweave" "$root/usr/bin/rackweave"
  ldd "$rackweave" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp --dereference "$library" "$root$library"
  done
  initramfs=$run/initramfs
  { cat "$place/initramfs" && (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null); } >"$initramfs"
  rm -rf "$root"
}

start_guest() {
  local kernel
  kernel=$(compgen -G "$place/kernel/boot/vmlinuz-*" | head -n 1)
  add_rackweave
  : >"$log"
  mkfifo "$run/answers"
  exec 3<>"$run/answers"
  qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "$processors" -m "$memory" -nographic -no-reboot -monitor none -serial stdio \
    -kernel "$kernel" -initrd "$initramfs" -append "console=ttyS0 quiet panic=-1 steps=$steps $words" \
    -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= <"$run/answers" >"$log" 2>"$run/qemu.log" &
  guest_pid=$!
}

# Shows steps as they end, and does what the guest asks for.
follow_guest() {
  local line deadline=$((SECONDS + seconds_max)) shown=0 total
  while :; do
    total=$(wc -l <"$log")
    if [ "$total" -gt "$shown" ]; then
      while IFS= read -r line; do
        line=${line%$'\r'}
        case "$line" in
        *"STEP ok "* | *"STEP FAILED "*) echo "interop: ${line#*STEP }" ;;
        "    "*) echo "interop: $line" ;;
        *"ASK "*) if answer ${line##*ASK }; then echo done >&3; else echo failed >&3; fi ;;
        *"STEP end"*) return 0 ;;
        esac
      done < <(sed -n "$((shown + 1)),${total}p" "$log")
      shown=$total
    fi
    kill -0 "$guest_pid" 2>/dev/null || { [ "$(wc -l <"$log")" -gt "$shown" ] && continue; return 1; }
    [ "$SECONDS" -lt "$deadline" ] || { echo "interop: the guest was not done after $seconds_max s"; return 1; }
    sleep 0.3
  done
}

prepare
start_guest
ended=yes
follow_guest || ended=no
stop_racks
passed=$(grep -c 'STEP ok ' "$log" || true)
failed=$(grep -c 'STEP FAILED ' "$log" || true)
if [ "$ended" = no ]; then
  failed=$((failed + 1))
  tail -n 20 "$run"/*.log
  [ ! -d "$run/volume" ] || tail -n 10 "$run"/*/rack/*.log
fi
if [ "$failed" = 0 ]; then rm -rf "$run"; else echo "interop: logs are in $run"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
