#!/usr/bin/env bash
# Watchfire beside Prometheus and VictoriaMetrics (benches/peers.sh unpacks new ones): bytes, CPU, memory, latency, restart.
# usage: benches/metrics/run.sh [write HOURS | scrape TARGETS SERIES SECONDS] [--prometheus PATH] [--victoria PATH]
# Without arguments: a day by remote write with its queries, then 10 and 100 targets by scrape.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked --quiet -p watchfire
cargo build --release --locked --quiet -p remote --example fleet
if [ $# -gt 0 ]; then exec python3 benches/metrics/run.py "$@"; fi
python3 benches/metrics/run.py write 24
python3 benches/metrics/run.py scrape 10 1700 120
python3 benches/metrics/run.py scrape 100 1700 120
