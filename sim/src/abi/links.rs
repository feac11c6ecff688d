//! PCIe and NVLink.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::Gpu;
use super::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, code, getters, getters_by};
use crate::load::round_u32;

getters! {
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = |gpu| Ok(gpu.state.pcie_generation);
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = |gpu| Ok(gpu.state.pcie_width);
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.scenario.kind().pcie_generation);
    nvmlDeviceGetGpuMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.scenario.kind().pcie_generation);
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = |gpu| Ok(gpu.scenario.kind().pcie_width);
    nvmlDeviceGetPcieReplayCounter: c_uint = |gpu| Ok(gpu.state.pcie_replays);
    nvmlDeviceGetPcieSpeed: c_uint = |gpu| Ok(2_000 << gpu.state.pcie_generation.min(6).saturating_sub(1));
}

getters_by! {
    nvmlDeviceGetPcieThroughput: raw::nvmlPcieUtilCounter_t => c_uint = pcie_throughput;
    nvmlDeviceGetNvLinkState: c_uint => raw::nvmlEnableState_t =
        |gpu: &Gpu, number| link(gpu, number).map(|()| raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED);
    nvmlDeviceGetNvLinkVersion: c_uint => c_uint = |gpu: &Gpu, number| link(gpu, number).map(|()| 4);
    nvmlDeviceGetNvLinkRemoteDeviceType: c_uint => raw::nvmlIntNvLinkDeviceType_t =
        |gpu: &Gpu, number| link(gpu, number).map(|()| raw::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH);
}

/// In KiB per second.
fn pcie_throughput(gpu: &Gpu, counter: raw::nvmlPcieUtilCounter_t) -> Answer<c_uint> {
    match counter {
        raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES => Ok(round_u32(gpu.state.load.pcie_tx / 1024.0)),
        raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES => Ok(round_u32(gpu.state.load.pcie_rx / 1024.0)),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Whether there is such a link.
pub(super) fn link(gpu: &Gpu, number: c_uint) -> Answer<()> {
    match gpu.scenario.kind().nvlinks {
        0 => Err(NOT_SUPPORTED),
        count if number < count => Ok(()),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Vendor's function of this name: no errors on any link.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkErrorCounter(
    device: nvmlDevice_t,
    number: c_uint,
    counter: raw::nvmlNvLinkErrorCounter_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        link(gpu, number)?;
        if counter < raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_COUNT {
            Ok(0)
        } else {
            Err(INVALID_ARGUMENT)
        }
    };
    // SAFETY: the header asks for a pointer to an unsigned long long.
    code(unsafe { super::get(device, out, get) })
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkCapability(
    device: nvmlDevice_t,
    number: c_uint,
    capability: raw::nvmlNvLinkCapability_t,
    out: *mut c_uint,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        link(gpu, number)?;
        match capability {
            raw::nvmlNvLinkCapability_enum_NVML_NVLINK_CAP_SLI_BRIDGE => Ok(0),
            capability if capability < raw::nvmlNvLinkCapability_enum_NVML_NVLINK_CAP_COUNT => Ok(1),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    // SAFETY: the header asks for a pointer to an unsigned int.
    code(unsafe { super::get(device, out, get) })
}
