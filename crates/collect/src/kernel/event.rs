//! One recognised event.

use model::Millis;
use serde::Serialize;

use super::PciAddress;

/// One recognised event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When the kernel told it, by the wall clock; 0 when not known.
    pub time: Millis,
    /// Its class in `data/kernel_events.yml`.
    pub class: &'static str,
    /// The message without what loggers put before it.
    pub message: String,
    /// A GPU's error code.
    pub xid: Option<u32>,
    /// A switch's error code.
    pub sxid: Option<u32>,
    /// The GPU or switch, as the message writes it.
    pub pci: Option<String>,
    /// The process at fault, or the victim.
    pub pid: Option<u32>,
    /// Its name.
    pub process: Option<String>,
    /// What ran out: `none` (the host's memory), `memcg`, `cpuset`, `memory_policy`.
    pub constraint: Option<String>,
    /// The victim's control group.
    pub cgroup: Option<String>,
}

impl Event {
    /// The GPU or switch as an address that can be compared.
    #[must_use]
    pub fn pci_address(&self) -> Option<PciAddress> {
        self.pci.as_deref().and_then(PciAddress::parse)
    }

    /// The form that `watchfire collect kernel` prints; `line` is the line as it was read.
    pub(super) fn to_json<'a>(&'a self, line: &'a str) -> impl Serialize + 'a {
        Json {
            line,
            class: self.class,
            xid: self.xid,
            sxid: self.sxid,
            pci: self.pci.as_deref(),
            pid: self.pid,
            process: self.process.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Json<'a> {
    line: &'a str,
    class: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    xid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sxid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a str>,
}
