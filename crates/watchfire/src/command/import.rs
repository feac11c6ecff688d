//! `watchfire import KIND …`: history that was gathered elsewhere, of any age, into a hub's store.
//!
//! Files are read in pieces, samples become blocks beside those that are there; overlaps are merged at the end.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use exposition::{Cause, Entry, Format, Reader};
use model::{Clock as _, Column, Labels};
use serde_json::json;
use tsdb::{Db, Imported};

use super::history::{DataArgs, Progress, open};
use super::{Outcome, output};

/// Text read at once; lines are far shorter.
const PIECE_BYTES: usize = 16 << 20;
/// Samples gathered before they become blocks: some 320 MB.
const SAMPLES_MAX: usize = 20_000_000;

/// Flags of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// From what.
    #[command(subcommand)]
    pub command: ImportCommand,
}

/// From what history can come.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Take Prometheus blocks: a block, or a data folder or snapshot full of them.
    Prometheus(FilesArgs),
    /// Take OpenMetrics text in which every sample has a timestamp.
    Openmetrics(FilesArgs),
}

/// Flags of both.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// The files or folders; `-` is standard input (text only).
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Which store.
    #[command(flatten)]
    pub data: DataArgs,
    /// Print the counts as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Takes history.
pub fn import(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let files = match &args.command {
        ImportCommand::Prometheus(files) | ImportCommand::Openmetrics(files) => files,
    };
    let db = open(&files.data.data, true)?;
    let (mut total, mut progress, mut good) = (Imported::default(), Progress::new(), true);
    for path in &files.paths {
        let done = match &args.command {
            ImportCommand::Prometheus(_) => import_blocks(&db, path, &mut total, &mut progress),
            ImportCommand::Openmetrics(_) => import_text(&db, path, &mut total, &mut progress).map(|()| true),
        };
        progress.end();
        good &= done.with_context(|| format!("cannot import {}", path.display()))?;
    }
    // Merges what overlaps, with the store's own as far as it is in blocks.
    db.maintain(model::SystemClock.now())
        .context("the store could not tidy up")?;
    db.close().context("cannot close the store")?;
    let Imported {
        blocks,
        series,
        samples,
    } = total;
    if files.json {
        output::line(json!({"blocks": blocks, "series": series, "samples": samples}))?;
    } else {
        output::line(format_args!("{samples} samples of {series} series in {blocks} blocks"))?;
    }
    Ok(Outcome::from(good))
}

fn add(total: &mut Imported, done: Imported) {
    total.blocks += done.blocks;
    total.series += done.series;
    total.samples += done.samples;
}

/// A block that cannot be read is told and left out.
fn import_blocks(db: &Db, path: &Path, total: &mut Imported, progress: &mut Progress) -> anyhow::Result<bool> {
    let found = tsdb::prometheus_blocks(path)?;
    anyhow::ensure!(!found.is_empty(), "no Prometheus block is there");
    if path.join("wal").is_dir() {
        output::remark("note: the last hours of a Prometheus lie in its log, which is not read: take a snapshot of it");
    }
    let mut good = true;
    for (i, block) in found.iter().enumerate() {
        let done = db.import_prometheus(block, &mut |done, of| {
            progress.show(|| format!("block {} of {}: {done} of {of} series", i + 1, found.len()));
        });
        match done {
            Ok(done) => add(total, done),
            Err(error) => {
                progress.end();
                output::remark(format_args!("{}: left out: {error}", block.display()));
                good = false;
            }
        }
    }
    Ok(good)
}

fn import_text(db: &Db, path: &Path, total: &mut Imported, progress: &mut Progress) -> anyhow::Result<()> {
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut gathered = Gathered::default();
    let (mut piece, mut lines, mut more) = (Vec::new(), 0, true);
    while more {
        let wanted = PIECE_BYTES as u64;
        more = source.by_ref().take(wanted).read_to_end(&mut piece)? as u64 == wanted;
        let end = if more {
            let newline = piece.iter().rposition(|&b| b == b'\n');
            newline.context("a line of more than 16 MB")? + 1
        } else {
            piece.len()
        };
        lines += gathered.read(&piece[..end], !more, lines)?;
        piece.drain(..end);
        if gathered.samples > SAMPLES_MAX || !more {
            add(total, db.import_samples(std::mem::take(&mut gathered).series)?);
        }
        progress.show(|| format!("{lines} lines, {} samples stored", total.samples));
    }
    Ok(())
}

/// Samples on their way to blocks.
#[derive(Default)]
struct Gathered {
    series: BTreeMap<Labels, Column>,
    samples: usize,
}

impl Gathered {
    /// Takes the samples of whole lines, `before` lines after the file's first; gives their number.
    fn read(&mut self, piece: &[u8], last: bool, before: usize) -> anyhow::Result<usize> {
        let mut reader = Reader::new(piece, Format::OpenMetrics);
        let line_of = |rest: &[u8]| {
            before
                + piece[..piece.len() - rest.len()]
                    .iter()
                    .filter(|&&b| b == b'\n')
                    .count()
        };
        loop {
            let rest = reader.rest();
            match reader.next_entry() {
                Ok(Some(Entry::Sample(sample))) => {
                    let time = sample.time.with_context(|| {
                        format!(
                            "line {}: a sample without a timestamp has no place in history",
                            line_of(rest) + 1
                        )
                    })?;
                    let labels = sample.series.labels();
                    let labels = labels.with_context(|| format!("line {}", line_of(rest) + 1))?;
                    self.series.entry(labels).or_default().push(time, sample.value);
                    self.samples += 1;
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                // The page goes on in the next piece.
                Err(error) if error.cause == Cause::EofMissing && rest.is_empty() && !last => break,
                Err(error) => {
                    return Err(anyhow::Error::new(error.cause).context(format!("line {}", line_of(rest) + 1)));
                }
            }
        }
        Ok(piece.iter().filter(|&&b| b == b'\n').count())
    }
}
