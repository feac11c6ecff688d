//! The GPU page.

use std::time::Duration;

use model::{Family, Kind, Millis};

use super::Options;
use super::driver::Driver;
use super::field::FieldTable;
use super::identity::Identity;
use super::inventory::Inventory;
use super::pci::Bus;
use super::question::{VGPU_LICENSE, XID_LAST};
use super::reading::{GpuState, Reading};
use super::standing::{self, Standing};
use crate::kernel::{GpuIdentity, XidCatalog, XidCounts};
use crate::source::Reader;
use crate::{Collector, Paths, Readings};

/// Collects `DCGM_FI_*` and `watchfire_gpu*`.
pub struct GpuCollector {
    driver: Driver,
    standing: Standing,
    bus: Bus,
    fields: FieldTable,
    hostname: String,
    deadline: Duration,
    xids: XidCounts,
    catalog: XidCatalog,
    inventory: Inventory,
    /// The most GPUs seen since the start.
    most: u32,
}

/// What is the same on every line.
struct Host {
    name: String,
    driver_version: String,
    cuda_version: String,
}

impl GpuCollector {
    /// Looks for the driver at the first collection.
    pub(super) fn new(paths: &Paths, driver: Driver, options: Options) -> Self {
        let boot_id = paths.proc("sys/kernel/random/boot_id");
        let boot_id = Reader::default().word(&boot_id).unwrap_or_default().to_owned();
        Self {
            driver,
            standing: Standing::new(paths),
            bus: Bus::new(paths),
            fields: options.fields,
            hostname: options.hostname,
            deadline: options.deadline,
            xids: options.xids,
            catalog: options.catalog,
            inventory: Inventory::open(options.inventory, boot_id),
            most: 0,
        }
    }

    fn families(&self, host: &Host, readings: &[Reading]) -> Vec<Family> {
        let mut families = self.dcgm(host, readings);
        families.extend(own(host, readings));
        families
    }

    fn dcgm(&self, host: &Host, readings: &[Reading]) -> Vec<Family> {
        let mut families = Vec::with_capacity(self.fields.fields.len());
        for field in &self.fields.fields {
            let mut family = Family::new(field.name.clone(), field.kind, field.help.clone());
            for reading in readings.iter().filter(|r| r.state == GpuState::Ok) {
                let mut labels = host.labels(&reading.identity);
                let number = match field.source.as_str() {
                    XID_LAST => {
                        let code = self.xids.last(&reading.identity.pci_bus_id);
                        labels.push(("err_code", code.to_string()));
                        labels.push(("err_msg", self.xid_message(code)));
                        Some(f64::from(code))
                    }
                    // A whole GPU needs no license, and says so as the exporter does.
                    VGPU_LICENSE => (!reading.identity.is_vgpu()).then_some(0.0),
                    word => reading.numbers.get(word).copied(),
                };
                family.push_some(|| labels, number.map(|n| field.value(n)));
            }
            families.push(family);
        }
        families
    }

    fn xid_message(&self, code: u32) -> String {
        match self.catalog.get(code) {
            _ if code == 0 => "No Error".to_owned(),
            Some(entry) => entry.name.clone(),
            None => "Unknown Error".to_owned(),
        }
    }

    /// Tells the XID counters whose slots these are.
    fn know(&self, readings: &[Reading]) {
        for (i, identity) in readings.iter().map(|r| &r.identity).enumerate() {
            // A missing GPU stands last: its slot may be another's by now.
            let is_taken = readings[..i]
                .iter()
                .any(|r| r.identity.pci_bus_id == identity.pci_bus_id);
            if !identity.uuid.is_empty() && !is_taken {
                self.xids.know(GpuIdentity {
                    gpu: identity.index.to_string(),
                    uuid: identity.uuid.clone(),
                    pci_bus_id: identity.pci_bus_id.clone(),
                });
            }
        }
    }

    /// Counts that stand whether the driver answers or not; nothing on a machine without GPUs.
    fn counts(&mut self, now: Millis, known: u32, answering: u32) -> Vec<Family> {
        self.most = self.most.max(known);
        let expected = self.most.max(self.bus.gpus(now)).max(self.inventory.len());
        if expected == 0 {
            return Vec::new();
        }
        let gauge = |name: &str, help: &str, value: u32| {
            let mut family = Family::new(name, Kind::Gauge, help);
            family.push(Vec::new(), value.into());
            family
        };
        vec![
            gauge("watchfire_gpus_present", "GPUs that answer.", answering),
            gauge(
                "watchfire_gpus_expected",
                "GPUs that should answer: those seen before, those the driver shows, those that sit on the bus; the most of these.",
                expected,
            ),
        ]
    }
}

