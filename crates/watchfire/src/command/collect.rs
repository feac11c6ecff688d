//! `watchfire collect NAME`: one page of one collector, then exit.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use collect::Runner;
use collect::gpu::CaptureOptions;
use collect::kernel::classify_lines;
use collect::page::Page;
use config::watchfire::GpuConfig;
use exposition::Format;
use model::number::General;
use model::{Family, Metric, SystemClock};
use serde_json::{Value, json};
use tail::Stop;
use tail::kmsg::{Boot, Item, Kmsg, Start};

use super::{Outcome, input, output};
use crate::cli::{CollectArgs, Source};
use crate::process::sources::{self, Sources};
use crate::process::{gpu_page, settings};

/// Prints the page.
pub fn collect(args: &CollectArgs) -> anyhow::Result<Outcome> {
    let page = match args.source {
        Source::Kernel => return kernel(args),
        Source::Gpu => Page::Gpu,
        Source::Node => Page::Node,
    };
    let config = settings::own_config(args.config.as_deref())?;
    let families = match &args.from {
        Some(file) if page == Page::Gpu => gpu_capture(file, args.moment.as_deref(), &config.gpu)?,
        Some(_) => bail!("--from reads captures of `kernel` and `gpu`"),
        None => Sources::of_here(&args.paths, None, None, &config.gpu)?.families_once(page),
    };
    if args.json {
        let families: Vec<Value> = families.iter().filter_map(family).collect();
        output::line(Value::Array(families))?;
        return Ok(Outcome::Yes);
    }
    let text = exposition::write_page(&families, Format::Text);
    output::write(|out| out.write_all(text.as_bytes()))?;
    Ok(Outcome::Yes)
}

/// The page of what `nvidia-smi` printed, whatever that is: what it complains of is a state on the page.
fn gpu_capture(file: &Path, moment: Option<&str>, config: &GpuConfig) -> anyhow::Result<Vec<Family>> {
    let capture = input::bytes(file)?;
    let selection = gpu_page::selection(config)?;
    for remark in &selection.remarks {
        tracing::warn!(remark, "the counter list");
    }
    let workers = collect::gpu::capture_workers(CaptureOptions {
        capture: &capture,
        moment,
        hostname: sources::host_name(),
        selection,
        host_label: gpu_page::host_label(config),
    })?;
    let runner = Runner::start(workers, Arc::new(SystemClock)).context("cannot start a thread")?;
    Ok(runner.collect(Page::Gpu))
}

/// A family as JSON; `None` for one without lines, which a page leaves out too.
fn family(family: &Family) -> Option<Value> {
    let samples: Vec<Value> = family.metrics.iter().map(sample).collect();
    (!samples.is_empty()).then(|| {
        json!({
            "name": family.name,
            "type": family.kind.as_str(),
            "help": family.help,
            "samples": samples,
        })
    })
}

/// A line as JSON; what JSON has no number for (`NaN`, `+Inf`) is text.
fn sample(metric: &Metric) -> Value {
    let labels: serde_json::Map<String, Value> = metric
        .labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let value = if metric.value.is_finite() {
        json!(metric.value)
    } else {
        json!(General(metric.value).to_string())
    };
    let mut sample = json!({"labels": labels, "value": value});
    if !metric.suffix.is_empty() {
        sample["suffix"] = json!(metric.suffix);
    }
    sample
}

/// Kernel lines in, one JSON object per recognised event out, each as it comes.
fn kernel(args: &CollectArgs) -> anyhow::Result<Outcome> {
    let classifier = sources::classifier()?;
    match args.from.as_deref() {
        Some(path) => {
            let lines = input::lines(path)?;
            output::write(|out| classify_lines(&classifier, lines, out))?;
        }
        None => {
            let lines = buffered(&args.paths.kmsg)?;
            output::write(|out| classify_lines(&classifier, lines.as_slice(), out))?;
        }
    }
    Ok(Outcome::Yes)
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
