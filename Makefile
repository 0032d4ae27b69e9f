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

.PHONY: help run build package web test check unit soak hostile langbot harnesses schemas bench clean

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: build ## Build and start the host with its web interface: no key, no configuration, no other service
	$(PROGRAM) serve --data $(DATA)

build: web ## Build the host with its web interface into target/quick
	@test -e $(PROGRAM) || echo "building the host: about 400 packages, a few minutes the first time" >&2
	cargo build --profile quick --bin greenroom

package: web ## Build an optimised release into target/release: a third smaller, less memory, a longer build
	cargo build --release --bin greenroom

web: web/dist/index.html ## Build the web interface if it changed

web/dist/index.html: web/node_modules/.package-lock.json $(WEB_SOURCES)
	@echo "building the web interface" >&2
	cd web && npm run build
	@touch $@

# Not `npm ci`: parts of the bundler for other systems are not in the lock file.
web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "error: the web interface needs npm and Node 20 or newer" >&2; exit 1; }
	@echo "installing npm packages for the web interface" >&2
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@test -e $@
	@touch $@

test: ## Run all checks: format, lints, tests on SQLite and PostgreSQL, web interface, HTTP fuzzer
	./tests/prepare.sh
	$(MAKE) --no-print-directory web
	cd web && npm run check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(MAKE) --no-print-directory unit
	./tests/outside/run.sh
	./tests/outside/generated/run.sh
	./tests/outside/models/run.sh
	./tests/outside/model-gateway/run.sh
	./tests/outside/mcp-gateway/run.sh
	./tests/outside/agui/run.sh
	./tests/outside/mcp/run.sh
	./tests/outside/langbot/run.sh
	./tests/outside/harness/run.sh
	./tests/outside/web/run.sh
	./sdks/python/run-tests.sh

unit: ## Run only the Rust tests, with one PostgreSQL for all of them
	cargo build --quiet -p greenroom-testkit --bin with-postgres
	cargo run --quiet -p greenroom-testkit --bin with-postgres -- \
		cargo nextest run --workspace $(FEATURES)

soak: ## Run long tests: 10,000 kills (GREENROOM_KILLS, hours), 1,000 corruptions, 20 backups of a busy host, a million fuzzed calls, 100 kills under a harness
	GREENROOM_KILLS=$${GREENROOM_KILLS:-10000} cargo nextest run --profile soak -p greenroom $(FEATURES) --test host crash --no-capture
	GREENROOM_CORRUPTIONS=$${GREENROOM_CORRUPTIONS:-1000} cargo nextest run --profile soak -p greenroom-store --test store damage::random --no-capture
	GREENROOM_BACKUPS=20 cargo nextest run --profile soak -p greenroom $(FEATURES) --test backup busy --no-capture
	GREENROOM_CALLS=1000000 cargo nextest run --profile soak -p greenroom $(FEATURES) --test proxy fuzz --no-capture
	cargo build -p greenroom --bin greenroom $(FEATURES)
	KEYS=gateway GREENROOM_HARNESS_KILLS=100 ./tests/outside/harness/run.sh "$${CARGO_TARGET_DIR:-target}/debug/greenroom" goose

hostile: ## Let hostile programs try to escape from a debug build, as root and as an ordinary user
	cargo build -p greenroom --bin greenroom $(FEATURES)
	./tests/hostile/run.sh

langbot: build ## Drive the official LangBot plugins in PLUGINS=DIR (checkouts) with fakes of their services; LANGBOT=PYTHON and LANGBOT_NEWER=PYTHON compare
	python3 tests/outside/langbot/official.py $(PROGRAM) $(PLUGINS) $(LANGBOT:%=--langbot %)
	python3 tests/outside/langbot/local_agent.py $(PROGRAM) $(PLUGINS) $(LANGBOT:%=--langbot %)
	python3 tests/outside/langbot/official.py $(PROGRAM) $(PLUGINS) --newer $(LANGBOT_NEWER:%=--langbot %)
	python3 tests/outside/langbot/local_agent.py $(PROGRAM) $(PLUGINS) --newer $(LANGBOT_NEWER:%=--langbot %)

harnesses: ## Drive all six external harnesses, which are installed into the user's cache, against a scripted model
	cargo build -p greenroom --bin greenroom $(FEATURES)
	./tests/outside/harness/run.sh "$${CARGO_TARGET_DIR:-target}/debug/greenroom" goose codex claude gemini kimi opencode

schemas: web/node_modules/.package-lock.json ## Regenerate docs/schema, docs/openapi.json and the types of the web interface
	cargo run -p greenroom-protocol --example write_schemas
	cargo run -p greenroom-server --example write_openapi
	cd web && npm run generate

bench: ## Measure the performance budgets and write bench/RESULTS.md
	cargo run --release --bin greenroom -- bench --write bench/RESULTS.md

clean: ## Remove build output and the data folder of `make run`
	cargo clean
	rm -rf web/dist web/node_modules $(DATA)
