//! Performance metrics: averages of the load between two samples.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_uint};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlGpmSample_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, VERSION_MISMATCH, code, put};
use crate::load::Load;
use crate::scenario::Scenario;

const HOPPER: u32 = raw::NVML_DEVICE_ARCH_HOPPER;
/// The header's version of both structures is the plain number.
const VERSION: c_uint = 1;
/// More than any header defines.
const METRICS_MAX: c_uint = 1024;
const MIB: f64 = 1_048_576.0;

static SAMPLES: Mutex<Samples> = Mutex::new(Samples {
    last: 0,
    samples: BTreeMap::new(),
});

/// The samples by handle; nothing until it is taken.
struct Samples {
    last: usize,
    samples: BTreeMap<usize, Option<Taken>>,
}

/// Of which GPU, or of which GPU instance in it, and when.
#[derive(Clone, Copy)]
struct Taken {
    gpu: usize,
    instance: Option<u32>,
    t_ms: i64,
}

fn samples() -> MutexGuard<'static, Samples> {
    SAMPLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A captured board has no counters.
fn supported(gpu: &Gpu) -> bool {
    gpu.kind().architecture >= HOPPER && gpu.still().is_none()
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    out: *mut raw::nvmlGpmSupport_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with its version filled in.
    code(unsafe { query(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with its version filled in.
unsafe fn query(device: nvmlDevice_t, out: *mut raw::nvmlGpmSupport_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlGpmQueryDeviceSupport", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    if unsafe { (*out).version } != VERSION {
        return Err(VERSION_MISMATCH);
    }
    let support = raw::nvmlGpmSupport_t {
        version: VERSION,
        isSupportedDevice: supported(&gpu).into(),
    };
    // SAFETY: as above.
    unsafe { put(out, support) }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    let allocated = simulator::scenario().and_then(|_| {
        if out.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let mut samples = samples();
        samples.last += 16;
        let handle = samples.last;
        samples.samples.insert(handle, None);
        Ok(std::ptr::without_provenance_mut(handle))
    });
    // SAFETY: the header asks for a pointer to a handle.
    code(allocated.and_then(|sample| unsafe { put(out, sample) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    code(simulator::scenario().and_then(|_| {
        samples()
            .samples
            .remove(&sample.addr())
            .map(|_| ())
            .ok_or(INVALID_ARGUMENT)
    }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    code(Gpu::open("nvmlGpmSampleGet", device).and_then(|gpu| take(&gpu, None, sample)))
}

/// Vendor's function of this name: one GPU instance, by its id.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmMigSampleGet(device: nvmlDevice_t, instance: c_uint, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    code(Gpu::open("nvmlGpmMigSampleGet", device).and_then(|gpu| {
        let exists = gpu.state.mig.iter().any(|mig| mig.instance.gpu_instance == instance);
        if exists {
            take(&gpu, Some(instance), sample)
        } else {
            Err(INVALID_ARGUMENT)
        }
    }))
}

fn take(gpu: &Gpu, instance: Option<u32>, sample: nvmlGpmSample_t) -> Answer<()> {
    if !supported(gpu) {
        return Err(NOT_SUPPORTED);
    }
    let mut samples = samples();
    let slot = samples.samples.get_mut(&sample.addr()).ok_or(INVALID_ARGUMENT)?;
    *slot = Some(Taken {
        gpu: gpu.index,
        instance,
        t_ms: gpu.t_ms,
    });
    Ok(())
}

/// Vendor's function of this name. Only `numMetrics` entries of the array are touched: its length
/// differs between headers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut raw::nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with version, count and samples filled in.
    code(unsafe { metrics(request) })
}

/// # Safety
///
/// `request` is null or points to a structure whose array has at least the number of entries it says.
unsafe fn metrics(request: *mut raw::nvmlGpmMetricsGet_t) -> Answer<()> {
    let scenario = simulator::scenario()?;
    if request.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the head of the structure is readable by the caller's promise.
    let (version, count, first, second) = unsafe {
        (
            (*request).version,
            (*request).numMetrics,
            (*request).sample1,
            (*request).sample2,
        )
    };
    if version != VERSION {
        return Err(VERSION_MISMATCH);
    }
    if count == 0 || count > METRICS_MAX {
        return Err(INVALID_ARGUMENT);
    }
    let load = mean_load(&scenario, first, second)?;
    // SAFETY: the array begins here and has `count` entries by the caller's promise.
    let entries = unsafe {
        std::slice::from_raw_parts_mut(
            (&raw mut (*request).metrics).cast::<raw::nvmlGpmMetric_t>(),
            count as usize,
        )
    };
    for entry in entries {
        (entry.nvmlReturn, entry.value) = match metric(entry.metricId, &load) {
            Some(value) => (SUCCESS, value),
            None => (NOT_SUPPORTED, 0.0),
        };
        let (short, unit) = names(entry.metricId);
        entry.metricInfo.shortName = short.as_ptr().cast_mut();
        entry.metricInfo.longName = short.as_ptr().cast_mut();
        entry.metricInfo.unit = unit.as_ptr().cast_mut();
    }
    Ok(())
}

/// The mean load between two taken samples of one GPU.
fn mean_load(scenario: &Scenario, first: nvmlGpmSample_t, second: nvmlGpmSample_t) -> Answer<Load> {
    let (from, to) = {
        let samples = samples();
        let taken = |sample: nvmlGpmSample_t| samples.samples.get(&sample.addr()).copied().flatten();
        (
            taken(first).ok_or(INVALID_ARGUMENT)?,
            taken(second).ok_or(INVALID_ARGUMENT)?,
        )
    };
    if (from.gpu, from.instance) != (to.gpu, to.instance) || to.t_ms < from.t_ms {
        return Err(INVALID_ARGUMENT);
    }
    if scenario.is_lost(to.gpu, simulator::tick()) {
        return Err(GPU_IS_LOST);
    }
    Ok(match to.instance {
        None => scenario.mean_load(to.gpu, from.t_ms, to.t_ms),
        Some(instance) => scenario.mean_load_of(to.gpu, instance, from.t_ms, to.t_ms),
    })
}

fn metric(id: c_uint, load: &Load) -> Option<f64> {
    Some(match id {
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL => load.util * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => load.sm * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY => load.occupancy * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_INTEGER_UTIL => load.sm * 12.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL
        | raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_HMMA_TENSOR_UTIL => load.tensor * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_DFMA_TENSOR_UTIL
        | raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_IMMA_TENSOR_UTIL
        | raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP64_UTIL => 0.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => load.dram * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP32_UTIL => load.fp32 * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP16_UTIL => load.fp16 * 100.0,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC => load.pcie_tx / MIB,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC => load.pcie_rx / MIB,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC => load.nvlink_rx / MIB,
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC => load.nvlink_tx / MIB,
        _ => return None,
    })
}

fn names(id: c_uint) -> (&'static CStr, &'static CStr) {
    match id {
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL => (c"Graphics Util", c"%"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => (c"SM Util", c"%"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY => (c"SM Occupancy", c"%"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => (c"Tensor Util", c"%"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => (c"DRAM BW Util", c"%"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC => (c"PCIe TX", c"MiB/s"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC => (c"PCIe RX", c"MiB/s"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC => (c"NVLink RX", c"MiB/s"),
        raw::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC => (c"NVLink TX", c"MiB/s"),
        _ => (c"", c""),
    }
}
