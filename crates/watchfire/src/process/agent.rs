//! `watchfire agent`: collectors, and their pages over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use collect::page::Page;
use exposition::Format;
use model::{Family, Kind, SystemClock};
use web::{Agent, EventLog, MetricsPage};

use super::settings::DEFAULT_DATA;
use super::sources::{GPU_INVENTORY, GPU_RING, Sources};
use super::{events, own_metrics, settings};
use crate::cli::AgentArgs;

/// Where an agent listens unless told: dcgm-exporter's port.
const DEFAULT_LISTEN: &str = "127.0.0.1:9400";

/// Serves until asked to end.
pub async fn run(args: AgentArgs) -> anyhow::Result<()> {
    let config = settings::own_config(args.serve.config.as_deref())?;
    let address = settings::address(args.serve.listen, &config, DEFAULT_LISTEN)?;
    let listener = web::listen(address, args.serve.insecure || config.insecure).await?;
    let told = args.data.or_else(|| config.data_dir.clone()).or_else(state_folder);
    let inventory = told.as_ref().map(|folder| folder.join(GPU_INVENTORY));
    let ring = told.unwrap_or_else(|| DEFAULT_DATA.into()).join(GPU_RING);
    let sources = Sources::of_here(&args.paths, inventory.as_deref(), Some(&ring), &config.gpu)?;
    let page = |page: Page| -> MetricsPage {
        let sources = Arc::clone(&sources);
        Box::new(move || sources.page(page))
    };
    let log = Arc::new(EventLog::new(Arc::new(SystemClock)));
    let _desk = events::Desk::of_agent(&sources.kernel(), Arc::clone(&log))?;
    let agent = Agent {
        all: {
            let (all, log) = (page(Page::All), Arc::clone(&log));
            Box::new(move || all() + &own_page(&log))
        },
        events: log,
        ring: super::ring::window(Some(&ring)),
        sources: BTreeMap::from([("gpu", page(Page::Gpu)), ("node", page(Page::Node))]),
    };
    tracing::info!(
        "agent serves http://{}/metrics",
        listener.local_addr().unwrap_or(address)
    );
    web::serve(listener, web::agent::router(Arc::new(agent)), super::asked_to_end())
        .await
        .context("the listener failed")
}

/// What the agent tells of its own process.
fn own_page(log: &EventLog) -> String {
    let mut families = own_metrics::families(env!("CARGO_PKG_VERSION"));
    let mut streams = Family::new(
        "watchfire_event_streams",
        Kind::Gauge,
        "Hubs that hold the stream of events open.",
    );
    streams.push(Vec::new(), log.listeners() as f64);
    families.push(streams);
    exposition::write_page(&families, Format::Text)
}

/// The folder that systemd gives (`StateDirectory=`).
///
/// Without a folder that somebody named, only the ring of samples is kept: which GPUs there should be is a promise about
/// this machine, and an agent started anywhere by hand makes none.
fn state_folder() -> Option<PathBuf> {
    let folders = std::env::var_os("STATE_DIRECTORY")?;
    std::env::split_paths(&folders)
        .next()
        .filter(|first| first.is_absolute())
}
