//! Rule groups: recording rules and alerting rules, evaluated on a grid. Alerts are born here and nowhere else.
//!
//! [`Manager`] holds the groups, [`Group::evaluate`] runs one of them at a moment, [`alerting`] is the state machine
//! of one alerting rule, [`unknown`] keeps alerts whose machine died, [`unit_test`] runs promtool's test files on the same code.
//!
//! What is deliberately absent: the clock, threads, HTTP and notifications. Time arrives as a value; queries go
//! through [`model::QueryEngine`], samples leave through [`model::Appender`], alerts through [`AlertSink`].

pub mod alerting;
pub mod drill;
pub mod expand;
pub mod group;
mod listen;
pub mod load;
pub mod manager;
mod output;
mod recording;
mod restore;
mod run;
pub mod unit_test;
pub mod unknown;

mod error;

pub use alerting::{Alert, AlertState};
pub use error::Error;
pub use group::{Group, GroupStatus};
pub use load::{LoadedGroup, LoadedRule, RuleKind, check_text};
pub use manager::{AlertSink, Manager, Options};
pub use run::RuleStatus;
pub use unknown::Unknown;
