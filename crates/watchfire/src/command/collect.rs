//! `watchfire collect NAME`: one page of one collector, then exit.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use collect::kernel::classify_lines;
use collect::page::Page;
use tail::Stop;
use tail::kmsg::{Boot, Item, Kmsg, Start};

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
    let sources = Sources::of_here(&args.paths, None)?;
    print(&sources.page_once(page));
    Ok(Outcome::Yes)
}

/// Kernel lines in, one JSON object per recognised event out.
fn kernel(args: &CollectArgs) -> anyhow::Result<Outcome> {
    let classifier = sources::classifier()?;
    let out = std::io::stdout().lock();
    let written = match args.from.as_deref() {
        Some(path) => classify_lines(&classifier, input::bytes(path)?.as_slice(), out),
        None => classify_lines(&classifier, buffered(&args.paths.kmsg)?.as_slice(), out),
    };
    match written {
        // A closed pipe has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Outcome::Yes),
        written => written.map(|()| Outcome::Yes).context("cannot write the events"),
    }
}

/// What the kernel has in its buffer at present, as its device's records.
fn buffered(path: &Path) -> anyhow::Result<Vec<u8>> {
    let stop = Stop::new().context("cannot make a stop handle")?;
    let mut log = Kmsg::open(path, Start::Beginning, Boot::OfMachine)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = Vec::new();
    while let Some(item) = log
        .next(Duration::ZERO, &stop)
        .with_context(|| format!("cannot read {}", path.display()))?
    {
        if let Item::Record(record) = item {
            lines.extend_from_slice(record.text.as_bytes());
            lines.push(b'\n');
        }
    }
    Ok(lines)
}

/// A closed pipe has seen enough.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
