# SPDX-License-Identifier: Apache-2.0
# OpenRNIC. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.tools/bin:$(PATH)

TOOLS := .tools/tools.stamp
NEXTEST := .tools/nextest.stamp
MDBOOK := .tools/mdbook.stamp

.PHONY: help setup demo test lint fmt bench gates cuts synth bitstream waves gen drawings replay book formal mutants soak soak-merge soak-transport soak-transport-merge scale clean distclean

help: ## list the targets
	@echo "OpenRNIC: make <target>"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: SEED=n (demo), WAVES=1 (demo, test: FST traces), ARGS=... (test: for nextest; bench: parts, full, --book; synth: names of cores and blocks, --place)"

$(TOOLS): scripts/setup.sh scripts/requirements.txt
	@mkdir -p .tools
	@scripts/setup.sh tools
	@touch $@

$(NEXTEST): scripts/setup.sh $(TOOLS)
	@scripts/setup.sh nextest
	@touch $@

$(MDBOOK): scripts/setup.sh
	@mkdir -p .tools
	@scripts/setup.sh mdbook
	@touch $@

setup: $(TOOLS) $(NEXTEST) ## install what is missing: system packages, pinned tools, test runner

demo: $(TOOLS) ## run the quickstart scenario: two RNICs, 64 queue pairs each, out/demo.pcapng
	@mkdir -p out
	cargo run --release -p openrnic -- run scenarios/quickstart.toml --pcap out/demo.pcapng \
	  $(if $(filter-out 0,$(WAVES)),--wave out/demo.fst) $(if $(SEED),--seed $(SEED))

test: $(TOOLS) $(NEXTEST) ## check that generated files are fresh, then run every test
	cargo run -q -p openrnic-spec-gen -- --check
	cargo nextest run --workspace $(ARGS)

lint: $(TOOLS) ## lint the RTL (Verilator, Verible, Yosys) and the Rust (format, clippy); drawings are fresh
	scripts/lint_rtl.sh
	scripts/draw_waves.py --check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

fmt: ## format the Rust
	cargo fmt --all

bench: $(TOOLS) ## measure speed and budgets, out/bench.json; fails on a miss
	@mkdir -p out
	cargo run --release -p openrnic-testbench --bin bench -- $(ARGS)

gates: $(TOOLS) $(NEXTEST) ## the gate and batch scenarios on the synthesised QP engine, cell by cell (slow); ARGS=filter for nextest
	OPENRNIC_GATES=1 cargo nextest run -p openrnic-testbench --test qp_batch --test qp_rules --test qp_alloc --test qp_list $(ARGS)

cuts: $(TOOLS) ## take each RTL feature out and expect its test to fail (slow); ARGS=switches, targets or tests
	cargo run -p openrnic-testbench --bin cuts -- $(ARGS)

formal: $(TOOLS) ## prove the properties of formal/, with seeded bugs that must be found; ARGS=--all or names
	.tools/venv/bin/python scripts/formal.py $(ARGS)

mutants: $(TOOLS) ## 320 small faults in the control plane: at least 95 % must be noticed by tests or proofs (long); ARGS=--seed n --only id
	.tools/venv/bin/python scripts/mutants.py $(ARGS)

SHARD ?= 1/1
COMMANDS ?= 10000000
SOAK := cargo run --release -q -p openrnic-testbench --bin soak --

soak: $(TOOLS) ## random commands against the model, at length: SHARD=3/16 COMMANDS=n SEED=n, results in out/soak
	$(SOAK) --shard $(SHARD) --commands $(COMMANDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak-merge: $(TOOLS) ## the results of all shards together
	$(SOAK) --merge $(ARGS)

CYCLES ?= 100000000
SOAK_TRANSPORT := cargo run --release -q -p openrnic-testbench --bin soak_transport --

soak-transport: $(TOOLS) ## random traffic between two NICs against the transport model: SHARD=1/2 CYCLES=n SEED=n, out/soak-transport
	$(SOAK_TRANSPORT) --shard $(SHARD) --cycles $(CYCLES) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak-transport-merge: $(TOOLS) ## the results of all its shards together
	$(SOAK_TRANSPORT) --merge $(ARGS)

scale: $(TOOLS) ## a million lives of queue pairs on a table of 16,384: no leak, an even pace; SEED=n
	$(SOAK) --scale $(if $(SEED),--seed $(SEED)) $(ARGS)

replay: $(TOOLS) ## play the captures of Linux with the RTL as an end, write the book's table of it (docs/src/gen/replay.md)
	cargo run --release -q -p openrnic -- replay --complete --book docs/src/gen/replay.md $(ARGS) testbench/data/pcaps/*.pcap

synth: $(TOOLS) ## LUT4, FF and block RAM of each block on the ECP5, out/synth/report.json
	.tools/venv/bin/python scripts/synth.py $(ARGS)

IMAGE ?= loopback
SEEDS ?= 1,2,3

bitstream: $(TOOLS) ## image of a board: BOARD=versa5g|ecpix5 IMAGE=loopback|rnic SEEDS=1,2,3, out/bitstream
	.tools/venv/bin/python scripts/bitstream.py $(BOARD) --image $(IMAGE) --seeds $(SEEDS) $(ARGS)

waves: $(TOOLS) ## run the demo with a trace (out/demo.fst) and open it in a viewer, if there is one
	@$(MAKE) --no-print-directory demo WAVES=1
	@scripts/view_waves.sh out/demo

gen: ## regenerate what comes from spec/
	cargo run -q -p openrnic-spec-gen

drawings: $(TOOLS) ## draw the book's waveforms, docs/src/img/*.json5 to .svg
	@.tools/venv/bin/python -m pip install --disable-pip-version-check --no-deps -q -r scripts/requirements-docs.txt
	@.tools/venv/bin/python scripts/draw_waves.py

book: $(MDBOOK) ## build the book into docs/book
	mdbook build docs
	@scripts/check_book.py

clean: ## remove build results and outputs, keep the tools
	cargo clean
	rm -rf out docs/book

distclean: clean ## remove the tools, too
	rm -rf .tools
