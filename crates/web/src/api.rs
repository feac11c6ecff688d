//! The routes under `/api`, one file per subject.

pub mod admin;
pub mod alertmanager;
pub mod alerts;
pub mod deliveries;
pub mod drill;
pub mod exemplars;
pub mod federate;
pub mod push;
pub mod queries;
pub mod query;
pub mod read;
pub mod rules;
pub mod series;
pub mod status;
pub mod targets;
