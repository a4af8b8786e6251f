# The world around the guest of a later suite: one target with two plain ports, each behind a relay that
# can be cut, and one that TLS secures. The guest makes the secrets and keys by its own nvme-cli.

host=nqn.2014-08.org.nvmexpress:uuid:5d2f1c1e-7a0b-4a53-9f0e-0242ac120002
name=nqn.2026-11.io.rackweave

# host_with NAME KEY...: what the host NAME proves itself by, each from the file that the guest has filled.
host_with() {
  local name_of_host=$1 key
  shift
  printf '\n[[host]]\nnqn = "%s:%s-host"\n' "$name" "$name_of_host"
  for key in "$@"; do printf '%s_file = "%s"\n' "$key" "$PWD/$run/$name_of_host.$key"; done
}

# subsystem NAME HOST PORTS: one disk in memory.
subsystem() {
  printf '\n[[subsystem]]\nnqn = "%s:%s"\nhosts = ["%s"]\nports = %s\nnamespace = [{ size = "16MiB" }]\n' "$name" "$@"
}

# What the guest has changed by what it asked for: one group and hash of DH-HMAC-CHAP alone, how the hosts
# with keys of TLS derive others from them, and whether there is a subsystem that comes and goes.
dhchap=
derivation=any
passing=

configuration() {
  cat <<END
state = "$PWD/$run/state"
log = "debug"

[[port]]
address = "127.0.0.1:$port"
advertised = "10.0.2.2:$first_port"

[[port]]
address = "127.0.0.1:$other_port"
advertised = "10.0.2.2:$second_port"

[[port]]
address = "127.0.0.1:$tls_port"
advertised = "10.0.2.2:$tls_port"
tls = "required"
END
  printf '%s\n' "$dhchap"
  host_with one-way dhchap_secret
  host_with both-ways dhchap_secret dhchap_controller_secret
  for secured in secured long-secured; do
    host_with "$secured" tls_key
    printf 'tls_derivation = "%s"\n' "$derivation"
  done
  host_with secured-and-proven tls_key dhchap_secret
  subsystem paths "$host" "[1, 2]"
  subsystem one-way "$name:one-way-host" "[1]"
  subsystem both-ways "$name:both-ways-host" "[1]"
  subsystem secured "$name:secured-host" "[3]"
  subsystem long-secured "$name:long-secured-host" "[3]"
  subsystem secured-and-proven "$name:secured-and-proven-host" "[3]"
  [ -z "$passing" ] || subsystem passing "$host" "[1]"
}

# The target takes what has changed, before a host connects.
reload() {
  local before left=600
  before=$(times_reloaded)
  configuration >"$run/target.toml"
  kill -HUP "$target_pid"
  while [ "$(times_reloaded)" = "$before" ]; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 0.1
  done
}

times_reloaded() { grep -c "the file was read anew" "$run/target.log" || true; }

# plain_target PORT FILE: a target as somebody types it who says nothing of names.
plain_target() {
  "$rackweave" target --listen "127.0.0.1:$1" --path "$run/$2" --size 16MiB >>"$run/$2.log" 2>&1 &
  started+=($!)
}

start_relay() {
  python3 tests/interop/relay.py "$1" "$2" >>"$run/relay.log" 2>&1 &
  started+=($!)
  relays[$1]=$!
}

# The first path ends with an error, the second in silence.
answer() {
  case "$1" in
  keep) (umask 077 && printf '%s\n' "$3" >"$run/$2") ;;
  serve) configuration >"$run/target.toml" && start_target ;;
  dhchap) dhchap=$(printf '\n[dhchap]\ngroups = ["%s"]\nhashes = ["%s"]' "$2" "$3") && reload ;;
  derivation) derivation=$2 && reload ;;
  passing) passing=${2:-} && reload ;;
  logged) grep -q "${*:2}" "$run/target.log" ;;
  cut-first) { kill -KILL "${relays[$first_port]}" && wait "${relays[$first_port]}"; } 2>/dev/null || true ;;
  mend-first) start_relay "$first_port" "$port" ;;
  cut-second) kill -STOP "${relays[$second_port]}" ;;
  rack) answer_rack "${@:2}" ;;
  mend-second) kill -CONT "${relays[$second_port]}" ;;
  esac
}

declare -A relays=()

prepare() {
  port=$(free_port)
  other_port=$(free_port)
  first_port=$(free_port)
  second_port=$(free_port)
  tls_port=$(free_port)
  one_port=$(free_port)
  another_port=$(free_port)
  door_port=$(free_port)
  other_door_port=$(free_port)
  words="one_port=$one_port another_port=$another_port first_port=$first_port second_port=$second_port tls_port=$tls_port door_port=$door_port other_door_port=$other_door_port"
  start_relay "$first_port" "$port"
  start_relay "$second_port" "$other_port"
  plain_target "$one_port" one.img
  plain_target "$another_port" another.img
  start_rack volume "$door_port" "$other_door_port"
}
