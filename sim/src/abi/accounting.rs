//! Accounts of processes: kept for those that run, switched on on every data-centre board.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::Gpu;
use super::{Answer, NOT_FOUND, NOT_SUPPORTED, code, getters, getters_by};

const BUFFER: c_uint = 4000;

getters! {
    nvmlDeviceGetAccountingMode: raw::nvmlEnableState_t = |gpu| {
        kept(gpu)?;
        Ok(raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED)
    };
    nvmlDeviceGetAccountingBufferSize: c_uint = |gpu| kept(gpu).map(|()| BUFFER);
}

getters_by! {
    nvmlDeviceGetAccountingStats: c_uint => raw::nvmlAccountingStats_t = account;
}

fn kept(gpu: &Gpu) -> Answer<()> {
    if gpu.kind().datacenter && gpu.still().is_none() {
        Ok(())
    } else {
        Err(NOT_SUPPORTED)
    }
}

fn account(gpu: &Gpu, pid: c_uint) -> Answer<raw::nvmlAccountingStats_t> {
    kept(gpu)?;
    let process = gpu
        .state
        .processes
        .iter()
        .find(|process| process.pid == pid)
        .ok_or(NOT_FOUND)?;
    Ok(raw::nvmlAccountingStats_t {
        gpuUtilization: process.sm_util,
        memoryUtilization: process.memory_util,
        maxMemoryUsage: process.memory,
        time: 0,
        startTime: 0,
        isRunning: 1,
        reserved: [0; 5],
    })
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetAccountingPids(
    device: nvmlDevice_t,
    count: *mut c_uint,
    pids: *mut c_uint,
) -> nvmlReturn_t {
    let listed = Gpu::open("nvmlDeviceGetAccountingPids", device).and_then(|gpu| {
        kept(&gpu)?;
        Ok(gpu
            .state
            .processes
            .iter()
            .map(|process| process.pid)
            .collect::<Vec<_>>())
    });
    // SAFETY: the header asks for a count and for so many numbers.
    code(listed.and_then(|listed| unsafe { super::processes::fill(count, pids, listed.into_iter()) }))
}
