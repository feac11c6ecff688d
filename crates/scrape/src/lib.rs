//! Scraping: a page is fetched, read against what the same target showed before, and handed to the store.
//!
//! Reading order: [`job`] is what a configuration asks for, [`target`] one place to scrape and how it fares,
//! [`append`] turns a page into a batch with the help of [`cache`], [`scraper`] fetches, [`manager`] keeps the
//! loops running, [`events`] stores what cannot wait for the next scrape. The machine's own collectors are a [`LocalTarget`]: no socket, but the same bytes and the
//! same path behind them.
//!
//! Targets stand in the configuration, or are found by `discovery` in files and on HTTP servers.
//!
//! What is deliberately absent: other kinds of discovery, queries, and the wall clock — time comes from
//! [`model::Clock`] or from the caller.
//!
//! Invariants: a page that is wrong anywhere stores nothing of itself, `up` is 0 and the reason stands in the
//! target's status; a series that ends gets a staleness marker once; whatever a target sends, memory is
//! bounded by the body limit.

pub mod job;
pub mod target;

pub mod append;
mod cache;
mod discovery;

pub mod events;
pub mod manager;
pub mod scraper;

mod error;

pub use append::{Ingest, Outcome};
pub use error::Error;
pub use job::Job;
pub use manager::Manager;
pub use scraper::Client;
pub use target::{DroppedTarget, Health, LocalTarget, Target, TargetStatus, Targets};
