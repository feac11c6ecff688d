//! How busy the GPU is, by the driver's coarse counters (see [`gpm`](crate::GpmSample) for finer ones).

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::sentinel::known_percent;
use crate::symbol::symbol;

/// The share of time with work over the last sample period (1/6 s to 1 s, by product).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilization {
    /// Percent of time in which at least one kernel ran; 100 does not mean busy, only never empty.
    pub gpu: Option<u32>,
    /// Percent of time in which device memory was read or written.
    pub memory: Option<u32>,
}

impl Device {
    /// The utilisation of cores and memory, in percent; `None` under MIG.
    ///
    /// Source: `nvmlDeviceGetUtilizationRates`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn utilization(&self) -> Result<Option<Utilization>, Error> {
        let rates = symbol!(self.library, nvmlDeviceGetUtilizationRates)
            .read(self.handle, raw::nvmlUtilization_t { gpu: 0, memory: 0 })?;
        Ok(rates.map(|rates| Utilization {
            gpu: known_percent(rates.gpu),
            memory: known_percent(rates.memory),
        }))
    }

    /// The utilisation of the video encoder, in percent.
    ///
    /// Source: `nvmlDeviceGetEncoderUtilization`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn encoder_utilization(&self) -> Result<Option<u32>, Error> {
        first_percent(symbol!(self.library, nvmlDeviceGetEncoderUtilization).read_pair(self.handle, (0, 0))?)
    }

    /// The utilisation of the video decoder, in percent.
    ///
    /// Source: `nvmlDeviceGetDecoderUtilization`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn decoder_utilization(&self) -> Result<Option<u32>, Error> {
        first_percent(symbol!(self.library, nvmlDeviceGetDecoderUtilization).read_pair(self.handle, (0, 0))?)
    }

    /// The utilisation of the JPEG engines, in percent.
    ///
    /// Source: `nvmlDeviceGetJpgUtilization`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn jpeg_utilization(&self) -> Result<Option<u32>, Error> {
        first_percent(symbol!(self.library, nvmlDeviceGetJpgUtilization).read_pair(self.handle, (0, 0))?)
    }

    /// The utilisation of the optical flow engine, in percent.
    ///
    /// Source: `nvmlDeviceGetOfaUtilization`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn optical_flow_utilization(&self) -> Result<Option<u32>, Error> {
        first_percent(symbol!(self.library, nvmlDeviceGetOfaUtilization).read_pair(self.handle, (0, 0))?)
    }
}

/// The engines answer (utilisation, sampling period in microseconds).
#[expect(clippy::unnecessary_wraps, reason = "closes a chain of calls that can fail")]
fn first_percent(pair: Option<(u32, u32)>) -> Result<Option<u32>, Error> {
    Ok(pair.and_then(|(utilization, _)| known_percent(utilization)))
}
