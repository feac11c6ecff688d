//! Prints what a page of this host costs: `cargo run --release -p collect --example cost`.

use std::sync::Arc;
use std::time::Instant;

use collect::page::Page;
use collect::{Paths, Runner, node};
use model::SystemClock;
use rustix::time::{ClockId, clock_gettime};

const PAGES: i64 = 200;

fn main() -> std::io::Result<()> {
    let runner = Runner::start(node::workers(&Paths::default()), Arc::new(SystemClock))?;
    let lines: usize = runner.collect(Page::Node).iter().map(|f| f.metrics.len()).sum();
    let (begun, before) = (Instant::now(), cpu_us());
    for _ in 0..PAGES {
        let _ = runner.collect(Page::Node);
    }
    let cpu = (cpu_us() - before) / PAGES;
    println!(
        "{lines} lines, {cpu} us of CPU a page, {:?} of time",
        begun.elapsed() / 200
    );
    for status in runner.statuses() {
        println!(
            "{:20} {:12} {:?}",
            status.name,
            status.state.to_string(),
            status.duration
        );
    }
    Ok(())
}

fn cpu_us() -> i64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec * 1_000_000 + used.tv_nsec / 1_000
}
