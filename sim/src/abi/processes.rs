//! Who uses a GPU.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use crate::state::ProcessState;

use super::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, VERSION_MISMATCH, code, put, structure_version};

/// Not under MIG.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// Which contexts a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contexts {
    Compute,
    Graphics,
    /// Through the MPS server; nobody does.
    Shared,
}

/// Defines the functions that list processes.
macro_rules! process_lists {
    ($($name:ident: $info:ty = $contexts:expr, $entry:expr;)*) => {
        $(
            /// Vendor's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                device: nvmlDevice_t,
                count: *mut c_uint,
                infos: *mut $info,
            ) -> nvmlReturn_t {
                let listed = Gpu::open(stringify!($name), device).map(|gpu| list(&gpu, $contexts));
                // SAFETY: the header asks for a count and for so many structures.
                code(listed.and_then(|listed| unsafe { fill(count, infos, listed.iter().map($entry)) }))
            }
        )*
    };
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses_v3: raw::nvmlProcessInfo_t = Contexts::Compute, entry;
    nvmlDeviceGetComputeRunningProcesses_v2: raw::nvmlProcessInfo_t = Contexts::Compute, entry;
    nvmlDeviceGetComputeRunningProcesses: raw::nvmlProcessInfo_v1_t = Contexts::Compute, entry_v1;
    nvmlDeviceGetGraphicsRunningProcesses_v3: raw::nvmlProcessInfo_t = Contexts::Graphics, entry;
    nvmlDeviceGetGraphicsRunningProcesses_v2: raw::nvmlProcessInfo_t = Contexts::Graphics, entry;
    nvmlDeviceGetGraphicsRunningProcesses: raw::nvmlProcessInfo_v1_t = Contexts::Graphics, entry_v1;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: raw::nvmlProcessInfo_t = Contexts::Shared, entry;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: raw::nvmlProcessInfo_t = Contexts::Shared, entry;
    nvmlDeviceGetMPSComputeRunningProcesses: raw::nvmlProcessInfo_v1_t = Contexts::Shared, entry_v1;
}

/// The processes of a whole GPU, or of the MIG device that was asked.
fn list(gpu: &Gpu, contexts: Contexts) -> Vec<ProcessState> {
    let here = |process: &&ProcessState| match &gpu.mig {
        None => true,
        Some(mig) => process.instance == Some((mig.instance.gpu_instance, mig.instance.compute_instance)),
    };
    let of_kind = |process: &&ProcessState| match contexts {
        Contexts::Compute => !process.graphics,
        Contexts::Graphics => process.graphics,
        Contexts::Shared => false,
    };
    gpu.state
        .processes
        .iter()
        .filter(here)
        .filter(of_kind)
        .cloned()
        .collect()
}

fn entry(process: &ProcessState) -> raw::nvmlProcessInfo_t {
    let (gpu_instance, compute_instance) = process.instance.unwrap_or((NO_INSTANCE, NO_INSTANCE));
    raw::nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: process.memory,
        gpuInstanceId: gpu_instance,
        computeInstanceId: compute_instance,
    }
}

fn entry_v1(process: &ProcessState) -> raw::nvmlProcessInfo_v1_t {
    raw::nvmlProcessInfo_v1_t {
        pid: process.pid,
        usedGpuMemory: process.memory,
    }
}

/// Writes as many values as there are, if there is room for all; in any case says how many.
///
/// # Safety
///
/// `count` is null or says how many values there is room for at `out`.
pub(super) unsafe fn fill<T>(count: *mut c_uint, out: *mut T, values: impl ExactSizeIterator<Item = T>) -> Answer<()> {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let room = unsafe { *count };
    let needed = c_uint::try_from(values.len()).map_err(|_| INSUFFICIENT_SIZE)?;
    // SAFETY: as above.
    unsafe { put(count, needed) }?;
    if needed > room {
        return Err(INSUFFICIENT_SIZE);
    }
    if needed > 0 && out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    for (index, value) in values.enumerate() {
        // SAFETY: `index` is below the room that the caller promised.
        unsafe { out.add(index).write(value) };
    }
    Ok(())
}

/// Who works: one that has gone does nothing, and of a captured board nobody knows.
fn living(gpu: &Gpu) -> Vec<ProcessState> {
    if gpu.still().is_some() {
        return Vec::new();
    }
    gpu.state
        .processes
        .iter()
        .filter(|process| process.alive)
        .cloned()
        .collect()
}

/// Vendor's function of this name: one sample for each process, newer than `last_seen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    out: *mut raw::nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a count and for so many structures, or for no structures to learn the count.
    code(unsafe { utilization(device, out, count, last_seen) })
}

/// # Safety
///
/// `count` is null or says how many structures there is room for at `out`, if that is not null.
unsafe fn utilization(
    device: nvmlDevice_t,
    out: *mut raw::nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: u64,
) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetProcessUtilization", device)?;
    let stamp = simulator::now_us();
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if out.is_null() {
        // SAFETY: not null.
        unsafe { put(count, c_uint::try_from(living(&gpu).len()).unwrap_or(0)) }?;
        return Err(INSUFFICIENT_SIZE);
    }
    let living = living(&gpu);
    if stamp <= last_seen || living.is_empty() {
        return Err(NOT_FOUND);
    }
    let samples = living.iter().map(|process| raw::nvmlProcessUtilizationSample_t {
        pid: process.pid,
        timeStamp: stamp,
        smUtil: process.sm_util,
        memUtil: process.memory_util,
        encUtil: 0,
        decUtil: 0,
    });
    // SAFETY: the caller's promise.
    unsafe { fill(count, out, samples) }
}

/// Vendor's function of this name: as above, in the newer structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessesUtilizationInfo(
    device: nvmlDevice_t,
    out: *mut raw::nvmlProcessesUtilizationInfo_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with version and room filled in.
    code(unsafe { utilization_info(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with version, room and array filled in.
unsafe fn utilization_info(device: nvmlDevice_t, out: *mut raw::nvmlProcessesUtilizationInfo_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetProcessesUtilizationInfo", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let asked = unsafe { *out };
    if asked.version != structure_version::<raw::nvmlProcessesUtilizationInfo_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    let stamp = simulator::now_us();
    let living = living(&gpu);
    if stamp <= asked.lastSeenTimeStamp || living.is_empty() {
        return Err(NOT_FOUND);
    }
    let infos = living.iter().map(|process| raw::nvmlProcessUtilizationInfo_v1_t {
        timeStamp: stamp,
        pid: process.pid,
        smUtil: process.sm_util,
        memUtil: process.memory_util,
        encUtil: 0,
        decUtil: 0,
        jpgUtil: 0,
        ofaUtil: 0,
    });
    // SAFETY: the structure is the caller's, its array has the room it says.
    unsafe { fill(&raw mut (*out).processSamplesCount, asked.procUtilArray, infos) }
}
