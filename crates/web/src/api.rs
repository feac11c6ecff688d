//! The routes under `/api`, one file per subject.

pub mod query;
pub mod series;
pub mod rules;
pub mod targets;
pub mod alerts;
pub mod status;
