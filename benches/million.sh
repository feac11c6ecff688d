#!/usr/bin/env bash
# One million active series: memory at the head's fullest, and restart to serving after a clean stop and after a kill.
# Usage: benches/million.sh [SERIES]; takes some minutes and 3 GB of disk below TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --locked --quiet -p tsdb --example million
million=target/release/examples/million
echo "== clean stop"
"$million" fill "$dir/clean" "$count"
"$million" open "$dir/clean"
rm -rf "$dir/clean"
echo "== killed"
"$million" fill "$dir/killed" "$count" --abandon
"$million" open "$dir/killed"
