//! The fabric, confidential computing, and the processor beside the GPU.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{
    Answer, INVALID_ARGUMENT, NOT_SUPPORTED, VERSION_MISMATCH, code, getters, getters_pair, put, put_text,
    structure_version,
};
use crate::state::FabricState;

/// All boards of a simulated server are in one cluster.
const CLUSTER: [u8; 16] = [
    0x5d, 0x1f, 0xab, 0x12, 0x1c, 0x00, 0x40, 0x00, 0x80, 0, 0, 0, 0, 0, 0, 1,
];
const CLIQUE: c_uint = 1;

getters! {
    nvmlDeviceGetGpuFabricInfo: raw::nvmlGpuFabricInfo_t = |gpu| fabric(gpu).map(|fabric| raw::nvmlGpuFabricInfo_t {
        clusterUuid: CLUSTER,
        status: fabric.status,
        cliqueId: CLIQUE,
        state: fabric.state,
    });
    // No board here has a processor beside it.
    nvmlDeviceGetC2cModeInfoV: raw::nvmlC2cModeInfo_v1_t = |_| Err(NOT_SUPPORTED);
    nvmlDeviceGetConfComputeMemSizeInfo: raw::nvmlConfComputeMemSizeInfo_t = |gpu| {
        confidential(gpu.kind().architecture)?;
        Ok(raw::nvmlConfComputeMemSizeInfo_t {
            protectedMemSizeKib: 0,
            unprotectedMemSizeKib: gpu.state.memory_total >> 10,
        })
    };
}

getters_pair! {
    nvmlDeviceGetGspFirmwareMode: c_uint = |gpu| if gpu.kind().datacenter { Ok((1, 1)) } else { Err(NOT_SUPPORTED) };
}

/// A captured board tells it as it was; one that is played has it if its kind has.
fn fabric(gpu: &Gpu) -> Answer<FabricState> {
    if let Some(still) = gpu.still() {
        let (state, status) = still.fabric.ok_or(NOT_SUPPORTED)?;
        return Ok(FabricState {
            state,
            status,
            health: 0,
        });
    }
    gpu.state.fabric.ok_or(NOT_SUPPORTED)
}

/// Vendor's function of this name: the second and the third version of the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuFabricInfoV(
    device: nvmlDevice_t,
    out: *mut raw::nvmlGpuFabricInfoV_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to one of the structures with its version filled in.
    code(unsafe { fabric_versioned(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure of the version that stands at its beginning.
unsafe fn fabric_versioned(device: nvmlDevice_t, out: *mut raw::nvmlGpuFabricInfoV_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetGpuFabricInfoV", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null; both versions begin with the number.
    let version = unsafe { (&raw const (*out).version).read() };
    let fabric = fabric(&gpu)?;
    let second = structure_version::<raw::nvmlGpuFabricInfo_v2_t>(2);
    let third = structure_version::<raw::nvmlGpuFabricInfo_v3_t>(3);
    if version != second && version != third {
        return Err(VERSION_MISMATCH);
    }
    // SAFETY: the members of the second version stand where the third has them; the last is written for the third only.
    unsafe {
        (&raw mut (*out).clusterUuid).write(CLUSTER);
        (&raw mut (*out).status).write(fabric.status);
        (&raw mut (*out).cliqueId).write(CLIQUE);
        (&raw mut (*out).state).write(fabric.state);
        (&raw mut (*out).healthMask).write(fabric.health);
        if version == third {
            (&raw mut (*out).healthSummary).write(summary(fabric.health));
        }
    }
    Ok(())
}

/// Not told without a mask; unhealthy if any question is answered with yes or the set-up is wrong.
fn summary(health: u32) -> u8 {
    let asked = (0..8).step_by(2).any(|shift| health >> shift & 0b11 == 1);
    match health {
        0 => 0,
        _ if asked || health >> 8 & 0xf > 1 => 2,
        _ => 1,
    }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetConfComputeState(out: *mut raw::nvmlConfComputeSystemState_t) -> nvmlReturn_t {
    let state = simulator::scenario().and_then(|scenario| {
        confidential(scenario.kind().architecture)?;
        Ok(raw::nvmlConfComputeSystemState_t {
            environment: 0,
            ccFeature: 0,
            devToolsMode: 0,
        })
    });
    // SAFETY: the header asks for a pointer to this structure.
    code(state.and_then(|state| unsafe { put(out, state) }))
}

/// From Hopper on, and off.
fn confidential(architecture: u32) -> Answer<()> {
    if architecture >= raw::NVML_DEVICE_ARCH_HOPPER {
        Ok(())
    } else {
        Err(NOT_SUPPORTED)
    }
}

/// Vendor's function of this name: the firmware has the driver's version; the header takes no length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGspFirmwareVersion(device: nvmlDevice_t, out: *mut c_char) -> nvmlReturn_t {
    const ROOM: c_uint = 0x40;
    let version = Gpu::open("nvmlDeviceGetGspFirmwareVersion", device).and_then(|gpu| {
        if gpu.kind().datacenter {
            Ok(gpu.scenario.driver_at(gpu.t_ms).version)
        } else {
            Err(NOT_SUPPORTED)
        }
    });
    // SAFETY: the header asks for a buffer of this length.
    code(version.and_then(|version| unsafe { put_text(out, ROOM, &version) }))
}
