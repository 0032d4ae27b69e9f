# Two commands matter: `make run` and `make test`. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

DATA ?= greenroom-data
PROGRAM = $(or $(CARGO_TARGET_DIR),target)/quick/greenroom
FEATURES := --features greenroom/faults

# What the web interface is built from.
WEB_SOURCES = web/index.html web/package.json web/vite.config.ts web/tsconfig.json \
	$(shell find web/src web/public web/scripts -type f)

.PHONY: help run build package web test check unit soak schemas bench clean

help: ## Show what there is to make
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: build ## Build the host with its web interface and start it: no key, no service, no config needed
	$(PROGRAM) serve --data $(DATA)

build: web ## Build the program with its web interface into target/quick
	@test -e $(PROGRAM) || echo "building the program: some 400 packages, a few minutes the first time" >&2
	cargo build --profile quick --bin greenroom

package: web ## The same, smaller and a little faster, into target/release: twice the time, for packages
	cargo build --release --bin greenroom

web: web/dist/index.html ## Build the web interface, when it changed

web/dist/index.html: web/node_modules/.package-lock.json $(WEB_SOURCES)
	@echo "building the web interface" >&2
	cd web && npm run build
	@touch $@

# Not `npm ci`: parts of the bundler for other systems are not in the lock file.
web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "error: the web interface is built with Node 20 or newer and npm" >&2; exit 1; }
	@echo "installing what the web interface is built with (npm)" >&2
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@test -e $@
	@touch $@

test: ## Everything: format, lints, all tests on SQLite and a real PostgreSQL, the web interface, the HTTP fuzzer
	./tests/prepare.sh
	$(MAKE) --no-print-directory web
	cd web && npm run check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(MAKE) --no-print-directory unit
	./tests/outside/run.sh
	./tests/outside/models/run.sh
	./tests/outside/agui/run.sh
	./tests/outside/web/run.sh
	./sdks/python/run-tests.sh

unit: ## The tests alone, with one PostgreSQL for all of them
	cargo build --quiet -p greenroom-testkit --bin with-postgres
	cargo run --quiet -p greenroom-testkit --bin with-postgres -- \
		cargo nextest run --workspace $(FEATURES)

soak: ## The crash test with 200 kills instead of 20, 20 backups of a busy host instead of 3, and a million fuzzed calls instead of 100,000
	GREENROOM_KILLS=200 cargo nextest run -p greenroom $(FEATURES) --test host crash --no-capture
	GREENROOM_BACKUPS=20 cargo nextest run --profile soak -p greenroom $(FEATURES) --test backup busy --no-capture
	GREENROOM_CALLS=1000000 cargo nextest run --profile soak -p greenroom $(FEATURES) --test proxy fuzz --no-capture

schemas: ## Write docs/schema anew after a change of the protocol
	cargo run -p greenroom-protocol --example write_schemas

bench: ## Measure the budgets beside their baselines and record them in bench/RESULTS.md
	cargo run --release --bin greenroom -- bench --write bench/RESULTS.md

clean: ## Remove build output and the data folder of `make run`
	cargo clean
	rm -rf web/dist web/node_modules $(DATA)
