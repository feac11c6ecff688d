#!/usr/bin/env bash
# The vendor's Python client finds MIG instances in the simulator; then gpu_check.sh runs with a fake
# nvidia-smi, which reads by that client too: its comparisons with our page must hold, and must be able to fail.
# Usage: tests/device/self_test.sh WATCHFIRE LIBSIM (absolute paths). Not covered here: the torch load.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
export PYTHONPATH="$root/target/tools/python${PYTHONPATH:+:$PYTHONPATH}"
python3 -c 'import pynvml' 2>/dev/null || { echo "SKIPPED: no Python package nvidia-ml-py (tests/prepare.sh)"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$2" "$folder/libnvidia-ml.so.1"
export WATCHFIRE_SIM_SCENARIO="$root/data/sim/healthy-h100x8.yml"
WATCHFIRE_SIM_EPOCH_MS=$(date +%s000)
export WATCHFIRE_SIM_EPOCH_MS LD_LIBRARY_PATH="$folder" PATH="$root/tests/device/fake:$PATH"
python3 "$root/sim/tests/mig_client.py"
cd "$folder" # what the agent keeps goes with the folder
"$root/tests/device/gpu_check.sh" "$1"
if FAKE_POWER_OFFSET=500 "$root/tests/device/gpu_check.sh" "$1" >"$folder/wrong" 2>&1; then
    echo "a wrong power was not seen" >&2
    exit 1
fi
grep -q 'FAILED DCGM_FI_DEV_POWER_USAGE' "$folder/wrong"
echo "the check holds, and fails when it should"
