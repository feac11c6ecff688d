//! PCIe and NVLink.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::Gpu;
use super::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, code, field_text, getters, getters_by};
use crate::load::round_u32;
use crate::state::LinkState;

getters! {
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = |gpu| gpu.told(|still| still.pcie_generation, gpu.state.pcie_generation);
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = |gpu| gpu.told(|still| still.pcie_width, gpu.state.pcie_width);
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.kind().pcie_generation);
    nvmlDeviceGetGpuMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.kind().pcie_generation);
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = |gpu| Ok(gpu.kind().pcie_width);
    nvmlDeviceGetPcieReplayCounter: c_uint = |gpu| gpu.told(|still| still.pcie_replays, gpu.state.pcie_replays);
    nvmlDeviceGetPcieSpeed: c_uint = |gpu| Ok(2_000 << gpu.state.pcie_generation.min(6).saturating_sub(1));
}

getters_by! {
    nvmlDeviceGetPcieThroughput: raw::nvmlPcieUtilCounter_t => c_uint = pcie_throughput;
    nvmlDeviceGetNvLinkState: c_uint => raw::nvmlEnableState_t =
        |gpu: &Gpu, number| link(gpu, number).map(|link| u32::from(!link.down));
    nvmlDeviceGetNvLinkVersion: c_uint => c_uint = |gpu: &Gpu, number| link(gpu, number).map(|_| version(gpu));
    nvmlDeviceGetNvLinkRemoteDeviceType: c_uint => raw::nvmlIntNvLinkDeviceType_t =
        |gpu: &Gpu, number| link(gpu, number).map(|_| raw::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH);
    nvmlDeviceGetNvLinkRemotePciInfo: c_uint => raw::nvmlPciInfo_t = remote;
    nvmlDeviceGetNvLinkRemotePciInfo_v2: c_uint => raw::nvmlPciInfo_t = remote;
}

/// In KiB per second.
fn pcie_throughput(gpu: &Gpu, counter: raw::nvmlPcieUtilCounter_t) -> Answer<c_uint> {
    match counter {
        raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES => {
            gpu.told(|still| still.pcie_kib[0], round_u32(gpu.state.load.pcie_tx / 1024.0))
        }
        raw::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES => {
            gpu.told(|still| still.pcie_kib[1], round_u32(gpu.state.load.pcie_rx / 1024.0))
        }
        _ => Err(INVALID_ARGUMENT),
    }
}

/// A link, if there is such a one.
pub(super) fn link(gpu: &Gpu, number: c_uint) -> Answer<LinkState> {
    if gpu.kind().nvlinks == 0 {
        return Err(NOT_SUPPORTED);
    }
    gpu.state.links.get(number as usize).copied().ok_or(INVALID_ARGUMENT)
}

/// Of NVLink: by generation of the board.
pub(super) fn version(gpu: &Gpu) -> c_uint {
    match gpu.kind().architecture {
        ..=5 => 2,
        6..=8 => 3,
        9 => 4,
        _ => 5,
    }
}

/// Links go round robin to four switches.
fn remote(gpu: &Gpu, number: c_uint) -> Answer<raw::nvmlPciInfo_t> {
    link(gpu, number)?;
    let bus = 5 + number % 4;
    Ok(raw::nvmlPciInfo_t {
        busIdLegacy: field_text(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus,
        device: 0,
        pciDeviceId: 0x22A3_10DE,
        pciSubSystemId: 0,
        busId: field_text(&format!("00000000:{bus:02X}:00.0")),
    })
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkErrorCounter(
    device: nvmlDevice_t,
    number: c_uint,
    counter: raw::nvmlNvLinkErrorCounter_t,
    out: *mut c_ulonglong,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| {
        let link = link(gpu, number)?;
        match counter {
            raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY => Ok(link.replay),
            raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY => Ok(link.recovery),
            raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT => Ok(link.crc),
            counter if counter < raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_COUNT => Ok(0),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    // SAFETY: the header asks for a pointer to an unsigned long long.
    code(unsafe { super::get("nvmlDeviceGetNvLinkErrorCounter", device, out, get) })
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
    code(unsafe { super::get("nvmlDeviceGetNvLinkCapability", device, out, get) })
}
