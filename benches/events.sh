#!/usr/bin/env bash
# From a kernel line to the webhook: writes N lines (default 200), each of another GPU and code, and prints the times.
# usage: benches/events.sh [N]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 benches/events.py "${1:-200}" "${WATCHFIRE:-target/release/watchfire}"
