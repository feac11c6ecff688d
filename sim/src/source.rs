//! Where a server comes from: a scenario of ours, a machine profile, or a capture.

use std::sync::Arc;

use crate::error::Error;
use crate::scenario::Scenario;

/// Sees which of them a text is, and reads it.
pub(crate) fn parse(text: &str) -> Result<Arc<Scenario>, Error> {
    Scenario::parse(text)
}
