# The commands of the project. `make` alone lists them.

# Versions are those of Cargo.lock.
CARGO ?= cargo --locked
SCALE ?= quick
OUT ?= out
SECONDS_EACH ?= 600
# How much `make compare-redis` measures, such as `--requests 20000 --rounds 1`.
MEASURED ?=
# How many values `make restart-store` stores, and how often it overwrites them.
VALUES ?= --overwrites 3
STEPS ?= all
# How many random cases each property of `make rack-schedules` has.
CASES ?= 3000
# What `make demo` plays. CI leaves out the sweeps of minutes.
FIGURES ?= edm blox/fig9 blox/fig13 blox/fig22
PROFILE ?= release
# TLS of the live target needs OpenSSL's headers: without them everything else is built and tested.
# Evaluated where it is used, since `make test` installs them where it can.
TLS = $(shell pkg-config --exists openssl 2>/dev/null || echo --no-default-features)

# In CI a page test without a browser is a failure, not a skip. What runs the program there takes the
# one that the tests have built: a second build with other optimisations takes longer than that saves.
ifeq ($(CI),true)
export RACKWEAVE_REQUIRE_CHROMIUM := 1
export RACKWEAVE ?= target/debug/rackweave
BUILD = test --workspace --no-run
# The build of the tests lints, code and documents: `cargo clippy` and `cargo doc` would check all dependencies anew.
LINTS = env RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/lint.sh CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings
LINT = $(LINTS) $(CARGO) test --workspace --all-targets --no-run $(TLS)
else
export RACKWEAVE ?= target/release/rackweave
BUILD = build --release --package cli
LINT = $(CARGO) clippy --workspace --all-targets $(TLS) -- -D warnings
BESIDE = tools/beside.sh 'RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(TLS)'
endif

.DEFAULT_GOAL := help
.PHONY: help build container book pages demo paper python python-cluster test tidy bench dependencies fit-coverage fuzz guides interop least-rust models compare-redis restart-store rack-schedules rack-soak rack-latency measure-twin soak clean rust openssl without-tls rtl xdp

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

build: rust ## the program: target/release/rackweave (with CI=true, that of the tests)
	$(LINTS) $(CARGO) $(BUILD) $(TLS)

demo: build ## reproduce EDM and RackBlox's headline at quick scale: a table, and one offline page in out/demo; then a live rack
	$(RACKWEAVE) reproduce $(FIGURES) --scale $(SCALE) --out $(OUT)/demo --force
	@echo "The figures: $(abspath $(OUT)/demo/index.html)"
	tools/demo-rack.sh $(OUT)/demo-rack

paper: build ## all of EDM and RackBlox at the papers' sizes, in out/paper (many hours)
	$(RACKWEAVE) reproduce edm blox --scale paper --out $(OUT)/paper --force
	@echo "The figures: $(abspath $(OUT)/paper/index.html)"

test: openssl rust ## every check and every test
	tools/setup-test.sh
	$(CARGO) fmt --all --check
	$(LINTS) $(CARGO) xtask tidy
	$(LINT)
	$(LINTS) $(CARGO) test --workspace --no-run $(TLS)
	@touch target/tests-are-built
	$(BESIDE) $(LINTS) $(CARGO) test --workspace $(TLS)
	tools/test-go.sh
	TLS="$(TLS)" WITH_TESTS=1 $(LINTS) tools/test-python.sh

python: rust ## the wheel of the Python package, in target/wheels, and its tests
	tools/setup-test.sh
	TLS="$(TLS)" tools/test-python.sh

python-cluster: rust ## the same, and sweeps on a Ray cluster of two nodes and into an object store
	tools/setup-test.sh
	TLS="$(TLS)" CLUSTER=1 tools/test-python.sh

without-tls: rust ## the live target and its commands, built and tested as without OpenSSL
	$(LINTS) $(CARGO) test --workspace --no-default-features --test cli -- serving:: documents::
	$(LINTS) $(CARGO) test --workspace --no-default-features --test security --test sessions

