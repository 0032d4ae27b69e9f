# Two commands matter: `make run` and `make test`. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

DATA ?= greenroom-data
FEATURES := --features greenroom/faults

.PHONY: help run build test check unit soak schemas bench clean

help: ## Show what there is to make
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: ## Build the host and start it: no key, no service, no config needed
	cargo run --release --bin greenroom -- serve --data $(DATA)

build: ## Build the release binary
	cargo build --release --bin greenroom

test: ## Everything: format, lints, all tests on SQLite and a real PostgreSQL, the HTTP fuzzer
	./tests/prepare.sh
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(MAKE) --no-print-directory unit
	./tests/outside/run.sh
	./tests/outside/models/run.sh
	./tests/outside/agui/run.sh

unit: ## The tests alone, with one PostgreSQL for all of them
	cargo build --quiet -p greenroom-testkit --bin with-postgres
	cargo run --quiet -p greenroom-testkit --bin with-postgres -- \
		cargo nextest run --workspace $(FEATURES)

soak: ## The crash test with 200 kills instead of 20, and a million fuzzed calls instead of 100,000
	GREENROOM_KILLS=200 cargo nextest run -p greenroom $(FEATURES) --test host crash --no-capture
	GREENROOM_CALLS=1000000 cargo nextest run --profile soak -p greenroom $(FEATURES) --test proxy fuzz --no-capture

schemas: ## Write docs/schema anew after a change of the protocol
	cargo run -p greenroom-protocol --example write_schemas

bench: ## Measure the budgets beside their baselines and record them in bench/RESULTS.md
	cargo run --release --bin greenroom -- bench --write bench/RESULTS.md

clean: ## Remove build output and the data folder of `make run`
	cargo clean
	rm -rf $(DATA)
