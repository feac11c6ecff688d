#!/usr/bin/env bash
# What `watchfire run` costs while nobody asks: memory (PSS) and processor time per minute.
# usage: benches/idle.sh [SECONDS] [run arguments …]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-120}
shift || true
data=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
target/release/watchfire run --data "$data" --listen "127.0.0.1:$port" "$@" 2>"$data/log" &
pid=$!
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null || true; rm -rf "$data"' EXIT
until curl -sf "http://127.0.0.1:$port/-/ready" >/dev/null; do
    kill -0 $pid || { cat "$data/log"; exit 1; }
    sleep 0.2
done
ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }
hz=$(getconf CLK_TCK)
sleep 15
before=$(ticks)
sleep "$seconds"
after=$(ticks)
awk '/^Pss:/ {printf "PSS %.1f MiB\n", $2 / 1024}' "/proc/$pid/smaps_rollup"
awk '/^VmHWM|^VmRSS|^Threads/ {print}' "/proc/$pid/status"
echo "$before $after $hz $seconds" | awk '{cpu = ($2 - $1) / $3; printf "CPU %.2f s per minute (%.2f %% of a core, over %d s)\n", cpu * 60 / $4, cpu * 100 / $4, $4}'
curl -sf "http://127.0.0.1:$port/api/watchfire/v1/status"
echo