dependencies: rust ## licences, sources and use of all dependencies, by cargo-deny, cargo-shear and reuse
	tools/check-dependencies.sh

least-rust: rust ## type-check the program with the least Rust version that Cargo.toml names
	tools/check-least-rust.sh $(TLS)

guides: build ## run the commands of the guides, and compare their output with what the guides show
	tests/guide/check.py

pages: ## check the demo's pages in Chromium: two widths, both themes, and accessibility by axe-core (TURNS=--turns: half of it)
	tests/page/check.py $(OUT)/demo/*.html $(wildcard $(OUT)/demo-rack/*.html $(OUT)/demo-rack/twin/*.html) --width 1400 --width 400 --theme light --theme dark $(TURNS) --axe $$(tools/setup-axe.sh)

book: rust ## the documents as a book, in target/book; installs mdbook below target/ if it is missing
	PATH="$$(tools/setup-tools.sh):$$PATH" mdbook build docs
	@echo "The book: $(CURDIR)/target/book/index.html"

tidy: rust ## floors, forbidden names and sizes by layers.toml
	$(CARGO) xtask tidy

bench: rust ## measure what `make build` builds, in CPU time; writes target/bench.json (PROFILE=fastest for long sweeps)
	$(CARGO) run --profile $(PROFILE) --package bench

fit-coverage: rust ## fit 200 drives that are known and count how often the ranges have the truth (an hour or more)
	$(CARGO) test --release --package hardware --lib ranges_have_the_truth_in_95 -- --ignored --nocapture

container: build ## check the recipe of an image and the manifest of Kubernetes, and run the store with its configuration
	tools/check-container.sh

interop: build ## three stock Linux hosts in QEMU use our target as a disk; STEPS=small is what CI does
	tests/interop/run.sh $(STEPS)

measure-twin: build ## how far twins of live racks are off, at nine loads, two runs each (ten minutes, with nothing beside it)
	tools/measure-twin.py

rack-latency: build ## reads of a Linux host in QEMU while flash collects garbage, coordinated and not, in turns: percentiles
	tests/interop/guest.sh own latency

soak: rust ## a minute of hosts that work, reset and vanish, with every block checked
	SOAK_SECONDS=60 $(CARGO) test --package live $(TLS) --test soak -- --nocapture

compare-redis: build ## our key-value store beside redis-server, in one run, by redis-benchmark: ratios and CPU
	tools/compare-redis.py $(MEASURED)

restart-store: build ## overwrite a key-value store of 1.6 GiB that is 80 % full, kill it, and time its first answer: ratios
	tools/restart-store.py $(VALUES)

rack-schedules: rust ## thousands of random racks in the simulator, with random faults or without; each history is judged (CASES=3000)
	PROPTEST_CASES=$(CASES) $(CARGO) test --package sim --test sim blox_

rack-soak: rust ## an hour of a replicated volume while its roles are killed and paused; its history is judged
	RACK_FAULTS=4000 $(CARGO) test --package cli $(TLS) --test cli rack_kills -- --nocapture

fuzz: rust ## fuzz every parser and the stateful connections, SECONDS_EACH each (SANITIZER=address for more, and slower)
	tools/fuzz.sh $(SECONDS_EACH)

models: rust ## explore Scalio's cache protocol at the large sizes, and its programs in random worlds: minutes; a table of variants
	$(CARGO) run --release --package models -- --size large --sweep 300 --worlds 2000

rtl: rust ## EDM's gates: lint, and lock step with crates/edm; installs Verilator (STEPS=small for a quick look)
	tools/setup-rtl.sh
	rtl/run.sh $(STEPS)

xdp: ## the switch's data path in the kernel: target/xdp/switch.bpf.o; installs clang where it can
	tools/setup-xdp.sh
	@echo "The program: $(CURDIR)/target/xdp/switch.bpf.o"

clean: ## remove everything that was built and produced
	$(CARGO) clean
	rm -rf $(OUT)

rust:
	@tools/check-rust.sh

openssl:
	@tools/setup-openssl.sh
