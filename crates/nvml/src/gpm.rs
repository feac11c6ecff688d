//! Performance metrics from the GPU's own counters (Hopper and later).
//!
//! Two samples, some time apart, give the averages between them: keep the last sample of each
//! GPU, take a new one, ask [`GpmSample::metrics_until`], swap.

#![expect(unsafe_code, reason = "owns C sample buffers and fills an array")]

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::{Error, means_absent};
use crate::sentinel::known_f64;
use crate::symbol::symbol;

/// A metric between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpmMetric {
    /// Time with any compute or graphics work, percent.
    GraphicsUtil,
    /// Time in which multiprocessors had a warp, percent.
    SmUtil,
    /// Warps of all that fit, percent.
    SmOccupancy,
    /// Integer pipe, percent.
    IntegerUtil,
    /// Any tensor pipe, percent.
    AnyTensorUtil,
    /// Double-precision tensor pipe, percent.
    DfmaTensorUtil,
    /// Half-precision tensor pipe, percent.
    HmmaTensorUtil,
    /// Integer tensor pipe, percent.
    ImmaTensorUtil,
    /// Memory bandwidth, percent of the peak.
    DramBwUtil,
    /// Double-precision pipe, percent.
    Fp64Util,
    /// Single-precision pipe, percent.
    Fp32Util,
    /// Half-precision pipe, percent.
    Fp16Util,
    /// PCIe, from the GPU, MiB per second.
    PcieTxPerSec,
    /// PCIe, to the GPU, MiB per second.
    PcieRxPerSec,
    /// All NVLinks, received, MiB per second.
    NvlinkTotalRxPerSec,
    /// All NVLinks, sent, MiB per second.
    NvlinkTotalTxPerSec,
    /// Video decoder engine 0 to 7, percent.
    NvdecUtil(u32),
    /// JPEG engine 0 to 7, percent.
    NvjpgUtil(u32),
    /// Optical flow engine 0 or 1, percent.
    NvofaUtil(u32),
    /// Video encoder engine 0 to 3, percent.
    NvencUtil(u32),
    /// One NVLink (0 to 17), received, MiB per second.
    NvlinkRxPerSec(u32),
    /// One NVLink (0 to 17), sent, MiB per second.
    NvlinkTxPerSec(u32),
    /// Any other, by the header's `NVML_GPM_METRIC_*` number.
    Other(u32),
}

/// No metric has this number: an engine or link beyond those of the header.
const NO_METRIC: u32 = u32::MAX;

impl GpmMetric {
    /// The header's number.
    #[must_use]
    pub fn id(self) -> u32 {
        match self {
            Self::GraphicsUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL,
            Self::SmUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL,
            Self::SmOccupancy => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY,
            Self::IntegerUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_INTEGER_UTIL,
            Self::AnyTensorUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL,
            Self::DfmaTensorUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_DFMA_TENSOR_UTIL,
            Self::HmmaTensorUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_HMMA_TENSOR_UTIL,
            Self::ImmaTensorUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_IMMA_TENSOR_UTIL,
            Self::DramBwUtil => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL,
            Self::Fp64Util => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP64_UTIL,
            Self::Fp32Util => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP32_UTIL,
            Self::Fp16Util => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP16_UTIL,
            Self::PcieTxPerSec => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC,
            Self::PcieRxPerSec => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC,
            Self::NvlinkTotalRxPerSec => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
            Self::NvlinkTotalTxPerSec => raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
            Self::NvdecUtil(engine) => numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVDEC_0_UTIL, engine, 8, 1),
            Self::NvjpgUtil(engine) => numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVJPG_0_UTIL, engine, 8, 1),
            Self::NvofaUtil(engine) => numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVOFA_0_UTIL, engine, 2, 1),
            Self::NvencUtil(engine) => numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVENC_0_UTIL, engine, 4, 1),
            Self::NvlinkRxPerSec(link) => {
                numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC, link, 18, 2)
            }
            Self::NvlinkTxPerSec(link) => {
                numbered(raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC, link, 18, 2)
            }
            Self::Other(id) => id,
        }
    }
}

fn numbered(first: u32, index: u32, count: u32, step: u32) -> u32 {
    if index < count { first + index * step } else { NO_METRIC }
}

/// The counters of one GPU at one moment.
pub struct GpmSample {
    device: Device,
    /// The GPU instance that the counters are of; `None` for the whole GPU.
    instance: Option<u32>,
    sample: raw::nvmlGpmSample_t,
}

// SAFETY: a sample is a buffer that NVML does not tie to a thread.
unsafe impl Send for GpmSample {}

