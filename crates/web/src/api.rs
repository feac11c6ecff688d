//! The routes under `/api`, one file per subject.

pub mod alertmanager;
pub mod alerts;
pub mod deliveries;
pub mod drill;
pub mod queries;
pub mod query;
pub mod rules;
pub mod series;
pub mod status;
pub mod targets;
