# The world around a guest: live racks, whose volume two doors show as one disk.

# free_ports COUNT: ports of loopback that nobody has for TCP or UDP, none of them twice in a run. Those
# from 32768 on the system hands out to whoever connects (ip(7)), also while their target is away.
free_ports() {
  python3 - "$1" "$run/ports" <<'END'
import pathlib, random, socket, sys

def is_free(port):
    try:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(type=kind) as one:
                one.bind(("127.0.0.1", port))
        return True
    except OSError:
        return False

last = pathlib.Path(sys.argv[2])
first = int(last.read_text()) + 1 if last.exists() else random.randrange(10_000, 30_000)
free = (port for port in range(first, 32_768) if is_free(port))
ports = [next(free) for _ in range(int(sys.argv[1]))]
last.write_text(str(ports[-1]))
print(*ports)
END
}

free_port() { free_ports 1; }

# door RACK NAME PORT: the target of a door.
door() {
  cat >"$run/$1/$2.toml" <<END
[[port]]
address = "127.0.0.1:$3"
advertised = "10.0.2.2:$3"

[[subsystem]]
nqn = "nqn.2026-11.io.rackweave:$1"

[[subsystem.namespace]]
backend = "volume"
rack = "rack.toml"
door = "$2"
volume = "disk"
block = "4KiB"
END
}

racks=()
meters=()

# start_rack NAME TCP-PORT TCP-PORT [FLASH] [COORDINATION]: three servers, two replicas, two doors.
start_rack() {
  local -a ports
  local file=$run/$1/rack.toml flash=${4:-} meter name place=2
  meter=$(free_port)
  mkdir "$run/$1"
  racks+=("$file")
  meters+=("$1 $meter")
  read -ra ports < <(free_ports 7)
  {
    printf '[switch]\nlisten = "127.0.0.1:%s"\nmetrics = "127.0.0.1:%s"\ncoordination = %s\n' "${ports[0]}" "$meter" "${5:-true}"
    printf '[control]\nlisten = "127.0.0.1:%s"\n' "${ports[1]}"
    for name in s0 s1 s2; do
      printf '[[storage]]\nname = "%s"\nlisten = "127.0.0.1:%s"\n%s\n' "$name" "${ports[place++]}" "${flash:+flash = $flash}"
    done
    printf '[[volume]]\nname = "disk"\nsize = "64MiB"\nreplicas = ["s0", "s1"]\n'
    for name in a b; do
      printf '[[door]]\nname = "%s"\nlisten = "127.0.0.1:%s"\nconfig = "%s.toml"\n' "$name" "${ports[place++]}" "$name"
    done
  } >"$file"
  door "$1" a "$2"
  door "$1" b "$3"
  "$rackweave" rack up --wait 120 "$file" >>"$run/rack.log" 2>&1 || { tail -n 20 "$run/rack.log" >&2; return 1; }
}

# answer_rack kill ROLE|up|report: kills a role of the first rack, starts again those that are dead, or prints what
# all switches have decided.
answer_rack() {
  case "$1" in
  kill) kill -KILL "$(head -n 1 "$(dirname "${racks[0]}")/rack/$2.pid")" ;;
  up) "$rackweave" rack up --wait 120 "${racks[0]}" >>"$run/rack.log" 2>&1 ;;
  report)
    local meter
    for meter in "${meters[@]}"; do
      echo "interop: the ${meter% *} switch: $(python3 -c "import urllib.request as r; print(r.urlopen('http://127.0.0.1:${meter#* }/metrics').read().decode())" |
        sed -nE 's/^rackweave_switch_(redirected|soft_accepted|soft_delayed|regular|background)_total /\1 /p' | tr '\n' ' ')"
    done
    ;;
  esac
}

stop_racks() {
  local file
  for file in "${racks[@]}"; do "$rackweave" rack down "$file" >>"$run/rack.log" 2>&1 || true; done
  racks=()
}
