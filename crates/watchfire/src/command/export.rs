//! `watchfire export prometheus DIR`: history as Prometheus' blocks, for Prometheus, Thanos, Mimir and their tools.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use model::{Matcher, Millis};
use serde_json::json;
use tsdb::Export;

use super::history::{DataArgs, Progress, moment, open};
use super::{Outcome, output};

/// Flags of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// As what.
    #[command(subcommand)]
    pub command: ExportCommand,
}

/// As what history can go out.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Write Prometheus blocks into a folder.
    Prometheus(PrometheusArgs),
}

/// Flags of `export prometheus`.
#[derive(Debug, Args)]
pub struct PrometheusArgs {
    /// The folder for the blocks, made if absent.
    pub dir: PathBuf,
    /// Which store.
    #[command(flatten)]
    pub data: DataArgs,
    /// Only series of this selector, as `{job="dcgm"}`.
    #[arg(long = "match", value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// The first moment: seconds since the epoch or RFC 3339.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub from: Option<String>,
    /// The last moment.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub to: Option<String>,
    /// What a block spans; 2h where not given, as Prometheus cuts them.
    #[arg(long, value_name = "DURATION", default_value = "2h")]
    pub block: String,
    /// Print the counts as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Writes history.
pub fn export(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let ExportCommand::Prometheus(args) = &args.command;
    let matchers: Vec<Matcher> = match &args.selector {
        None => Vec::new(),
        Some(text) => match promql::parse_selector(text) {
            Ok(matchers) => matchers,
            Err(error) => {
                output::remark(error.render(text));
                return Ok(Outcome::No);
            }
        },
    };
    let span = model::time::parse_duration(&args.block).with_context(|| format!("--block {}", args.block))?;
    anyhow::ensure!(span > 0, "--block {}: a block must span some time", args.block);
    let time = |flag, text: &Option<String>, usual| text.as_ref().map_or(Ok(usual), |text| moment(flag, text));
    let what = Export {
        matchers: &matchers,
        mint: time("--from", &args.from, Millis::MIN)?,
        maxt: time("--to", &args.to, Millis::MAX)?,
        span,
    };
    let db = open(&args.data.data, false)?;
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    let mut progress = Progress::new();
    let done = db.export_prometheus(&args.dir, &what, &mut |done, of| {
        progress.show(|| format!("{done} of {of} blocks"));
    });
    progress.end();
    let done = done.context("cannot export")?;
    for warning in &done.warnings {
        output::remark(format_args!("warning: {warning}"));
    }
    if args.json {
        output::line(
            json!({"blocks": done.blocks, "series": done.series, "samples": done.samples,
            "warnings": done.warnings}),
        )?;
    } else {
        output::line(format_args!(
            "{} samples of {} series in {} blocks in {}",
            done.samples,
            done.series,
            done.blocks,
            args.dir.display()
        ))?;
    }
    db.close().context("cannot close the store")?;
    Ok(Outcome::from(done.warnings.is_empty()))
}
