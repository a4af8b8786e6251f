#!/usr/bin/env bash
# Boots a stock Debian kernel in QEMU and lets it use our target as a disk: `run.sh [all|small]`.
#
# Prints a line a step and "N passed, N failed, N skipped" at the end. Where QEMU cannot be installed it says so and skips.
# Software emulation on purpose: what is tested is right or wrong, not fast, and nested virtualisation hangs on some machines.
set -euo pipefail
cd "$(dirname "$0")/../.."

steps=${1:-all}
place=target/interop
rackweave=${RACKWEAVE:-target/release/rackweave}
case "$steps" in
all) seconds_max=${INTEROP_SECONDS:-420} ;;
small) seconds_max=${INTEROP_SECONDS:-240} ;;
*) echo "usage: $0 [all|small]" >&2; exit 2 ;;
esac

if tests/interop/setup.sh; then :; else
  code=$?
  [ "$code" = 3 ] || exit "$code"
  echo "interop: SKIPPED: QEMU and a guest for it cannot be installed here"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

run=$(mktemp -d "$place/run.XXXXXX")
log=$run/console.log
target_pid=
guide_pid=
guest_pid=

clean_up() {
  [ -z "$guest_pid" ] || kill "$guest_pid" 2>/dev/null || true
  [ -z "$target_pid" ] || kill "$target_pid" 2>/dev/null || true
  [ -z "$guide_pid" ] || kill "$guide_pid" 2>/dev/null || true
  wait 2>/dev/null || true
}
trap clean_up EXIT

# A host that has to prove itself by a secret.
guarded_configuration() {
  cat <<END

[[host]]
nqn = "nqn.2026-11.io.rackweave:guarded-host"
dhchap_secret = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"

[[subsystem]]
nqn = "nqn.2026-11.io.rackweave:guarded"
hosts = ["nqn.2026-11.io.rackweave:guarded-host"]
namespace = [{ size = "16MiB" }]
END
}

# configuration SIZE [SECOND-SIZE]
configuration() {
  cat <<END
state = "$PWD/$run/state"

[[port]]
address = "127.0.0.1:$port"

[[subsystem]]
nqn = "nqn.2026-11.io.rackweave:interop"
hosts = ["nqn.2014-08.org.nvmexpress:uuid:5d2f1c1e-7a0b-4a53-9f0e-0242ac120002"]

[[subsystem.namespace]]
id = 1
backend = "file"
path = "$PWD/$run/disk"
size = "$1"
END
  [ -z "${2:-}" ] || printf '\n[[subsystem.namespace]]\nid = 2\nbackend = "ram"\nsize = "%s"\n' "$2"
  guarded_configuration
}

# A port that nobody listens at. The kernel picks it; the target takes it right after.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_target() {
  "$rackweave" target --config "$run/target.toml" >>"$run/target.log" 2>&1 &
  target_pid=$!
}

# The target as the guide starts it, with another port and place of the disk.
start_guide() {
  local -a line
  read -ra line < <(sed -n 's/^    //p' docs/guide/live-target.md | grep -m 1 'rackweave target')
  line=("${line[@]/4420/$guide_port}")
  line=("${line[@]/disk.img/$run/disk.img}")
  line[0]=$rackweave
  "${line[@]}" >>"$run/guide.log" 2>&1 &
  guide_pid=$!
}

answer() {
  case "$1" in
  restart)
    kill -KILL "$target_pid"
    wait "$target_pid" 2>/dev/null || true
    start_target
    ;;
  grow) configuration 128MiB >"$run/target.toml" && kill -HUP "$target_pid" ;;
  add) configuration 128MiB 16MiB >"$run/target.toml" && kill -HUP "$target_pid" ;;
  remove) configuration 128MiB >"$run/target.toml" && kill -HUP "$target_pid" ;;
  esac
}

start_guest() {
  local kernel
  kernel=$(compgen -G "$place/kernel/boot/vmlinuz-*" | head -n 1)
  : >"$log"
  qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 768 -nographic -no-reboot -monitor none -serial stdio \
    -kernel "$kernel" -initrd "$place/initramfs" -append "console=ttyS0 quiet panic=-1 target_port=$port guide_port=$guide_port steps=$steps" \
    -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= </dev/null >"$log" 2>"$run/qemu.log" &
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
        *"ASK "*) answer "${line##*ASK }" ;;
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

port=$(free_port)
guide_port=$(free_port)
configuration 64MiB >"$run/target.toml"
start_target
start_guide
start_guest
ended=yes
follow_guest || ended=no
passed=$(grep -c 'STEP ok ' "$log" || true)
failed=$(grep -c 'STEP FAILED ' "$log" || true)
if [ "$ended" = no ]; then
  failed=$((failed + 1))
  tail -n 20 "$log" "$run"/{qemu,target,guide}.log
fi
if [ "$failed" = 0 ]; then rm -rf "$run"; else echo "interop: logs are in $run"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
