//! The GPU driver's management library (NVML), loaded at run time and made safe.
//!
//! [`Nvml::load`] opens `libnvidia-ml.so.1`, [`Nvml::device`] gives a [`Device`], and each
//! of its methods asks the driver one question. The answer has three forms, and they stay apart:
//!
//! * `Ok(Some(value))`: the driver told it;
//! * `Ok(None)`: this board, driver or mode has no such thing (not supported, symbol absent,
//!   a sentinel such as 9223372036854775794 in place of a number, a value out of all range).
//!   Absent is not zero;
//! * `Err(error)`: it exists and cannot be had now: [`Error::GpuLost`],
//!   [`Error::NoPermission`], [`Error::Timeout`] and so on.
//!
//! Units are the driver's own and stand in each method's first line: MHz, milliwatts,
//! millijoules, bytes, percent, degrees Celsius, nanoseconds. The one conversion made here is
//! KiB to bytes for NVLink counters.
//!
//! Absent by design: any call that changes the GPU. Calls can block for as long as the kernel
//! driver pleases; deadlines are the caller's business (a thread per GPU, in a helper process).
//! A [`Device`] and an [`EventSet`] keep the library alive, so they may move to other threads.

mod device;
mod error;
mod event;
mod field;
mod gpm;
#[cfg(test)]
mod layout;
mod library;
mod sentinel;
mod symbol;

pub use device::Device;
pub use device::accounting::{AccountedProcess, Accounting};
pub use device::clocks::{ClockReasons, ClockType, PerfPolicy, Violation};
pub use device::ecc::{
    EccCounter, EccError, EccMode, MemoryLocation, RemapHistogram, RemappedRows, RetiredPages, SramErrors,
};
pub use device::fabric::{Fabric, FabricHealth, FabricState, FabricSummary, Misconfiguration};
pub use device::identity::{Architecture, Inforom, PciInfo};
pub use device::memory::{Bar1, Memory};
pub use device::mig::{MigAttributes, MigMode};
pub use device::mode::ComputeMode;
pub use device::nvlink::{NvLink5Errors, NvLinkErrors, NvLinkRemote, NvLinkThroughput};
pub use device::pcie::{PcieErrors, PcieLink, PcieThroughput};
pub use device::power::{PowerLimitRange, PowerScope, ScopedPower};
pub use device::process::{Process, ProcessUtilization};
pub use device::temperature::{MarginThresholds, TemperatureThreshold};
pub use device::utilization::Utilization;
pub use error::Error;
pub use event::{EventSet, XidEvent};
pub use field::{FieldId, FieldValue, Value};
pub use gpm::{GpmMetric, GpmSample};
pub use library::{ConfidentialCompute, Nvml};
