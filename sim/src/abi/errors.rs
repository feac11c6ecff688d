//! Memory errors and replaced rows.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::Gpu;
use super::{
    Answer, INVALID_ARGUMENT, NOT_SUPPORTED, VERSION_MISMATCH, code, getters, getters_pair, put, structure_version,
};
use crate::scenario::Still;

/// Corrected errors that a board has had in its life before the scenario.
const CORRECTED_BEFORE: u64 = 3;

getters_pair! {
    nvmlDeviceGetEccMode: raw::nvmlEnableState_t = |gpu| {
        datacenter(gpu)?;
        let on = raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        gpu.told(|still| still.ecc_mode.map(|(now, then)| (now.into(), then.into())), (on, on))
    };
}

getters! {
    nvmlDeviceGetDefaultEccMode: raw::nvmlEnableState_t = |gpu| {
        datacenter(gpu)?;
        Ok(raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED)
    };
    nvmlDeviceGetRetiredPagesPendingStatus: raw::nvmlEnableState_t = |gpu| retired(gpu).map(|(_, _, waits)| waits.into());
}

/// Pages retired; boards since Ampere replace rows instead, and those before are captured ones here.
pub(super) fn retired(gpu: &Gpu) -> Answer<(u32, u32, bool)> {
    match gpu.still() {
        Some(still) => still.retired.ok_or(NOT_SUPPORTED),
        None if gpu.kind().datacenter && gpu.kind().architecture < 7 => Ok((0, 0, false)),
        None => Err(NOT_SUPPORTED),
    }
}

/// Rows replaced, from Ampere on.
pub(super) fn remapped(gpu: &Gpu) -> Answer<(u32, u32, bool, bool)> {
    datacenter(gpu)?;
    if gpu.kind().architecture < 7 {
        return Err(NOT_SUPPORTED);
    }
    let state = &gpu.state;
    let played = (
        state.remapped_correctable,
        state.remapped_uncorrectable,
        state.remapped_pending,
        state.remapped_failure,
    );
    gpu.told(|still| still.remapped, played)
}

fn datacenter(gpu: &Gpu) -> Answer<()> {
    if gpu.kind().datacenter {
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
    code(unsafe {
        super::get("nvmlDeviceGetTotalEccErrors", device, out, |gpu| {
            total(gpu, error, counter)
        })
    })
}

/// Vendor's function of this name; a MIG device tells of uncorrected errors in SRAM only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: nvmlDevice_t,
    error: raw::nvmlMemoryErrorType_t,
    counter: raw::nvmlEccCounterType_t,
    location: raw::nvmlMemoryLocation_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    let uncorrected = error == raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
    let get = |gpu: &Gpu| match location {
        raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM => in_sram(gpu, error, counter),
        _ if gpu.mig.is_some() || !(..raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_COUNT).contains(&location) => {
            Err(if gpu.mig.is_some() {
                NOT_SUPPORTED
            } else {
                INVALID_ARGUMENT
            })
        }
        // Also called device memory, by the same number.
        raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_DRAM => {
            Ok(total(gpu, error, counter)? - in_sram(gpu, error, counter)?)
        }
        _ => Err(NOT_SUPPORTED),
    };
    let get = |gpu: &Gpu| {
        if gpu.mig.is_some() && !uncorrected {
            return Err(NOT_SUPPORTED);
        }
        get(gpu)
    };
    // SAFETY: the header asks for a pointer to an unsigned long long.
    code(unsafe { super::get("nvmlDeviceGetMemoryErrorCounter", device, out, get) })
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
        let sram = in_sram(gpu, error, counter)?;
        Ok(raw::nvmlEccErrorCounts_t {
            l1Cache: 0,
            l2Cache: sram,
            deviceMemory: total(gpu, error, counter)? - sram,
            registerFile: 0,
        })
    };
    // SAFETY: the header asks for a pointer to this structure.
    code(unsafe { super::get("nvmlDeviceGetDetailedEccErrors", device, out, get) })
}

pub(super) fn total(gpu: &Gpu, error: raw::nvmlMemoryErrorType_t, counter: raw::nvmlEccCounterType_t) -> Answer<u64> {
    datacenter(gpu)?;
    if let Some(still) = gpu.still() {
        let [sram, dram] = counts(still, counter)?;
        let at = error as usize;
        let known = |place: [Option<u64>; 2]| place.get(at).copied().flatten();
        return match (known(sram), known(dram)) {
            (None, None) => Err(NOT_SUPPORTED),
            (sram, dram) => Ok(sram.unwrap_or(0) + dram.unwrap_or(0)),
        };
    }
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
    let rows = Gpu::open("nvmlDeviceGetRemappedRows", device).and_then(|gpu| remapped(&gpu));
    // SAFETY: the header asks for four pointers to unsigned int.
    code(rows.and_then(|rows| unsafe {
        put(correctable, rows.0)?;
        put(uncorrectable, rows.1)?;
        put(pending, rows.2.into())?;
        put(failure, rows.3.into())
    }))
}

