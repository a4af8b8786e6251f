#!/usr/bin/env bash
# Checks the gates: lint, proofs, then hosts, switch, scheduler and line against crates/edm. `run.sh small` takes
# less than two minutes of CPU once all is compiled; `run.sh all` proves all, plays ten million cycles of each file
# of tests, and compiles the larger scheduler too.
set -euo pipefail
cd "$(dirname "$0")"
steps=${1:-all}
case $steps in
  small) features=() ;;
  all) features=(--features large) && export RTL_CYCLES=${RTL_CYCLES:-10000000} ;;
  *)
    echo "rtl: STEPS is $steps: small or all" >&2
    exit 2
    ;;
esac

lint() {
  verilator --lint-only -Wall --assert "$@" --top-module "$top" edm/edm_pkg.sv $(ls edm/*.sv | grep -v edm_pkg) \
    harness/*.sv
}

# refuses PARAMETER: a parameter out of range must not pass.
refuses() {
  if lint "$@" >/dev/null 2>&1; then
    echo "rtl: $top takes $*, which is out of range" >&2
    exit 1
  fi
}

for top in edm_scheduler edm_multiplexer edm_demultiplexer edm_host edm_dual_host edm_switch edm_memory edm_mirror edm_system \
  edm_dual_system edm_switch_seen; do
  lint
done
top=edm_scheduler
lint -GPorts=20 -GActive=4 --unroll-count 4  # unrolled, it takes eight times as long
refuses -GPorts=1
refuses -GChunk=0
top=edm_multiplexer refuses "-GPolicy=2'd3"
top=edm_demultiplexer refuses -GFrameMax=9
top=edm_crossing refuses -GDepth=5
top=edm_state_table refuses -GNodes=1
top=edm_memory refuses -GBytes=63
top=edm_mirror refuses -GNodes=1
top=edm_mirror refuses -GLagW=32
top=edm_mirror refuses -GStallMax=128
top=edm_switch lint -GPorts=5 -GActive=1 -GChunk=64 "-GFcfs=1'b1"
top=edm_host
lint -GNodes=20 -GActive=4
refuses -GTimeout=0
echo "rtl: lint is clean, and parameters out of range are refused"

PATH=$PWD/../target/rtl/bin:$PATH formal/prove.py "$steps"

# The compiler lays out two hosts and a switch by the branches of a first run: more cycles a second.
if [ "$steps" = all ]; then
  RTL_PROFILE=write RTL_UNITS=system2 RTL_CYCLES=1000000 cargo test --locked --quiet --manifest-path harness/Cargo.toml \
    "${features[@]}" --test system two_nodes
  export RTL_PROFILE=read
fi
cargo test --locked --quiet --manifest-path harness/Cargo.toml "${features[@]}" -- --nocapture
