//! What the GPU page shows, as the configuration has it.

use std::path::Path;

use anyhow::Context as _;
use collect::gpu::{FIELDS, FieldTable, HostLabel, Names, Selection, Shown};
use config::watchfire::{GpuConfig, GpuNames, HostnameLabel};

/// What the configuration says of the GPU page; a counter list is read now, and what of it is not shown is logged.
///
/// `is_fake`: the driver's library was named by hand. Then this machine's `nvidia-smi` does not speak of the same GPUs.
///
/// # Errors
///
/// The counter list cannot be read, or dcgm-exporter would refuse it.
pub fn shown(config: &GpuConfig, is_fake: bool) -> anyhow::Result<Shown> {
    let selection = selection(config)?;
    for remark in &selection.remarks {
        tracing::warn!(remark, "the counter list");
    }
    Ok(Shown {
        selection,
        host_label: host_label(config),
        nvidia_smi: config.nvidia_smi.clone().filter(|_| !is_fake),
        processes_max: usize::try_from(config.processes).unwrap_or(usize::MAX),
    })
}

/// The metrics of the page.
///
/// # Errors
///
/// As [`shown`].
pub fn selection(config: &GpuConfig) -> anyhow::Result<Selection> {
    let table = FieldTable::new(FIELDS)?;
    match &config.counters_file {
        Some(path) => counters(&table, path),
        None => Ok(Selection::usual(&table, names(config))),
    }
}

fn counters(table: &FieldTable, path: &Path) -> anyhow::Result<Selection> {
    let list = std::fs::read(path).with_context(|| format!("cannot read the counter list {}", path.display()))?;
    Ok(Selection::of_counters(table, &path.display().to_string(), &list)?)
}

/// What the host's name is called.
pub const fn host_label(config: &GpuConfig) -> HostLabel {
    match config.hostname_label {
        None => HostLabel::ByGeneration,
        Some(HostnameLabel::Upper) => HostLabel::Upper,
        Some(HostnameLabel::Lower) => HostLabel::Lower,
    }
}

const fn names(config: &GpuConfig) -> Names {
    match config.names {
        GpuNames::Dcgm48 => Names::Dcgm48,
        GpuNames::Dcgm49 => Names::Dcgm49,
        GpuNames::Both => Names::Both,
    }
}