impl Device {
    /// Whether this GPU has these metrics; `None` if the library does not know of them.
    ///
    /// Source: `nvmlGpmQueryDeviceSupport`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn gpm_supported(&self) -> Result<Option<bool>, Error> {
        // The structure's version is the plain number 1, not the usual size and number.
        let empty = raw::nvmlGpmSupport_t {
            version: 1,
            isSupportedDevice: 0,
        };
        let support = symbol!(self.library, nvmlGpmQueryDeviceSupport).read(self.handle, empty)?;
        Ok(support.map(|support| support.isSupportedDevice != 0))
    }

    /// Takes a sample; `None` where there are no such metrics.
    ///
    /// Source: `nvmlGpmSampleAlloc`, `nvmlGpmSampleGet`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn gpm_sample(&self) -> Result<Option<GpmSample>, Error> {
        self.new_gpm_sample(None)
    }

    /// Takes a sample of one GPU instance, by its id; this is the whole GPU, not the MIG device.
    ///
    /// Source: `nvmlGpmSampleAlloc`, `nvmlGpmMigSampleGet`.
    ///
    /// # Errors
    ///
    /// As every method; [`Error::Unknown`] with code 2 or 6 where there is no such instance (any more).
    pub fn gpm_mig_sample(&self, gpu_instance: u32) -> Result<Option<GpmSample>, Error> {
        self.new_gpm_sample(Some(gpu_instance))
    }

    fn new_gpm_sample(&self, instance: Option<u32>) -> Result<Option<GpmSample>, Error> {
        if self.gpm_supported()? != Some(true) {
            return Ok(None);
        }
        let allocated = symbol!(self.library, nvmlGpmSampleAlloc).system(std::ptr::null_mut())?;
        let Some(sample) = allocated.filter(|sample| !sample.is_null()) else {
            return Ok(None);
        };
        let mut sample = GpmSample {
            device: self.clone(),
            instance,
            sample,
        };
        Ok(sample.refresh()?.then_some(sample))
    }
}

impl GpmSample {
    /// Takes the sample anew, in the same buffer; `false` if the GPU has none now.
    ///
    /// Source: `nvmlGpmSampleGet`, for an instance `nvmlGpmMigSampleGet`.
    ///
    /// # Errors
    ///
    /// As every method of [`Device`].
    pub fn refresh(&mut self) -> Result<bool, Error> {
        if let Some(instance) = self.instance {
            let symbol = symbol!(self.device.library, nvmlGpmMigSampleGet);
            let Some(function) = symbol.function() else {
                return Ok(false);
            };
            // SAFETY: the sample was allocated by this library and is not freed yet.
            let code = unsafe { function(self.device.handle.0, instance, self.sample) };
            return symbol.outcome(code);
        }
        let symbol = symbol!(self.device.library, nvmlGpmSampleGet);
        let Some(function) = symbol.function() else {
            return Ok(false);
        };
        // SAFETY: the sample was allocated by this library and is not freed yet.
        let code = unsafe { function(self.device.handle.0, self.sample) };
        symbol.outcome(code)
    }

    /// The averages from this sample to a later one of the same GPU, in the order asked.
    ///
    /// Units stand at [`GpmMetric`]; `None` for what the GPU does not count.
    /// Source: `nvmlGpmMetricsGet`.
    ///
    /// # Errors
    ///
    /// As every method of [`Device`].
    pub fn metrics_until(&self, later: &Self, metrics: &[GpmMetric]) -> Result<Vec<Option<f64>>, Error> {
        let absent = vec![None; metrics.len()];
        let symbol = symbol!(self.device.library, nvmlGpmMetricsGet);
        let Some(function) = symbol.function() else {
            return Ok(absent);
        };
        let mut request = request(self.sample, later.sample);
        let asked = metrics.len().min(request.metrics.len());
        for (slot, metric) in request.metrics.iter_mut().zip(metrics) {
            slot.metricId = metric.id();
        }
        request.numMetrics = u32::try_from(asked).unwrap_or(0);
        // SAFETY: the request is live, its count is within its array, and both samples are.
        let code = unsafe { function(&raw mut *request) };
        if !symbol.outcome(code)? {
            return Ok(absent);
        }
        let mut values: Vec<Option<f64>> = request.metrics[..asked].iter().map(value).collect::<Result<_, _>>()?;
        values.resize(metrics.len(), None);
        Ok(values)
    }
}

fn request(first: raw::nvmlGpmSample_t, second: raw::nvmlGpmSample_t) -> Box<raw::nvmlGpmMetricsGet_t> {
    let no_info = raw::nvmlGpmMetric_t__bindgen_ty_1 {
        shortName: std::ptr::null_mut(),
        longName: std::ptr::null_mut(),
        unit: std::ptr::null_mut(),
    };
    let metric = raw::nvmlGpmMetric_t {
        metricId: 0,
        nvmlReturn: raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        value: f64::NAN,
        metricInfo: no_info,
    };
    // As for the support query, the version is the plain number 1.
    Box::new(raw::nvmlGpmMetricsGet_t {
        version: 1,
        numMetrics: 0,
        sample1: first,
        sample2: second,
        metrics: [metric; 210],
    })
}

fn value(metric: &raw::nvmlGpmMetric_t) -> Result<Option<f64>, Error> {
    let unknown_metric = metric.nvmlReturn == raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    if unknown_metric || means_absent(metric.nvmlReturn) {
        return Ok(None);
    }
    match Error::from_code(metric.nvmlReturn, "nvmlGpmMetricsGet") {
        Some(err) => Err(err),
        None => Ok(known_f64(metric.value)),
    }
}

impl Drop for GpmSample {
    fn drop(&mut self) {
        if let Some(function) = symbol!(self.device.library, nvmlGpmSampleFree).function() {
            // SAFETY: the sample was allocated by this library and is freed once; the code is of no use here.
            let _ = unsafe { function(self.sample) };
        }
    }
}

impl std::fmt::Debug for GpmSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpmSample")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
