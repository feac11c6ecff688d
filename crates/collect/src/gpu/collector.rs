//! The GPU collector: the driver through NVML, and where NVML cannot be loaded, what `nvidia-smi` says.

use std::time::Duration;

use model::{Family, Millis};

use super::driver::{Driver, Round};
use super::inventory::Inventory;
use super::page::{PageMaker, Software, Xids, counts, driver_state, source_error};
use super::pci::Bus;
use super::process::Tenants;
use super::reading::{GpuState, Reading};
use super::smi::{Dialect, Report, run};
use super::standing::{self, Standing};
use super::{Fault, FaultKind, Options, smi};
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings, State};

/// Collects `DCGM_FI_*` and `watchfire_gpu*`.
pub struct GpuCollector {
    driver: Driver,
    standing: Standing,
    smi: Option<run::Runner>,
    bus: Bus,
    page: PageMaker,
    deadline: Duration,
    inventory: Inventory,
    /// The most GPUs seen since the start.
    most: u32,
}

impl GpuCollector {
    /// Looks for the driver at the first collection.
    pub(super) fn new(paths: &Paths, driver: Driver, options: Options) -> Result<Self, Error> {
        let boot_id = paths.proc("sys/kernel/random/boot_id");
        let boot_id = Reader::default().word(&boot_id).unwrap_or_default().to_owned();
        let smi = match options.shown.nvidia_smi {
            Some(program) => Some(run::Runner::new(program, Dialect::embedded()?)),
            None => None,
        };
        let tenants = Tenants::new(paths, options.shown.processes_max);
        let xids = Xids {
            counts: options.xids,
            catalog: options.catalog,
        };
        Ok(Self {
            driver,
            standing: Standing::new(paths),
            smi,
            bus: Bus::new(paths),
            page: PageMaker::new(
                options.shown.selection,
                options.shown.host_label,
                options.hostname,
                Some(xids),
                Some(tenants),
            )?,
            deadline: options.deadline,
            inventory: Inventory::open(options.inventory, boot_id),
            most: 0,
        })
    }

    /// The page of readings; `known` GPUs are those the driver counts.
    fn show(&mut self, now: Millis, software: &Software, mut readings: Vec<Reading>) -> Readings {
        let count = |state: Option<GpuState>| {
            let counted = readings.iter().filter(|r| state.is_none_or(|s| r.state == s)).count();
            u32::try_from(counted).unwrap_or(u32::MAX)
        };
        let (known, answering) = (count(None), count(Some(GpuState::Ok)));
        let unwritten = self.inventory.meet(&readings).err();
        self.inventory.name(&mut readings);
        readings.extend(self.inventory.missing(&readings));
        self.page.know(&readings);
        let (families, readings) = self.page.families(now, software, readings, self.bus.slots(now));
        let mut page = Readings::of(families);
        page.families.push(standing::reasons(&readings));
        page.families.extend(self.counts(now, known, answering));
        page.errors = readings.into_iter().flat_map(|r| r.errors).collect();
        page.errors.extend(unwritten);
        page
    }

    fn counts(&mut self, now: Millis, known: u32, answering: u32) -> Vec<Family> {
        self.most = self.most.max(known);
        let on_bus = u32::try_from(self.bus.slots(now).len()).unwrap_or(u32::MAX);
        counts(answering, self.most.max(on_bus).max(self.inventory.len()))
    }

    /// What is known where NVML gives nothing: what nvidia-smi says, or only what should be there.
    fn without_library(&mut self, now: Millis, error: Error, word: &'static str, may_ask: bool) -> Readings {
        let report = if may_ask {
            let deadline = self.deadline;
            self.smi.as_mut().and_then(|smi| smi.ask(now, deadline))
        } else {
            None
        };
        if let Some(report) = report {
            return self.show_report(now, report);
        }
        let reason = error.chain();
        let mut readings = Readings::failed(error);
        let missing = self.inventory.missing(&[]);
        self.page.know(&missing);
        readings.families = self
            .page
            .families(now, &Software::default(), missing, self.bus.slots(now))
            .0;
        readings.families.extend(self.counts(now, 0, 0));
        readings.families.push(driver_state(word, &reason));
        readings
    }

