#!/usr/bin/env bash
# What watching eight GPUs costs: `watchfire agent` with a simulated server, sampled every second and scraped every 15 s.
# Prints memory (PSS) and processor time of the agent and of its GPU helper, the simulated driver library apart, and the
# share of the budget: 25 MB and 0.3 % of a core.
# usage: benches/gpu/run.sh [SECONDS, 600] [SCRAPE INTERVAL, 15]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
interval=${2:-15}
binary=${WATCHFIRE:-target/release/watchfire}
[ -x "$binary" ] || { echo "no $binary: run make build first" >&2; exit 2; }
data=$(mktemp -d)
agent=
trap '[ -z "$agent" ] || { kill "$agent" 2>/dev/null; wait "$agent" 2>/dev/null || true; }; rm -rf "$data"' EXIT
library=${WATCHFIRE_SIM_LIBRARY:-$(find target/release/build -path '*watchfire*/out/sim/release/libsim.so' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d" " -f2-)}
cp "$library" "$data/libnvidia-ml.so.1"
cp data/sim/healthy-h100x8.yml "$data/scenario.yml"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
WATCHFIRE_SIM_SCENARIO=$data/scenario.yml "$binary" agent --data "$data/state" --listen "127.0.0.1:$port" \
    --nvml-library "$data/libnvidia-ml.so.1" 2>"$data/log" &
agent=$!
scrape() { curl -sf -H 'Accept-Encoding: gzip' -o "$data/page" "http://127.0.0.1:$port/metrics"; }
for _ in $(seq 100); do scrape && gzip -dc "$data/page" 2>/dev/null | grep -q 'watchfire_gpu_up{.*state="ok"' && break; sleep 0.2; done
helper() { pgrep -P "$agent" | head -1; }
[ -n "$(helper)" ] || { echo "no helper runs" >&2; cat "$data/log" >&2; exit 1; }
# Nanoseconds on a processor, of all threads: exact, where clock ticks are a guess for threads that run for microseconds.
ticks() { cat /proc/"$1"/task/*/schedstat | awk "{n += \$1} END {printf \"%.0f\", n}"; }
switches() { cat /proc/"$1"/task/*/status | awk '/ctxt_switches/ {n += $2} END {print n}'; }
# The warm-up: first pages, caches.
for _ in 1 2 3; do scrape; sleep 2; done
child=$(helper)
a0=$(ticks "$agent"); h0=$(ticks "$child"); s0=$(switches "$agent"); t0=$(switches "$child")
begun=$SECONDS
while ((SECONDS - begun < seconds)); do
    sleep "$interval"
    scrape
done
took=$((SECONDS - begun))
a1=$(ticks "$agent"); h1=$(ticks "$child"); s1=$(switches "$agent"); t1=$(switches "$child")
[ "$(helper)" = "$child" ] || { echo "the helper changed on the way" >&2; exit 1; }
pss() { awk '/^Pss:/ {print $2}' "/proc/$1/smaps_rollup"; }
library_pss() { awk '/^[0-9a-f]+-/ {ours = /libnvidia-ml/} /^Pss:/ && ours {n += $2} END {print n + 0}' "/proc/$1/smaps"; }
gzip -dc "$data/page" | grep -c '^[a-zA-Z]' | sed 's/$/ lines on the page/'
awk -v a="$(pss "$agent")" -v h="$(pss "$child")" -v l="$(library_pss "$child")" -v t="$(grep -h Threads "/proc/$agent/status" "/proc/$child/status" | awk '{print $2}' | paste -sd+ -)" 'BEGIN {
    printf "PSS    agent %.1f MB, helper %.1f MB without the driver library (%.1f MB): %.1f MB together, budget 25 (%.0f %%), threads %s\n",
        a / 1000 * 1.024, (h - l) / 1000 * 1.024, l / 1000 * 1.024, (a + h - l) / 1000 * 1.024, (a + h - l) / 1000 * 1.024 / 25 * 100, t }'
awk -v a=$((a1 - a0)) -v h=$((h1 - h0)) -v hz=1000000000 -v s="$took" -v x=$((s1 - s0)) -v y=$((t1 - t0)) 'BEGIN {
    printf "CPU    agent %.3f %%, helper with the driver library %.3f %% of a core: %.3f %% together, budget 0.3 (%.0f %%), over %d s\n",
        a / hz / s * 100, h / hz / s * 100, (a + h) / hz / s * 100, (a + h) / hz / s * 100 / 0.3 * 100, s
    printf "wakes  agent %.1f, helper %.1f a second\n", x / s, y / s }'
