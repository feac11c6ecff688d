//! Where a server comes from: a scenario of ours, a machine profile, or a capture of `nvidia-smi -q -x`.

use std::sync::Arc;

use crate::error::Error;
use crate::offset::Offset;
use crate::scenario::{Board, BoardKind, Driver, Host, Plan, Scenario};

mod capture;
mod profile;
mod xml;

/// Sees which of them a text is, and reads it.
pub(crate) fn parse(text: &str) -> Result<Arc<Scenario>, Error> {
    if text.trim_start().starts_with('<') {
        return capture::parse(text);
    }
    if text.lines().any(|line| line.starts_with("device_defaults:")) {
        return profile::parse(text);
    }
    Scenario::parse(text)
}

/// A server with these boards and nothing else: no work, no faults, a host of no importance.
fn server(name: &str, driver: Driver, boards: Vec<(Board, BoardKind)>) -> Result<Arc<Scenario>, Error> {
    let Some((_, kind)) = boards.first() else {
        return Err(Error::invalid("no boards"));
    };
    let plan = Plan {
        name: name.to_owned(),
        seed: 1,
        driver,
        board: kind.clone(),
        boards: Vec::new(),
        host: Host {
            name: "simulated".into(),
            cpus: 64,
            sockets: 2,
            memory_gib: 1024,
            booted: Offset(-86_400_000),
            drives: 2,
            kernel: "6.8.0-60-generic".into(),
        },
        jobs: Vec::new(),
        faults: Vec::new(),
        gpus: None,
    };
    let (boards, kinds): (Vec<_>, Vec<_>) = boards.into_iter().unzip();
    Scenario::of(plan, boards, kinds.into_iter().map(Arc::new).collect())
}

/// The header's number of an architecture's name; 0 for one that it does not know.
fn architecture(name: &str) -> u32 {
    match name.to_ascii_lowercase().replace('_', " ").as_str() {
        "kepler" => 2,
        "maxwell" => 3,
        "pascal" => 4,
        "volta" => 5,
        "turing" => 6,
        "ampere" => 7,
        "ada" | "ada lovelace" => 8,
        "hopper" => 9,
        "blackwell" => 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