    fn show_report(&mut self, now: Millis, report: Report) -> Readings {
        let (state, word, reason) = report.verdict();
        let driver = driver_state(word, reason);
        let errors: Vec<Error> = report
            .complaints
            .iter()
            .map(|c| source_error(c.collector, &c.reason))
            .collect();
        let software = Software {
            driver_version: report.driver_version,
            cuda_version: report.cuda_version,
            nvml_version: report.nvml_version,
        };
        let mut page = self.show(now, &software, report.readings);
        page.families.push(driver);
        page.errors.extend(errors);
        page.state = state;
        page
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
                let (word, may_ask) = match &error {
                    Error::Driverless { source } => (source.kind.as_str(), source.kind == FaultKind::NoLibrary),
                    Error::Driver { source, .. } => (source.kind.as_str(), false),
                    _ => (FaultKind::Other.as_str(), false),
                };
                return self.without_library(now, error, word, may_ask);
            }
        };
        let between = self.standing.families(&round);
        let Round {
            facts, fault, readings, ..
        } = round;
        let software = Software {
            driver_version: facts.driver_version,
            cuda_version: facts.cuda_version,
            nvml_version: facts.nvml_version,
        };
        let all_failed = !readings.is_empty() && readings.iter().all(|r| r.state == GpuState::Failed);
        let mut page = self.show(now, &software, readings);
        page.families.extend(between);
        if all_failed {
            // The driver went from under the library: load it anew next time.
            self.driver.close();
            page.state = page.errors.first().map_or(page.state, Error::state);
            let reason = page.errors.first().map(Error::chain).unwrap_or_default();
            let fault = fault.unwrap_or_else(|| Fault::new(FaultKind::Other, reason));
            page.families.push(driver_state(fault.kind.as_str(), &fault.text));
        } else {
            page.families.push(driver_state("ok", ""));
        }
        page
    }
}

/// Shows what nvidia-smi said on another machine, or at another time: the same page, without what only a live machine has.
pub struct CaptureCollector {
    report: Option<Report>,
    page: PageMaker,
}

impl CaptureCollector {
    /// Reads the capture; `moment` picks one of several (`idle`, `load`), the last by default.
    pub(super) fn new(options: super::CaptureOptions<'_>) -> Result<Self, Error> {
        let report = smi::read(&Dialect::embedded()?, options.capture, options.moment);
        Ok(Self {
            report: Some(report),
            page: PageMaker::new(options.selection, options.host_label, options.hostname, None, None)?,
        })
    }
}

impl Collector for CaptureCollector {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn collect(&mut self, now: Millis) -> Readings {
        let Some(report) = self.report.take() else {
            return Readings::failed(source_error(State::Absent, "the capture was shown"));
        };
        let (state, word, reason) = report.verdict();
        let driver = driver_state(word, reason);
        let errors = report
            .complaints
            .iter()
            .map(|c| source_error(c.collector, &c.reason))
            .collect();
        let software = Software {
            driver_version: report.driver_version,
            cuda_version: report.cuda_version,
            nvml_version: report.nvml_version,
        };
        let count = |readings: &[Reading], ok: bool| {
            let counted = readings.iter().filter(|r| !ok || r.state == GpuState::Ok).count();
            u32::try_from(counted).unwrap_or(u32::MAX)
        };
        let (answering, known) = (count(&report.readings, true), count(&report.readings, false));
        let (mut families, _) = self.page.families(now, &software, report.readings, &[]);
        families.extend(counts(answering, known));
        families.push(driver);
        Readings {
            families,
            errors,
            state,
        }
    }
}
