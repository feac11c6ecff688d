//! The driver at a time: there or not, and which version.

use super::fault::{Fault, FaultKind};
use super::{Driver, Scenario};

impl Scenario {
    /// The code that `nvmlInit` fails with at a time: 9 while the driver is gone.
    #[must_use]
    pub fn init_error(&self, t_ms: i64) -> Option<u32> {
        if self.is_driver_gone(t_ms) {
            return Some(DRIVER_NOT_LOADED);
        }
        let fault = self.faults().iter().filter(|fault| fault.active_at(t_ms));
        fault
            .filter_map(|fault| match fault.kind {
                FaultKind::InitError(code) => Some(code),
                _ => None,
            })
            .next_back()
            .or(self.driver().init_error)
    }

    /// Whether a GPU is not there any more for who begins at a time.
    #[must_use]
    pub fn is_missing(&self, gpu: usize, t_ms: i64) -> bool {
        self.faults_of(gpu)
            .any(|fault| matches!(fault.kind, FaultKind::Missing) && fault.active_at(t_ms))
    }

    /// Whether the driver is unloaded at a time.
    #[must_use]
    pub fn is_driver_gone(&self, t_ms: i64) -> bool {
        self.unloads().any(|fault| fault.active_at(t_ms))
    }

    /// How often the driver has been unloaded by a time: who began before can ask nothing any more.
    #[must_use]
    pub fn driver_generation(&self, t_ms: i64) -> usize {
        self.unloads().filter(|fault| fault.begun_by(t_ms)).count()
    }

    /// The driver at a time, with the version that it came back with.
    #[must_use]
    pub fn driver_at(&self, t_ms: i64) -> Driver {
        let mut driver = self.driver().clone();
        for fault in self
            .unloads()
            .filter(|fault| fault.begun_by(t_ms) && !fault.active_at(t_ms))
        {
            if let FaultKind::DriverUnload(after) = &fault.kind {
                driver.version = after.version.clone().unwrap_or(driver.version);
                driver.nvml = after.nvml.clone().unwrap_or(driver.nvml);
                driver.cuda = after.cuda.unwrap_or(driver.cuda);
            }
        }
        driver
    }

    fn unloads(&self) -> impl Iterator<Item = &Fault> {
        self.faults()
            .iter()
            .filter(|fault| matches!(fault.kind, FaultKind::DriverUnload(_)))
    }
}

const DRIVER_NOT_LOADED: u32 = 9;
