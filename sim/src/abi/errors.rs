//! Memory errors and replaced rows.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::Gpu;
use super::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, code, getters, getters_pair, put};

/// Corrected errors that a board has had in its life before the scenario.
const CORRECTED_BEFORE: u64 = 3;

getters_pair! {
    nvmlDeviceGetEccMode: raw::nvmlEnableState_t = |gpu| {
        datacenter(gpu)?;
        let on = raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        Ok((on, on))
    };
}

getters! {
    nvmlDeviceGetDefaultEccMode: raw::nvmlEnableState_t = |gpu| {
        datacenter(gpu)?;
        Ok(raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED)
    };
    // Boards of this generation replace rows and retire no pages.
    nvmlDeviceGetRetiredPagesPendingStatus: raw::nvmlEnableState_t = |_| Err(NOT_SUPPORTED);
}

fn datacenter(gpu: &Gpu) -> Answer<()> {
    if gpu.scenario.kind().datacenter {
        Ok(())
    } else {
        Err(NOT_SUPPORTED)
    }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: nvmlDevice_t,
    error: raw::nvmlMemoryErrorType_t,
    counter: raw::nvmlEccCounterType_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to an unsigned long long.
    code(unsafe { super::get(device, out, |gpu| total(gpu, error, counter)) })
}

/// Vendor's function of this name: all errors are in device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: nvmlDevice_t,
    error: raw::nvmlMemoryErrorType_t,
    counter: raw::nvmlEccCounterType_t,
    location: raw::nvmlMemoryLocation_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| match location {
        raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_DRAM => total(gpu, error, counter),
        raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM => total(gpu, error, counter).map(|_| 0),
        location if location < raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_COUNT => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    };
    // SAFETY: the header asks for a pointer to an unsigned long long.
    code(unsafe { super::get(device, out, get) })
}

/// Vendor's function of this name: all errors are in device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDetailedEccErrors(
    device: nvmlDevice_t,
    error: raw::nvmlMemoryErrorType_t,
    counter: raw::nvmlEccCounterType_t,
    out: *mut raw::nvmlEccErrorCounts_t,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        let memory = total(gpu, error, counter)?;
        Ok(raw::nvmlEccErrorCounts_t {
            l1Cache: 0,
            l2Cache: 0,
            deviceMemory: memory,
            registerFile: 0,
        })
    };
    // SAFETY: the header asks for a pointer to this structure.
    code(unsafe { super::get(device, out, get) })
}

pub(super) fn total(gpu: &Gpu, error: raw::nvmlMemoryErrorType_t, counter: raw::nvmlEccCounterType_t) -> Answer<u64> {
    datacenter(gpu)?;
    let corrected = match error {
        raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED => true,
        raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED => false,
        _ => return Err(INVALID_ARGUMENT),
    };
    let now = if corrected {
        gpu.state.ecc_corrected
    } else {
        gpu.state.ecc_uncorrected
    };
    match counter {
        raw::nvmlEccCounterType_enum_NVML_VOLATILE_ECC => Ok(now),
        raw::nvmlEccCounterType_enum_NVML_AGGREGATE_ECC => Ok(now + if corrected { CORRECTED_BEFORE } else { 0 }),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    device: nvmlDevice_t,
    correctable: *mut c_uint,
    uncorrectable: *mut c_uint,
    pending: *mut c_uint,
    failure: *mut c_uint,
) -> nvmlReturn_t {
    let rows = Gpu::open(device).and_then(|gpu| datacenter(&gpu).map(|()| gpu));
    // SAFETY: the header asks for four pointers to unsigned int.
    code(rows.and_then(|gpu| unsafe {
        put(correctable, gpu.state.remapped_correctable)?;
        put(uncorrectable, gpu.state.remapped_uncorrectable)?;
        put(pending, gpu.state.remapped_pending.into())?;
        put(failure, gpu.state.remapped_failure.into())
    }))
}

/// Vendor's function of this name: boards of this generation replace rows instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    device: nvmlDevice_t,
    _cause: raw::nvmlPageRetirementCause_t,
    _count: *mut c_uint,
    _addresses: *mut c_ulonglong,
    _timestamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    code(Gpu::open(device).and(Err(NOT_SUPPORTED)))
}

/// Vendor's function of this name: boards of this generation replace rows instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages(
    device: nvmlDevice_t,
    _cause: raw::nvmlPageRetirementCause_t,
    _count: *mut c_uint,
    _addresses: *mut c_ulonglong,
) -> nvmlReturn_t {
    code(Gpu::open(device).and(Err(NOT_SUPPORTED)))
}

/// Vendor's function of this name: spare rows left in each bank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRowRemapperHistogram(
    device: nvmlDevice_t,
    out: *mut raw::nvmlRowRemapperHistogramValues_t,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        datacenter(gpu)?;
        let used = gpu.state.remapped_correctable + gpu.state.remapped_uncorrectable;
        let touched = used.min(2560);
        Ok(raw::nvmlRowRemapperHistogramValues_t {
            max: 2560 - touched,
            high: touched,
            partial: 0,
            low: 0,
            none: 0,
        })
    };
    // SAFETY: the header asks for a pointer to this structure.
    code(unsafe { super::get(device, out, get) })
}
