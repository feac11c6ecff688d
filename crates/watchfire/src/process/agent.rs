//! `watchfire agent`: collectors, and their pages over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use collect::page::Page;
use exposition::Format;
use model::{Family, Kind, SystemClock};
use web::{Agent, EventLog, MetricsPage};

use super::sources::{GPU_INVENTORY, Sources};
use super::{events, own_metrics, settings};
use crate::cli::AgentArgs;

/// Where an agent listens unless told: dcgm-exporter's port.
const DEFAULT_LISTEN: &str = "127.0.0.1:9400";

/// Serves until asked to end.
pub async fn run(args: AgentArgs) -> anyhow::Result<()> {
    let config = settings::own_config(args.serve.config.as_deref())?;
    let address = settings::address(args.serve.listen, &config, DEFAULT_LISTEN)?;
    let listener = web::listen(address, args.serve.insecure || config.insecure).await?;
    let sources = Sources::of_here(&args.paths, inventory().as_deref(), &config.gpu)?;
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

/// An agent keeps nothing but which GPUs there are, and that where systemd gives it a folder (`StateDirectory=`).
fn inventory() -> Option<PathBuf> {
    let folders = std::env::var_os("STATE_DIRECTORY")?;
    let first = std::env::split_paths(&folders).next()?;
    first.is_absolute().then(|| first.join(GPU_INVENTORY))
}
