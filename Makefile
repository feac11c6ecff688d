# `make run` builds everything and watches this machine; `make test` runs everything that must hold.

SHELL := /bin/bash
CARGO ?= cargo
UI_SOURCES := $(shell find ui/src -type f 2>/dev/null) ui/index.html ui/package-lock.json ui/vite.config.ts

.PHONY: run build test lint bench ui clean

run: build
	@if [ -e /dev/nvidiactl ]; then exec target/release/watchfire run; else exec target/release/watchfire run --demo; fi

build: ui/dist/index.html
	$(CARGO) build --release --locked -p watchfire

ui: ui/dist/index.html

ui/node_modules/.package-lock.json: ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund

ui/dist/index.html: ui/node_modules/.package-lock.json $(UI_SOURCES)
	cd ui && npm run --silent build

test:
	tests/run.sh

lint: ui/dist/index.html
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	cd ui && npm run --silent check
	@if command -v cargo-deny >/dev/null; then cargo deny check licenses bans sources; else echo "cargo-deny is not installed: licences were not checked"; fi

bench:
	benches/run.sh

clean:
	rm -rf target ui/dist/* ui/node_modules
