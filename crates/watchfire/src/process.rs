//! The processes that stay: agent, hub, and both in one.

mod agent;
mod alerting;
mod data;
mod demo;
mod drill;
mod events;
mod gpu_helper;
pub mod gpu_page;
mod hub;
mod own_metrics;
mod reload;
mod ring;
pub mod settings;
pub mod shipped;
pub mod sources;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::Context as _;

use crate::cli::{AgentArgs, HubArgs, RunArgs};
use crate::command::Outcome;

/// Threads that answer requests and scrape; queries and collectors have their own.
const WORKER_THREADS: usize = 2;

/// `watchfire agent`
pub fn agent(args: AgentArgs) -> anyhow::Result<Outcome> {
    runtime()?.block_on(agent::run(args))?;
    Ok(Outcome::Yes)
}

/// `watchfire gpu-helper`
pub fn gpu_helper() -> anyhow::Result<Outcome> {
    gpu_helper::run()?;
    Ok(Outcome::Yes)
}

/// `watchfire hub`
pub fn hub(args: HubArgs) -> anyhow::Result<Outcome> {
    runtime()?.block_on(hub::run(settings::Settings::of_hub(args)?))?;
    Ok(Outcome::Yes)
}

/// `watchfire run`
pub fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    runtime()?.block_on(hub::run(settings::Settings::of_run(args)?))?;
    Ok(Outcome::Yes)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    install_tls_provider();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .context("cannot start the threads of this process")
}

/// Chooses the cryptography under TLS, once.
pub fn install_tls_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only where a provider is installed already; then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Done when the process is asked to end: SIGTERM, or Ctrl-C.
pub async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = match signal(SignalKind::terminate()) {
        Ok(term) => term,
        Err(error) => {
            tracing::warn!(%error, "cannot listen for SIGTERM; Ctrl-C still ends this process");
            // Only Ctrl-C is left to wait for.
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// The files that a pattern of a configuration in `folder` names, sorted.
pub fn files_of(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    config::glob::expand(folder, pattern)
}