impl Collector for GpuCollector {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn collect(&mut self, now: Millis) -> Readings {
        let deadline = self.deadline;
        if self.inventory.forget_if_deleted() {
            self.most = 0;
        }
        let round = match self.driver.round(now, deadline) {
            Ok(round) => round,
            Err(error) => {
                let mut readings = Readings::failed(error);
                readings.families = self.counts(now, 0, 0);
                let is_gpu_machine = !readings.families.is_empty();
                readings
                    .families
                    .extend(self.standing.without(&readings.errors, is_gpu_machine));
                self.know(&self.inventory.missing(&[]));
                return readings;
            }
        };
        let between = self.standing.with(&round);
        let mut readings = round.readings;
        let host = Host {
            name: self.hostname.clone(),
            driver_version: round.facts.driver_version,
            cuda_version: round.facts.cuda_version,
        };
        let count = |state: Option<GpuState>| {
            let counted = readings.iter().filter(|r| state.is_none_or(|s| r.state == s)).count();
            u32::try_from(counted).unwrap_or(u32::MAX)
        };
        let (known, answering) = (count(None), count(Some(GpuState::Ok)));
        let all_failed = known > 0 && count(Some(GpuState::Failed)) == known;
        let unwritten = self.inventory.meet(&readings).err();
        self.inventory.name(&mut readings);
        readings.extend(self.inventory.missing(&readings));
        self.know(&readings);
        let mut page = Readings::of(self.families(&host, &readings));
        page.families.extend(self.counts(now, known, answering));
        page.families.extend(between);
        page.families.push(standing::reasons(&readings));
        page.errors = readings.into_iter().flat_map(|r| r.errors).collect();
        page.errors.extend(unwritten);
        if all_failed {
            // The driver went from under the library: load it anew next time.
            self.driver.close();
            page.state = page.errors.first().map_or(page.state, crate::Error::state);
        }
        page
    }
}

impl Host {
    /// The exporter's labels in the exporter's order.
    fn labels(&self, gpu: &Identity) -> Vec<(&'static str, String)> {
        vec![
            ("gpu", gpu.index.to_string()),
            ("UUID", gpu.uuid.clone()),
            ("pci_bus_id", gpu.pci_bus_id.clone()),
            ("device", format!("nvidia{}", gpu.index)),
            ("modelName", gpu.model.clone()),
            ("Hostname", self.name.clone()),
            ("DCGM_FI_DRIVER_VERSION", self.driver_version.clone()),
        ]
    }
}

/// Our own series.
fn own(host: &Host, readings: &[Reading]) -> Vec<Family> {
    let mut up = Family::new(
        "watchfire_gpu_up",
        Kind::Gauge,
        "Whether the GPU answers; the state says how it stands with it (ok, lost, reset_required, hung, failed, missing).",
    );
    let mut info = Family::new(
        "watchfire_gpu_info",
        Kind::Gauge,
        "What the GPU is; the value is always 1.",
    );
    let mut margin = Family::new(
        "watchfire_gpu_temperature_margin_celsius",
        Kind::Gauge,
        "Degrees left before the hardware cuts the clocks.",
    );
    let mut throttle = Family::new(
        "watchfire_gpu_throttle_seconds_total",
        Kind::Counter,
        "Seconds in which the GPU's clocks were held down, by reason, as looked at every second.",
    );
    for reading in readings {
        let identity = &reading.identity;
        let is_up = reading.state == GpuState::Ok;
        let mut labels = identity.labels();
        labels.push(("state", reading.state.as_str().to_owned()));
        up.push(labels, f64::from(u8::from(is_up)));
        if !is_up {
            continue;
        }
        let mut labels = identity.labels();
        labels.extend([
            ("modelName", identity.model.clone()),
            ("serial", identity.serial.clone()),
            ("vbios_version", identity.vbios.clone()),
            ("driver_version", host.driver_version.clone()),
            ("cuda_version", host.cuda_version.clone()),
        ]);
        info.push(labels, 1.0);
        margin.push_some(|| identity.labels(), margin_of(reading));
        for (reason, seconds) in reading.throttle.seconds() {
            let labels = vec![
                ("gpu", identity.index.to_string()),
                ("UUID", identity.uuid.clone()),
                ("pci_bus_id", identity.pci_bus_id.clone()),
                ("reason", reason.to_owned()),
            ];
            throttle.push(labels, seconds);
        }
    }
    vec![up, info, margin, throttle]
}

/// Degrees to the slowdown: by the board's own margin where it has one, else threshold minus temperature.
fn margin_of(reading: &Reading) -> Option<f64> {
    let number = |word: &str| reading.numbers.get(word).copied();
    let by_margin = number("margin_temperature").zip(number("margin_slowdown"));
    let by_threshold = || number("threshold_slowdown").zip(number("temperature"));
    by_margin.or_else(by_threshold).map(|(above, below)| above - below)
}
