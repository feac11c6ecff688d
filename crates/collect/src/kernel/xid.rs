//! XIDs counted by GPU and code, from two sources that tell of the same errors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::{Family, Kind, Millis};

use super::counts::FirstSightZero;
use super::join::Join;
use super::tidings::Bell;
use super::{PciAddress, XidCatalog, lock};

/// Series beyond this are not made: a damaged log could name any code and address.
const SERIES_MAX: usize = 4_096;

/// Who tells of an XID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XidSource {
    /// The kernel's messages of the form that names the code.
    Kernel,
    /// The driver's own events.
    Driver,
    /// The kernel's messages that tell of the same without a code: a GPU that has fallen off the bus.
    KernelText,
}

/// The labels of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuIdentity {
    /// The driver's index.
    pub gpu: String,
    /// `GPU-…`.
    pub uuid: String,
    /// As the driver writes it, `00000000:1B:00.0`.
    pub pci_bus_id: String,
}

/// Counts XIDs: `watchfire_gpu_xid_errors_total`. Clones count together.
///
/// Per GPU and code, within five seconds the count is the largest of the sources', never their sum ([`Join`]). Whichever
/// source speaks first counts.
#[derive(Clone)]
pub struct XidCounts {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// Codes that have a zero on each GPU from the start.
    expected: Vec<u32>,
    gpus: BTreeMap<PciAddress, GpuIdentity>,
    counts: FirstSightZero<(PciAddress, u32)>,
    /// What the sources have told, by counter.
    joins: BTreeMap<(PciAddress, u32), Join>,
    /// The last code of each GPU, as the driver told it.
    last: BTreeMap<PciAddress, u32>,
    driver_attached: bool,
    bell: Option<Bell>,
}

