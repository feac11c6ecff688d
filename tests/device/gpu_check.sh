#!/usr/bin/env bash
# Compares our GPU page with nvidia-smi on a machine with an NVIDIA GPU, and watches a load come and go.
#
# Usage: tests/device/gpu_check.sh [WATCHFIRE]    (default: target/release/watchfire)
# Needs the binary, nvidia-smi and python3; with torch and CUDA the load is run too, else that part says SKIPPED.
# Closes with "N passed, M failed"; exit code 1 if anything failed. Takes about two minutes.
#
# NOT YET RUN ON A REAL GPU. self_test.sh has run the comparisons against the simulator and a fake nvidia-smi; the torch
# load has run nowhere. Read its first results as a test of the script too.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
watchfire=${1:-$here/../../target/release/watchfire}
command -v nvidia-smi >/dev/null || { echo "SKIPPED: no nvidia-smi"; exit 0; }
[ -x "$watchfire" ] || { echo "no binary: $watchfire" >&2; exit 2; }
exec python3 "$here/gpu_check.py" "$watchfire"
