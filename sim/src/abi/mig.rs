//! MIG devices: which there are, and what they are.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, code, getters, getters_by, put};
use crate::mig::INSTANCES_MAX;
use crate::state::MigState;

/// What a MIG device answers itself; all else is a question for the whole GPU.
pub(super) fn answered_by_instances(function: &str) -> bool {
    matches!(
        function,
        "nvmlDeviceGetUUID"
            | "nvmlDeviceGetName"
            | "nvmlDeviceGetIndex"
            | "nvmlDeviceGetMemoryInfo"
            | "nvmlDeviceGetMemoryInfo_v2"
            | "nvmlDeviceGetBAR1MemoryInfo"
            | "nvmlDeviceGetAttributes"
            | "nvmlDeviceGetAttributes_v2"
            | "nvmlDeviceIsMigDeviceHandle"
            | "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"
            | "nvmlDeviceGetGpuInstanceId"
            | "nvmlDeviceGetComputeInstanceId"
            | "nvmlDeviceGetMemoryErrorCounter"
    ) || function.contains("RunningProcesses")
}

/// What the driver does not tell of a GPU that is cut into instances.
pub(super) fn refused_under_mig(function: &str) -> bool {
    matches!(
        function,
        "nvmlDeviceGetUtilizationRates"
            | "nvmlDeviceGetEncoderUtilization"
            | "nvmlDeviceGetDecoderUtilization"
            | "nvmlDeviceGetJpgUtilization"
            | "nvmlDeviceGetOfaUtilization"
            | "nvmlDeviceGetProcessUtilization"
            | "nvmlDeviceGetProcessesUtilizationInfo"
            | "nvmlDeviceGetEncoderStats"
    )
}

getters! {
    nvmlDeviceIsMigDeviceHandle: c_uint = |gpu| Ok(gpu.mig.is_some().into());
    nvmlDeviceGetGpuInstanceId: c_uint = |gpu| instance(gpu).map(|mig| mig.instance.gpu_instance);
    nvmlDeviceGetComputeInstanceId: c_uint = |gpu| instance(gpu).map(|mig| mig.instance.compute_instance);
    nvmlDeviceGetMaxMigDeviceCount: c_uint = |gpu| match gpu.state.mig_mode {
        Some(_) => c_uint::try_from(INSTANCES_MAX).map_err(|_| NOT_SUPPORTED),
        None => Ok(0),
    };
    nvmlDeviceGetAttributes: raw::nvmlDeviceAttributes_t = attributes;
    nvmlDeviceGetAttributes_v2: raw::nvmlDeviceAttributes_t = attributes;
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle: nvmlDevice_t = |gpu| {
        instance(gpu)?;
        simulator::handle(gpu.index).ok_or(INVALID_ARGUMENT)
    };
}

getters_by! {
    nvmlDeviceGetMigDeviceHandleByIndex: c_uint => nvmlDevice_t = device_by_index;
}

/// The instance that was asked; a whole GPU's handle is none.
fn instance(gpu: &Gpu) -> Answer<&MigState> {
    gpu.mig.as_ref().ok_or(INVALID_ARGUMENT)
}

fn device_by_index(gpu: &Gpu, index: c_uint) -> Answer<nvmlDevice_t> {
    let slot = index as usize;
    match gpu.state.mig_mode {
        None => Err(NOT_SUPPORTED),
        Some(_) if slot >= INSTANCES_MAX => Err(INVALID_ARGUMENT),
        Some(_) if slot < gpu.state.mig.len() => simulator::mig_handle(gpu.index, slot).ok_or(NOT_FOUND),
        Some(_) => Err(NOT_FOUND),
    }
}

fn attributes(gpu: &Gpu) -> Answer<raw::nvmlDeviceAttributes_t> {
    let instance = &instance(gpu)?.instance;
    let profile = &instance.profile;
    Ok(raw::nvmlDeviceAttributes_t {
        multiprocessorCount: instance.multiprocessors,
        sharedCopyEngineCount: profile.slices,
        sharedDecoderCount: profile.slices,
        sharedEncoderCount: 0,
        sharedJpegCount: profile.slices,
        sharedOfaCount: u32::from(profile.slices == 7),
        gpuInstanceSliceCount: profile.slices,
        computeInstanceSliceCount: profile.compute_slices,
        memorySizeMB: instance.memory >> 20,
    })
}

/// Vendor's function of this name, for whole GPUs and MIG devices alike.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    let mode = Gpu::open("nvmlDeviceGetMigMode", device).and_then(|gpu| {
        let on = gpu.state.mig_mode.ok_or(NOT_SUPPORTED)?;
        let played = (u32::from(on), u32::from(on));
        gpu.told(
            |still| still.mig_mode.map(|(now, then)| (now.into(), then.into())),
            played,
        )
    });
    // SAFETY: the header asks for two pointers to unsigned int.
    code(mode.and_then(|(now, then)| unsafe {
        put(current, now)?;
        put(pending, then)
    }))
}
