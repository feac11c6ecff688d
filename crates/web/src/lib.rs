//! HTTP: Prometheus' API, our own, the page, and an agent's exposition.
//!
//! [`hub`] and [`agent`] give the routes of the two kinds of process, [`serve`] runs them on a listener. Requests read
//! parameters ([`params`]), ask [`model::QueryEngine`] or take a snapshot of an engine, and write JSON.
//!
//! What is deliberately absent: the stores and the collectors. Pages of metrics come in as functions.

pub mod agent;
mod api;
pub mod data;
pub mod drill;
mod error;
pub mod events;
mod guard;
pub mod hub;
mod json;
mod page;
mod params;
pub mod queries;
pub mod ring;
mod serve;
mod work;
pub mod yaml;

pub use agent::{Agent, MetricsPage};
pub use data::Data;
pub use events::EventLog;
pub use hub::{Hub, HubStatus};
pub use ring::{Ring, RingQuery, RingRefusal};
pub use serve::{ListenError, Site, listen, serve};

#[cfg(test)]
mod tests;
