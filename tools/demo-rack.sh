#!/usr/bin/env bash
# A live rack on this machine: a disk with two replicas, of which one is killed, and a store for Redis clients. Half a minute; `demo-rack.sh OUT`.
set -euo pipefail
cd "$(dirname "$0")/.."

rackweave=$(realpath "${RACKWEAVE:-target/release/rackweave}")
place=${1:-out/demo-rack}

if ss -Hltu 2>/dev/null | grep -qE '127\.0\.0\.1:(7000|7001|7010|7011|7012|7020|4420|6379|9500|9501|951[012]|9520|9599)\b'; then
  echo "demo: no live rack, since its addresses are in use: see examples/replicated-disk"
  exit 0
fi

rm -rf "$place"
mkdir -p "$place"
cp examples/replicated-disk/*.toml "$place"
printf 'path = "store.flash"\nsize = "64MiB"\nzone = "4MiB"\nvalue = "256KiB"\nblocks = 256\nflush = false\nsocket = "jbof.sock"\n' >"$place/jbof.toml"
printf 'jbof_socket = "jbof.sock"\ninsecure = true\n' >"$place/kv.toml"
sed -i 's/^folder = .*/&\njournal = "journal"/' "$place/rack.toml"
printf '\n[[jbof]]\nname = "jbof"\nconfig = "jbof.toml"\n\n[[store]]\nname = "store"\nconfig = "kv.toml"\n' >>"$place/rack.toml"

rack() { "$rackweave" rack "$1" "$place/rack.toml" "${@:2}"; }
trap 'rack down >/dev/null 2>&1 || true' EXIT
disk() { "$rackweave" disk 127.0.0.1:4420 "$@"; }

echo "demo: a live rack"
rack up --wait 120
disk verify --overwrite --bytes 16MiB

echo "demo: server s0 is killed while a host reads and writes"
disk bench --load random-write --depth 8 --seconds 6 --overwrite &
host=$!
sleep 2
kill -KILL "$(head -n 1 "$place/rack/s0.pid")"
wait "$host"
rack up --wait 120 >/dev/null
disk verify --overwrite --bytes 16MiB --seed 2

if command -v redis-benchmark >/dev/null; then
  redis-benchmark --csv -h 127.0.0.1 -p 6379 -t set,get -n 5000 -d 100 | cut -d , -f 1,2,5,7
else
  echo "demo: redis-benchmark is not installed: nothing measures the store"
fi
# The page of the rack, as it is now: `make pages` opens it.
page=127.0.0.1:9599
"$rackweave" rack status "$place/rack.toml" --listen "$page" >/dev/null &
server=$!
trap 'kill "$server" 2>/dev/null || true; rack down >/dev/null 2>&1 || true' EXIT
python3 - "http://$page/" "$place/status.html" <<'END'
import pathlib, sys, time, urllib.error, urllib.request

for _ in range(300):
    try:
        pathlib.Path(sys.argv[2]).write_bytes(urllib.request.urlopen(sys.argv[1], timeout=60).read())
        break
    except (urllib.error.URLError, ConnectionError):
        time.sleep(0.1)
else:
    sys.exit("demo: nobody serves the page of the rack")
END
kill "$server"
rack status
rack down

echo "demo: the same roles again, from their journals: decisions compared, times simulated"
"$rackweave" twin "$place/rack.toml" --out "$place/twin"
