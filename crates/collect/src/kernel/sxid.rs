//! Errors of the switches between GPUs (SXIDs), counted by switch, code and severity.

use model::{Family, Kind};

use super::counts::FirstSightZero;
use super::{Event, PciAddress};

/// Series beyond this are not made: a damaged log could name any code and address.
const SERIES_MAX: usize = 1_024;

/// Counts SXIDs: `watchfire_nvswitch_sxid_errors_total`.
#[derive(Debug, Default)]
pub struct SxidCounts {
    counts: FirstSightZero<(PciAddress, u32, &'static str)>,
}

impl SxidCounts {
    /// Counts an event of class `sxid`; lines that only tell more of one have another class.
    pub fn see(&mut self, event: &Event) {
        let (Some(code), Some(address), "sxid") = (event.sxid, event.pci_address(), event.class) else {
            return;
        };
        let key = (address, code, severity(&event.message));
        if self.counts.contains(&key) || self.counts.len() < SERIES_MAX {
            self.counts.add(key, 1.0);
        }
    }

    /// The counters, looked at by `look`.
    pub fn family(
        &mut self,
        look: impl FnOnce(
            &mut FirstSightZero<(PciAddress, u32, &'static str)>,
        ) -> Vec<((PciAddress, u32, &'static str), f64)>,
    ) -> Family {
        let mut family = Family::new(
            "watchfire_nvswitch_sxid_errors_total",
            Kind::Counter,
            "Errors (SXIDs) of the switch between GPUs since the start, by code and by the severity that the kernel's \
             message names (fatal, non-fatal, unknown).",
        );
        for ((address, code, severity), count) in look(&mut self.counts) {
            family.push(
                vec![
                    ("pci_bus_id", address.to_string()),
                    ("sxid", code.to_string()),
                    ("severity", severity.to_owned()),
                ],
                count,
            );
        }
        family
    }
}

/// The word that stands after the code.
fn severity(message: &str) -> &'static str {
    match message.split(", ").nth(1) {
        Some("Fatal") => "fatal",
        Some("Non-fatal") => "non-fatal",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Classifier, PATTERNS};

    #[test]
    fn a_switch_counts_by_code_and_severity_and_details_do_not_count() {
        let classifier = Classifier::new(PATTERNS).expect("our own table");
        let mut counts = SxidCounts::default();
        for line in [
            "nvidia-nvswitch0: SXid (PCI:0000:00:01.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            "nvidia-nvswitch0: SXid (PCI:0000:00:01.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00",
            "nvidia-nvswitch0: SXid (PCI:0000:00:01.0): 20034, Data {0x50610002, 0x10100030, 0x0, 0x0, 0x0, 0x0}",
            "nvidia-nvswitch0: SXid (PCI:0000:00:01.0): 20034, Fatal, Link 31 LTSSM Fault Up",
            "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 22013, Non-fatal, Link 57 Minion Link DLREQ interrupt",
        ] {
            counts.see(&classifier.classify(line).expect("an event"));
        }
        let told = |family: &Family| -> Vec<String> {
            let line = |m: &model::Metric| {
                let labels: Vec<&str> = m.labels.iter().map(|(_, v)| v.as_str()).collect();
                format!("{} {}", labels.join(" "), m.value)
            };
            family.metrics.iter().map(line).collect()
        };
        assert!(
            told(&counts.family(FirstSightZero::collect))
                .iter()
                .all(|line| line.ends_with(" 0"))
        );
        assert_eq!(
            told(&counts.family(FirstSightZero::collect)),
            ["00000000:00:01.0 20034 fatal 2", "00000000:0A:00.0 22013 non-fatal 1"]
        );
    }
}
