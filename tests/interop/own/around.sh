# The world around the guest with this machine's own kernel: one target, and one as the guide starts it.

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

# The target as the guide starts it, with another port and place of the disk.
start_guide() {
  local -a line
  read -ra line < <(sed -n 's/^    //p' docs/guide/live-target.md | grep -m 1 'rackweave target')
  line=("${line[@]/4420/$guide_port}")
  line=("${line[@]/disk.img/$run/disk.img}")
  line[0]=$rackweave
  "${line[@]}" >>"$run/guide.log" 2>&1 &
  started+=($!)
}

# Slower than a drive, so that emulating the guest's processor does not hide what the flash takes.
slow_flash='{ size = "128MiB", pages_per_block = 64, read = "1ms", program = "3ms", erase = "60ms" }'

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
  rack) answer_rack "${@:2}" ;;
  esac
}

prepare() {
  words=
  [ "$steps" != delays ] || return 0
  port=$(free_port)
  guide_port=$(free_port)
  door_port=$(free_port)
  other_door_port=$(free_port)
  words="target_port=$port guide_port=$guide_port door_port=$door_port other_door_port=$other_door_port"
  configuration 64MiB >"$run/target.toml"
  start_target
  start_guide
  if [ "$steps" = latency ]; then
    start_rack coordinated "$door_port" "$(free_port)" "$slow_flash"
    start_rack uncoordinated "$other_door_port" "$(free_port)" "$slow_flash" false
  else
    start_rack volume "$door_port" "$other_door_port"
  fi
}
