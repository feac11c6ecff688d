#!/usr/bin/env bash
# Everything that is measured, one after the other. Figures of a busy machine are noisy: compare, do not quote one run.
set -euo pipefail
cd "$(dirname "$0")/.."
title() { printf '\n== %s\n' "$1"; }

title "exposition: nanoseconds per sample, known page and new page"
cargo run --release --locked --quiet -p scrape --example parse_speed
title "store: bytes and nanoseconds per sample, memory per series, restart"
cargo run --release --locked --quiet -p tsdb --example measure
title "queries: milliseconds over 1,000 series of a day"
cargo run --release --locked --quiet -p promql --example query_speed
title "collectors: processor time per page"
cargo run --release --locked --quiet -p collect --example cost
title "a machine watched, nobody asking: PSS and processor time"
make --silent build
benches/idle.sh 60
title "thirty days of a healthy, busy server, in injected time: no alert"
cargo test --release --locked --quiet -p watchfire --bin watchfire -- --ignored thirty_days