/// Vendor's function of this name: addresses are invented, times are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    device: nvmlDevice_t,
    cause: raw::nvmlPageRetirementCause_t,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
    _timestamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    let pages = Gpu::open("nvmlDeviceGetRetiredPages_v2", device).and_then(|gpu| pages(&gpu, cause));
    // SAFETY: the header asks for a count and for so many addresses.
    code(pages.and_then(|pages| unsafe { super::processes::fill(count, addresses, pages.into_iter()) }))
}

fn pages(gpu: &Gpu, cause: raw::nvmlPageRetirementCause_t) -> Answer<Vec<u64>> {
    let (single, double, _) = retired(gpu)?;
    let count = match cause {
        raw::nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS => single,
        raw::nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR => double,
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok((0..u64::from(count)).map(|page| 0x20_0000 + page * 0x1000).collect())
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages(
    device: nvmlDevice_t,
    cause: raw::nvmlPageRetirementCause_t,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
) -> nvmlReturn_t {
    let pages = Gpu::open("nvmlDeviceGetRetiredPages", device).and_then(|gpu| pages(&gpu, cause));
    // SAFETY: the header asks for a count and for so many addresses.
    code(pages.and_then(|pages| unsafe { super::processes::fill(count, addresses, pages.into_iter()) }))
}

/// Captured counts: [SRAM, DRAM] × [corrected, uncorrected].
fn counts(still: &Still, counter: raw::nvmlEccCounterType_t) -> Answer<[[Option<u64>; 2]; 2]> {
    match counter {
        raw::nvmlEccCounterType_enum_NVML_VOLATILE_ECC => Ok(still.ecc_volatile),
        raw::nvmlEccCounterType_enum_NVML_AGGREGATE_ECC => Ok(still.ecc_aggregate),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Those of the errors that were in SRAM; the same since the driver was loaded and over the board's life.
pub(super) fn in_sram(gpu: &Gpu, error: raw::nvmlMemoryErrorType_t, counter: raw::nvmlEccCounterType_t) -> Answer<u64> {
    datacenter(gpu)?;
    let at = error as usize;
    if let Some(still) = gpu.still() {
        let [sram, _] = counts(still, counter)?;
        return sram.get(at).copied().flatten().ok_or(NOT_SUPPORTED);
    }
    let places = gpu.state.ecc_sram;
    let sum: Option<u64> = places.iter().map(|place| place.get(at)).sum();
    sum.ok_or(INVALID_ARGUMENT)
}

/// Vendor's function of this name, on Hopper and later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSramEccErrorStatus(
    device: nvmlDevice_t,
    out: *mut raw::nvmlEccSramErrorStatus_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with its version filled in.
    code(unsafe { sram_status(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with its version filled in.
unsafe fn sram_status(device: nvmlDevice_t, out: *mut raw::nvmlEccSramErrorStatus_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetSramEccErrorStatus", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let version = unsafe { (*out).version };
    if version != structure_version::<raw::nvmlEccSramErrorStatus_v1_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    datacenter(&gpu)?;
    if gpu.still().is_some() || gpu.kind().architecture < raw::NVML_DEVICE_ARCH_HOPPER {
        return Err(NOT_SUPPORTED);
    }
    let [[l2_corrected, l2], [sm_corrected, sm]] = gpu.state.ecc_sram;
    let status = raw::nvmlEccSramErrorStatus_t {
        version,
        aggregateUncParity: 0,
        aggregateUncSecDed: l2 + sm,
        aggregateCor: l2_corrected + sm_corrected,
        volatileUncParity: 0,
        volatileUncSecDed: l2 + sm,
        volatileCor: l2_corrected + sm_corrected,
        aggregateUncBucketL2: l2,
        aggregateUncBucketSm: sm,
        aggregateUncBucketPcie: 0,
        aggregateUncBucketMcu: 0,
        aggregateUncBucketOther: 0,
        bThresholdExceeded: (l2 + sm > SRAM_THRESHOLD).into(),
    };
    // SAFETY: as above.
    unsafe { put(out, status) }
}

/// More uncorrected SRAM errors than this are the vendor's business.
const SRAM_THRESHOLD: u64 = 4;

/// Vendor's function of this name: spare rows left in each bank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRowRemapperHistogram(
    device: nvmlDevice_t,
    out: *mut raw::nvmlRowRemapperHistogramValues_t,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        let (correctable, uncorrectable, ..) = remapped(gpu)?;
        if let Some(still) = gpu.still() {
            let [max, high, partial, low, none] = still.histogram.ok_or(NOT_SUPPORTED)?;
            return Ok(raw::nvmlRowRemapperHistogramValues_t {
                max,
                high,
                partial,
                low,
                none,
            });
        }
        let touched = (correctable + uncorrectable).min(2560);
        Ok(raw::nvmlRowRemapperHistogramValues_t {
            max: 2560 - touched,
            high: touched,
            partial: 0,
            low: 0,
            none: 0,
        })
    };
    // SAFETY: the header asks for a pointer to this structure.
    code(unsafe { super::get("nvmlDeviceGetRowRemapperHistogram", device, out, get) })
}