impl XidCounts {
    /// Nothing counted; codes that the catalogue watches get zeros once their GPU is known.
    #[must_use]
    pub fn new(catalog: &XidCatalog) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                expected: catalog.watched().collect(),
                gpus: BTreeMap::new(),
                counts: FirstSightZero::default(),
                joins: BTreeMap::new(),
                last: BTreeMap::new(),
                driver_attached: false,
                bell: None,
            })),
        }
    }

    /// Makes a GPU known. It stays known when it is lost: its counters are what tells of it.
    pub fn know(&self, identity: GpuIdentity) {
        let Some(address) = PciAddress::parse(&identity.pci_bus_id) else {
            return;
        };
        let mut inner = lock(&self.inner);
        for code in inner.expected.clone() {
            inner.counts.expect((address, code));
        }
        inner.gpus.insert(address, identity);
    }

    /// Takes note whether the driver's events are being waited for.
    pub fn set_driver_attached(&self, attached: bool) {
        lock(&self.inner).driver_attached = attached;
    }

    /// Whether the driver's events are being waited for.
    #[must_use]
    pub fn driver_attached(&self) -> bool {
        lock(&self.inner).driver_attached
    }

    /// Counts an event of the GPU at `pci`, at the event's own time; an address of no form is not counted.
    pub fn count(&self, source: XidSource, pci: &str, xid: u32, time: Millis) {
        let Some(address) = PciAddress::parse(pci) else { return };
        let mut inner = lock(&self.inner);
        inner.last.insert(address, xid);
        let key = (address, xid);
        if !inner.counts.contains(&key) && inner.counts.len() >= SERIES_MAX {
            return;
        }
        if inner.joins.entry(key).or_default().is_new(source, time) {
            inner.counts.add(key, 1.0);
            drop(inner);
            self.ring(time);
        }
    }

    pub(super) fn set_bell(&self, bell: Bell) {
        lock(&self.inner).bell = Some(bell);
    }

    /// Says that something was counted.
    pub(super) fn ring(&self, time: Millis) {
        let bell = lock(&self.inner).bell.clone();
        if let Some(bell) = bell {
            bell(time);
        }
    }

    /// The last code seen on the GPU at `pci`, as `DCGM_FI_DEV_XID_ERRORS` shows it; 0 for none.
    #[must_use]
    pub fn last(&self, pci: &str) -> u32 {
        let address = PciAddress::parse(pci);
        let inner = lock(&self.inner);
        address.and_then(|a| inner.last.get(&a).copied()).unwrap_or(0)
    }

    pub(super) fn any_counted(&self) -> bool {
        lock(&self.inner).counts.any()
    }

    pub(super) fn family(&self) -> Family {
        self.family_of(FirstSightZero::collect)
    }

    /// The counters as they are, for a listener ([`FirstSightZero::now`]).
    pub(super) fn family_now(&self, shown: bool) -> Family {
        self.family_of(|counts| counts.now(shown))
    }

    fn family_of(
        &self,
        look: impl FnOnce(&mut FirstSightZero<(PciAddress, u32)>) -> Vec<((PciAddress, u32), f64)>,
    ) -> Family {
        let mut family = Family::new(
            "watchfire_gpu_xid_errors_total",
            Kind::Counter,
            "Errors (XIDs) of the GPU since the start, each occurrence counted once, from the kernel's messages and the \
             driver's events.",
        );
        let mut inner = lock(&self.inner);
        for ((address, xid), count) in look(&mut inner.counts) {
            let known = inner.gpus.get(&address);
            let of = |field: fn(&GpuIdentity) -> &String| known.map(field).cloned().unwrap_or_default();
            family.push(
                vec![
                    ("gpu", of(|g| &g.gpu)),
                    ("UUID", of(|g| &g.uuid)),
                    (
                        "pci_bus_id",
                        known.map_or_else(|| address.to_string(), |g| g.pci_bus_id.clone()),
                    ),
                    ("xid", xid.to_string()),
                ],
                count,
            );
        }
        family
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events as `k0` (kernel at 0 s), `d2` (driver at 2 s), `t1` (a text of the kernel at 1 s), in the order of delivery.
    #[track_caller]
    fn check(events: &str, want: f64) {
        let counts = XidCounts::new(&XidCatalog::embedded().expect("our own table"));
        for event in events.split_ascii_whitespace() {
            let (source, at) = event.split_at(1);
            let source = match source {
                "k" => XidSource::Kernel,
                "d" => XidSource::Driver,
                _ => XidSource::KernelText,
            };
            let at: Millis = at.parse().expect("seconds");
            counts.count(source, "0000:1b:00", 79, at * 1000);
        }
        let _ = counts.family();
        assert_eq!(counts.family().metrics[0].value.to_bits(), want.to_bits(), "{events}");
    }

    #[test]
    fn two_sources_of_one_error_count_once() {
        check("k0", 1.0);
        check("d0", 1.0);
        check("k0 d0", 1.0);
        check("d0 k5", 1.0);
        check("k0 d6", 2.0);
    }

    #[test]
    fn repeats_count_as_often_as_the_better_source_tells() {
        check("k0 k0 k1", 3.0);
        check("k0 k0 k1 d1", 3.0);
        check("d0 k0 k0 k1", 3.0);
        check("k0 d0 k1 d1 k2 d2", 3.0);
        check("k0 k1 d1 d2", 2.0);
    }

    #[test]
    fn a_text_of_the_kernel_counts_only_where_no_code_tells_of_it() {
        check("t0", 1.0);
        check("t0 k0 d1", 1.0);
        check("k0 t0 t0 d0", 2.0);
        check("d0 t6", 2.0);
    }

    #[test]
    fn what_counts_is_when_it_was_and_not_when_it_came() {
        // The kernel's log is read late: its line belongs to the driver's first event, whatever came between.
        check("d0 d100 d200 k0 k100 k200", 3.0);
        check("k100 d0", 2.0);
        check("k100 d0 d100 k0", 2.0);
    }

    #[test]
    fn two_storms_of_one_error_count_as_the_larger() {
        let storm = |source: &str, n: usize| format!("{source}1 ").repeat(n);
        check(&format!("{}{}", storm("k", 1_000), storm("d", 1_000)), 1_000.0);
        check(&format!("{}{}", storm("d", 10), storm("k", 1_000)), 1_000.0);
        check(
            &format!("{}{}{}", storm("k", 500), storm("d", 700), storm("k", 500)),
            1_000.0,
        );
    }

    #[test]
    fn a_storm_is_counted_in_full_and_remembered_in_part() {
        let storm: String = (0..1_000).map(|n| format!("k{} ", n / 500)).collect();
        check(&storm, 1_000.0);
    }

    #[test]
    fn a_known_gpu_has_zeros_and_keeps_its_labels() {
        let counts = XidCounts::new(&XidCatalog::embedded().expect("our own table"));
        counts.know(GpuIdentity {
            gpu: "3".into(),
            uuid: "GPU-x".into(),
            pci_bus_id: "00000000:1B:00.0".into(),
        });
        let zeros = counts.family();
        let has = |code: &str| zeros.metrics.iter().any(|m| m.labels[3].1 == code && m.value == 0.0);
        for code in ["48", "63", "64", "74", "79", "94", "95", "119", "120"] {
            assert!(has(code), "{code}");
        }
        counts.count(XidSource::Kernel, "0000:1b:00", 79, 0);
        let after = counts.family();
        let counted = after.metrics.iter().find(|m| m.value > 0.0).expect("one is counted");
        let labels: Vec<&str> = counted.labels.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(labels, ["3", "GPU-x", "00000000:1B:00.0", "79"]);
        assert_eq!(counts.last("0000:1b:00.0"), 79);
    }
}
