#!/usr/bin/env bash
# Tests the programs under tools/ that are written in Go. Porcupine judges what clients saw in two runs of ours: it has to say what our own judge says. And YCSB
# stores and reads records at a store of ours, with their bytes checked. Modules come through Go's own client, at the versions and sums in go.mod and go.sum. The
# program is that of the tests: building it alone would compile most of it again.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null; then
  if [ "${CI:-}" = true ]; then
    echo "test-go: CI has no Go; tools/setup-test.sh installs it" >&2
    exit 1
  fi
  echo "test-go: SKIPPED: no Go, so Porcupine and YCSB are neither tested nor asked (as root: apt-get install golang-go)"
  exit 0
fi

program=$PWD/target/debug/rackweave
[ -x "$program" ] || { echo "test-go: there is no $program; 'cargo test --workspace --no-run' builds it" >&2; exit 1; }
results=$(mktemp -d)
store=
trap '[ -z "$store" ] || kill "$store" 2>/dev/null || true; rm -rf "$results"' EXIT

for module in porcupine ycsb; do
  cd "tools/$module"
  unformatted=$(gofmt -l .)
  [ -z "$unformatted" ] || { echo "test-go: not formatted: $unformatted" >&2; exit 1; }
  go vet ./...
  go test ./...
  go build -o "$results/$module" .
  cd ../..
done

# Plays an experiment and has both judge its history: `judged NAME EXPECTED`, where 0 is linearizable and 1 is not.
judged() {
  "$program" run "tools/porcupine/histories/$1.toml" --history --out "$results/$1" >/dev/null 2>&1 ||
    { echo "test-go: rackweave did not play $1" >&2; exit 1; }
  local violations ours=0 theirs=0
  violations=$(sed -n 's/.*"history_violations": \([0-9]*\).*/\1/p' "$results/$1/seed-1/summary.json")
  [ "$violations" = 0 ] || ours=1
  "$results/porcupine" -timeout 10m "$results/$1/seed-1/history.jsonl" || theirs=$?
  if [ "$ours" != "$2" ] || [ "$theirs" != "$2" ]; then
    echo "test-go: the history of $1 should be judged $2 (0: linearizable, 1: not); ours says $ours ($violations keys), Porcupine $theirs" >&2
    exit 1
  fi
}

judged ours 0
judged paper 1

printf 'listen = "127.0.0.1:0"\ninsecure = true\npath = "%s"\nsize = "256 MiB"\n' "$results/store" >"$results/kv.toml"
: >"$results/kv.log"
"$program" kv --config "$results/kv.toml" >"$results/kv.log" 2>&1 &
store=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/^listening at .*, port \([0-9]*\)$/\1/p' "$results/kv.log")
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || { echo "test-go: the store does not start: $(cat "$results/kv.log")" >&2; exit 1; }
"$results/ycsb" -address "127.0.0.1:$port" -records 2000 -operations 3000
if "$results/ycsb" -address "127.0.0.1:$port" -datatype hash 2>"$results/hash.log" >/dev/null || ! grep -q "unknown command 'HSET'" "$results/hash.log"; then
  echo "test-go: YCSB should fail with hashes, which the store does not have: $(cat "$results/hash.log")" >&2
  exit 1
fi
