//! One GPU. What can be asked of it stands in one file per subject.

use std::sync::Arc;

use crate::library::Library;
use crate::symbol::Handle;

pub(crate) mod accounting;
pub(crate) mod clocks;
pub(crate) mod ecc;
pub(crate) mod fabric;
pub(crate) mod identity;
pub(crate) mod memory;
pub(crate) mod mig;
pub(crate) mod mode;
pub(crate) mod nvlink;
pub(crate) mod pcie;
pub(crate) mod power;
pub(crate) mod process;
pub(crate) mod temperature;
pub(crate) mod utilization;

/// One GPU (or one MIG device), open for questions from any thread.
///
/// # Errors
///
/// Every method may answer with [`Error::GpuLost`](crate::Error::GpuLost),
/// [`ResetRequired`](crate::Error::ResetRequired), [`NoPermission`](crate::Error::NoPermission),
/// [`Timeout`](crate::Error::Timeout) or [`Unknown`](crate::Error::Unknown); the methods' own
/// pages repeat it only where there is more to say.
#[derive(Clone)]
pub struct Device {
    pub(crate) library: Arc<Library>,
    pub(crate) handle: Handle,
    index: u32,
}

impl Device {
    pub(crate) fn new(library: Arc<Library>, handle: Handle, index: u32) -> Self {
        Self { library, handle, index }
    }

    /// The NVML index it was opened with.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
