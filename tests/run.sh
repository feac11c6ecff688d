#!/usr/bin/env bash
# Everything that must hold. `make test` calls it; so does CI.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/target/tools/bin:$PATH"
export PYTHONPATH="$PWD/target/tools/python${PYTHONPATH:+:$PYTHONPATH}"
export WATCHFIRE_PYTHON=python3

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

step "what the tests need"
tests/prepare.sh

step "web page: build and types"
make --silent ui
(cd ui && npm run --silent check)

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

step "tests"
cargo test --workspace --locked --quiet -- --test-threads=2

step "done"
