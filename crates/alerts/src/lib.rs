//! Alerts on their way to people: routed, grouped, silenced, deduplicated, delivered, remembered.
//!
//! ```text
//! rules ─► store ─► route ─► group ─► inhibit ─► mute ─► silence ─► dedup ─► receiver ─► record
//! ```
//!
//! [`Manager`] is the door: it holds the [`Engine`], the state machine in which all decisions are made,
//! and carries out what the engine wants sent. Time arrives in the engine as a value; tests turn it by
//! hand. What was told to whom lives in [`nflog`] and survives a restart, so that nothing is told twice.
//!
//! What is absent: rules (alerts are born there) and HTTP's server side.

pub mod manager;

pub mod engine;

pub mod alert;
pub mod group;
pub mod inhibit;
pub mod interval;
pub mod nflog;
pub mod pipeline;
pub mod route;
pub mod silence;
pub mod store;

mod counts;
pub mod delivery;
pub mod health;
pub mod payload;
pub mod receiver;
pub mod templates;

pub mod foreign;

pub mod defaults;
pub mod journal;

mod error;

pub use alert::{AVOID_RECEIVER, Alert, DRILL, fingerprint};
pub use defaults::{config_for_webhook, default_config};
pub use engine::{AlertState, AlertView, Engine, GroupView, Stats};
pub use error::Error;
pub use manager::Manager;
pub use silence::{Recurrence, Silence, SilenceState};
