//! `watchfire collect NAME`: one page of one collector, then exit.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::bail;
use collect::page::Page;
use model::SystemClock;

use super::{Outcome, input};
use crate::cli::{CollectArgs, Source};
use crate::process::sources::{self, Sources};

/// Prints the page.
pub fn collect(args: &CollectArgs) -> anyhow::Result<Outcome> {
    let page = match args.source {
        Source::Kernel => return kernel(args),
        Source::Gpu => Page::Gpu,
        Source::Node => Page::Node,
    };
    if args.from.is_some() {
        bail!("--from reads captures of `kernel` only, so far");
    }
    let paths = sources::paths(&args.paths);
    let workers = match page {
        Page::Gpu => collect::gpu::workers(&paths, &collect::gpu::Options::default()),
        _ => collect::node::workers(&paths),
    };
    let sources = Sources::start(workers, Arc::new(SystemClock))?;
    print(&sources.page(page));
    Ok(Outcome::Yes)
}

/// Kernel lines in, one JSON object per recognised event out.
fn kernel(args: &CollectArgs) -> anyhow::Result<Outcome> {
    let path = args.from.as_deref().unwrap_or(&args.paths.kmsg);
    let mut out = std::io::stdout().lock();
    collect::kernel::events_as_json(&input::bytes(path)?, &mut out)?;
    Ok(Outcome::Yes)
}

/// A closed pipe has seen enough.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
