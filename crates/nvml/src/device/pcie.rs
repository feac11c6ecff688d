//! The way between GPU and host.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::field::{FieldId, FieldValue};
use crate::sentinel::known_u32;
use crate::symbol::symbol;

/// The PCIe link. An idle GPU may train down on purpose: compare only under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieLink {
    /// The generation now (5 = 32 GT/s).
    pub generation: Option<u32>,
    /// The lanes now.
    pub width: Option<u32>,
    /// The highest generation of GPU and slot together.
    pub generation_max: Option<u32>,
    /// The most lanes of GPU and slot together.
    pub width_max: Option<u32>,
}

/// What went wrong on the PCIe link: counters since the driver was loaded. What a board does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieErrors {
    /// Corrected by the link itself.
    pub correctable: Option<u64>,
    /// Not corrected, the link goes on.
    pub non_fatal: Option<u64>,
    /// Not corrected, the link must be reset.
    pub fatal: Option<u64>,
    /// Refused packets, told by the other side.
    pub naks_received: Option<u64>,
    /// Refused packets, told to the other side.
    pub naks_sent: Option<u64>,
    /// Receiver errors.
    pub receiver: Option<u64>,
    /// Bad transaction packets.
    pub bad_tlp: Option<u64>,
    /// Bad link packets.
    pub bad_dllp: Option<u64>,
    /// Requests that the GPU does not support.
    pub unsupported: Option<u64>,
    /// Times the link left L0 for recovery.
    pub recoveries: Option<u64>,
    /// Times the replay counter rolled over.
    pub replay_rollovers: Option<u64>,
}

/// The traffic of the last 20 milliseconds, in KiB per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieThroughput {
    /// From the GPU to the host.
    pub tx: Option<u32>,
    /// From the host to the GPU.
    pub rx: Option<u32>,
}

impl Device {
    /// The link's generation and width, now and at most.
    ///
    /// Source: `nvmlDeviceGetCurrPcieLink{Generation,Width}`, `nvmlDeviceGetMaxPcieLink{Generation,Width}`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn pcie_link(&self) -> Result<PcieLink, Error> {
        let real = |value: Option<u32>| value.and_then(known_u32).filter(|value| *value > 0);
        Ok(PcieLink {
            generation: real(symbol!(self.library, nvmlDeviceGetCurrPcieLinkGeneration).read(self.handle, 0)?),
            width: real(symbol!(self.library, nvmlDeviceGetCurrPcieLinkWidth).read(self.handle, 0)?),
            generation_max: real(symbol!(self.library, nvmlDeviceGetMaxPcieLinkGeneration).read(self.handle, 0)?),
            width_max: real(symbol!(self.library, nvmlDeviceGetMaxPcieLinkWidth).read(self.handle, 0)?),
        })
    }

    /// Packets sent again: a counter.
    ///
    /// Source: `nvmlDeviceGetPcieReplayCounter`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn pcie_replays(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetPcieReplayCounter)
            .read(self.handle, 0)?
            .and_then(known_u32))
    }

    /// The traffic now, in KiB per second. Each direction costs the driver a 20 ms measurement.
    ///
    /// Source: `nvmlDeviceGetPcieThroughput`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn pcie_throughput(&self) -> Result<PcieThroughput, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetPcieThroughput);
        let direction = |counter| symbol.read_by(self.handle, counter, 0);
        Ok(PcieThroughput {
            tx: direction(raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES)?.and_then(known_u32),
            rx: direction(raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES)?.and_then(known_u32),
        })
    }

    /// What went wrong on the link, in one call.
    ///
    /// Source: fields `NVML_FI_DEV_PCIE_COUNT_*` and its siblings.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn pcie_errors(&self) -> Result<PcieErrors, Error> {
        let values = self.field_values(&[
            FieldId::PCIE_COUNT_CORRECTABLE_ERRORS,
            FieldId::PCIE_COUNT_NON_FATAL_ERROR,
            FieldId::PCIE_COUNT_FATAL_ERROR,
            FieldId::PCIE_COUNT_NAKS_RECEIVED,
            FieldId::PCIE_COUNT_NAKS_SENT,
            FieldId::PCIE_COUNT_RECEIVER_ERROR,
            FieldId::PCIE_COUNT_BAD_TLP,
            FieldId::PCIE_COUNT_BAD_DLLP,
            FieldId::PCIE_COUNT_UNSUPPORTED_REQ,
            FieldId::PCIE_L0_TO_RECOVERY_COUNTER,
            FieldId::PCIE_REPLAY_ROLLOVER_COUNTER,
        ])?;
        let count = |at: usize| values.get(at).and_then(FieldValue::as_u64);
        Ok(PcieErrors {
            correctable: count(0),
            non_fatal: count(1),
            fatal: count(2),
            naks_received: count(3),
            naks_sent: count(4),
            receiver: count(5),
            bad_tlp: count(6),
            bad_dllp: count(7),
            unsupported: count(8),
            recoveries: count(9),
            replay_rollovers: count(10),
        })
    }
}
