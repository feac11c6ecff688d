//! The way between GPU and host.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
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
}
