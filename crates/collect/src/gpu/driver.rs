//! The driver, wherever its library is loaded: in a helper process, or in this one.

use std::sync::Arc;
use std::time::Duration;

use model::Millis;
use nvml::Nvml;

use super::fault::Fault;
use super::helper::{Helpers, Supervisor};
use super::here::Here;
use super::reading::Reading;
use super::ring::Spreads;
use crate::Error;

/// The driver.
pub enum Driver {
    /// In this process: a call that does not return keeps a thread for ever.
    Here(Box<Here>),
    /// In helper processes.
    Helper(Arc<Supervisor>),
}

/// What all GPUs answered.
#[derive(Debug)]
pub struct Round {
    /// What the driver says of itself.
    pub facts: Facts,
    /// Why the driver as a whole does not answer, of one whose GPUs are known.
    pub fault: Option<Fault>,
    /// By index, one for each GPU that the driver counts.
    pub readings: Vec<Reading>,
    /// What was seen of each GPU between the rounds, in the same order; empty where nobody looks between rounds.
    pub spreads: Vec<Spreads>,
    /// How many helpers there are; `None` where there are none.
    pub helpers: Option<Helpers>,
}

/// What the driver says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The kernel driver's version.
    pub driver_version: String,
    /// The newest CUDA version it serves, `12.8`; empty where unknown.
    pub cuda_version: String,
    /// The library's version.
    pub nvml_version: String,
    /// How many GPUs it counts.
    pub gpus: u32,
}

impl Facts {
    /// Asks the library. No GPU is asked.
    pub fn read(nvml: &Nvml) -> Result<Self, Fault> {
        let cuda = nvml.cuda_version().ok().flatten();
        Ok(Self {
            driver_version: nvml.driver_version()?.unwrap_or_default(),
            cuda_version: cuda
                .map(|(major, minor)| format!("{major}.{minor}"))
                .unwrap_or_default(),
            nvml_version: nvml.nvml_version().ok().flatten().unwrap_or_default(),
            gpus: nvml.device_count()?,
        })
    }
}

impl Driver {
    /// Asks all GPUs everything, each as long as the deadline allows.
    ///
    /// # Errors
    ///
    /// [`Error::Driverless`] while there is no driver; it is looked for again from time to time.
    pub fn round(&mut self, now: Millis, deadline: Duration) -> Result<Round, Error> {
        match self {
            Self::Here(here) => here.round(now, deadline),
            Self::Helper(supervisor) => supervisor.round(now, deadline),
        }
    }

    /// Lets the library go, to be loaded anew; helpers are looked after by their supervisor.
    pub fn close(&mut self) {
        if let Self::Here(here) = self {
            here.close();
        }
    }
}
