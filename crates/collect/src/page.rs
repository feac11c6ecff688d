//! Which collectors make which page.
//!
//! ```text
//! /metrics         every family
//! /metrics/gpu     dcgm-exporter's families, ours about GPUs, and XID counters     job "dcgm"
//! /metrics/node    node_exporter's families, OOM kills and kernel events           job "node"
//! ```
//!
//! `watchfire collect gpu|node|kernel` prints one page once. Each page tells the state of its own collectors.

/// A page of families. A collector stands on exactly one page besides [`Page::All`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Page {
    /// `/metrics`.
    All,
    /// `/metrics/gpu`.
    Gpu,
    /// `/metrics/node`.
    Node,
}

impl Page {
    /// The page of this path, if there is one.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            "/metrics" => Some(Self::All),
            "/metrics/gpu" => Some(Self::Gpu),
            "/metrics/node" => Some(Self::Node),
            _ => None,
        }
    }

    /// Whether this page shows what belongs to `home`.
    #[must_use]
    pub fn shows(self, home: Self) -> bool {
        self == Self::All || self == home
    }
}
