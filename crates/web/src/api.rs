//! The routes under `/api`, one file per subject.

pub mod alerts;
pub mod drill;
pub mod query;
pub mod rules;
pub mod series;
pub mod status;
pub mod targets;
