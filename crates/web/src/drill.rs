//! Drills, as the hub's routes see them: begun, looked at, ended, acknowledged. Who runs them is the binary's business.

use serde_json::Value;

/// What a drill is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrillRequest {
    /// The alerts by name; every one that can be drilled where empty.
    pub alerts: Vec<String>,
    /// How long to wait for a person's acknowledgement, in seconds; 0 waits for the delivery only.
    pub acknowledge_seconds: u64,
}

/// Runs drills, one at a time.
pub trait Drills: Send + Sync {
    /// Begins a drill and tells its state, its `id` among it.
    ///
    /// # Errors
    ///
    /// Another one runs, or an alert cannot be drilled: why.
    fn start(&self, request: DrillRequest) -> Result<Value, String>;

    /// The state of a drill; whoever looks keeps it alive.
    fn look(&self, id: &str) -> Option<Value>;

    /// Ends a drill early; what it began is cleaned up. Whether there is such a drill.
    fn stop(&self, id: &str) -> bool;

    /// Takes a person's acknowledgement by the word of the link in the message; the alert's name.
    fn acknowledge(&self, id: &str, word: &str) -> Option<String>;

    /// The alert that such a link speaks of; acknowledges nothing.
    fn asked(&self, id: &str, word: &str) -> Option<String>;

    /// The alerts whose drill was passed and still counts.
    fn passed(&self) -> Value;
}
