//! Who a GPU is.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{
    Answer, INVALID_ARGUMENT, NOT_SUPPORTED, VERSION_MISMATCH, code, field_text, getters, getters_pair, getters_text,
    put_text, structure_version,
};
use crate::scenario::Board;

/// A text that the board has; an empty one it has not.
fn known(text: &str, has: bool) -> Answer<String> {
    if has && !text.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(NOT_SUPPORTED)
    }
}

fn board(gpu: &Gpu) -> &Board {
    &gpu.scenario.boards()[gpu.index]
}

getters_text! {
    nvmlDeviceGetUUID = |gpu| Ok(match &gpu.mig {
        Some(mig) => mig.instance.uuid.clone(),
        None => board(gpu).uuid.clone(),
    });
    nvmlDeviceGetName = |gpu| Ok(match &gpu.mig {
        Some(mig) => format!("{} MIG {}", gpu.kind().model, mig.instance.profile.name),
        None => gpu.kind().model.clone(),
    });
    nvmlDeviceGetSerial = |gpu| known(&board(gpu).serial, gpu.kind().datacenter);
    nvmlDeviceGetVbiosVersion = |gpu| known(&gpu.kind().vbios, true);
    nvmlDeviceGetBoardPartNumber = |gpu| known(&gpu.kind().part_number, true);
    nvmlDeviceGetInforomImageVersion = |gpu| known(&gpu.kind().inforom, true);
}

getters! {
    nvmlDeviceGetIndex: c_uint = |gpu| match &gpu.mig {
        Some(mig) => number(mig.instance.slot),
        None => number(simulator::present().iter().position(|board| *board == gpu.index).unwrap_or(gpu.index)),
    };
    nvmlDeviceGetMinorNumber: c_uint = |gpu| gpu.told(|still| still.minor, number(gpu.index)?);
    nvmlDeviceGetModuleId: c_uint = |gpu| number(gpu.index + 1);
    nvmlDeviceGetBoardId: c_uint = |gpu| Ok(board(gpu).pci.bus << 8);
    nvmlDeviceGetMultiGpuBoard: c_uint = |_| Ok(0);
    nvmlDeviceGetBrand: raw::nvmlBrandType_t = |_| Ok(raw::nvmlBrandType_enum_NVML_BRAND_NVIDIA);
    nvmlDeviceGetArchitecture: raw::nvmlDeviceArchitecture_t = |gpu| Ok(gpu.kind().architecture);
    nvmlDeviceGetNumGpuCores: c_uint = |gpu| Ok(gpu.kind().cores);
    nvmlDeviceGetMemoryBusWidth: c_uint = |_| Ok(5120);
    nvmlDeviceGetBusType: raw::nvmlBusType_t = |_| Ok(raw::NVML_BUS_TYPE_PCIE);
    nvmlDeviceGetPciInfo_v3: raw::nvmlPciInfo_t = pci_info;
    nvmlDeviceGetPciInfo_v2: raw::nvmlPciInfo_t = pci_info;
    nvmlDeviceGetPciInfo: raw::nvmlPciInfo_t = pci_info;
    nvmlDeviceGetDisplayMode: raw::nvmlEnableState_t = |_| Ok(raw::nvmlEnableState_enum_NVML_FEATURE_DISABLED);
    nvmlDeviceGetDisplayActive: raw::nvmlEnableState_t = |_| Ok(raw::nvmlEnableState_enum_NVML_FEATURE_DISABLED);
    nvmlDeviceGetPersistenceMode: raw::nvmlEnableState_t = |gpu| gpu.told(
        |still| still.persistence.map(u32::from),
        raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED,
    );
    nvmlDeviceGetComputeMode: raw::nvmlComputeMode_t =
        |gpu| gpu.told(|still| still.compute_mode, raw::nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT);
    nvmlDeviceGetVirtualizationMode: raw::nvmlGpuVirtualizationMode_t =
        |_| Ok(raw::nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_NONE);
}

getters_pair! {
    nvmlDeviceGetCudaComputeCapability: c_int = |gpu| Ok(gpu.kind().compute_capability);
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetInforomVersion(
    device: nvmlDevice_t,
    object: raw::nvmlInforomObject_t,
    out: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    let version = Gpu::open("nvmlDeviceGetInforomVersion", device).and_then(|gpu| match object {
        _ if !gpu.kind().datacenter => Err(NOT_SUPPORTED),
        raw::nvmlInforomObject_enum_NVML_INFOROM_OEM => Ok("2.1"),
        raw::nvmlInforomObject_enum_NVML_INFOROM_ECC => Ok("7.16"),
        raw::nvmlInforomObject_enum_NVML_INFOROM_POWER => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    });
    // SAFETY: the header asks for a buffer of this length.
    code(version.and_then(|version| unsafe { put_text(out, length, version) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfoExt(
    device: nvmlDevice_t,
    out: *mut raw::nvmlPciInfoExt_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with its version filled in.
    code(unsafe { pci_info_ext(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with its version filled in.
unsafe fn pci_info_ext(device: nvmlDevice_t, out: *mut raw::nvmlPciInfoExt_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetPciInfoExt", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let version = unsafe { (*out).version };
    if version != structure_version::<raw::nvmlPciInfoExt_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    let pci = board(&gpu).pci;
    let info = raw::nvmlPciInfoExt_t {
        version,
        domain: pci.domain,
        bus: pci.bus,
        device: pci.device,
        pciDeviceId: gpu.kind().pci_device_id,
        pciSubSystemId: gpu.kind().pci_subsystem_id,
        baseClass: 3,
        subClass: 2,
        busId: field_text(&pci.nvml()),
    };
    // SAFETY: as above.
    unsafe { super::put(out, info) }
}

fn pci_info(gpu: &Gpu) -> Answer<raw::nvmlPciInfo_t> {
    let pci = board(gpu).pci;
    Ok(raw::nvmlPciInfo_t {
        busIdLegacy: field_text(&pci.nvml_legacy()),
        domain: pci.domain,
        bus: pci.bus,
        device: pci.device,
        pciDeviceId: gpu.kind().pci_device_id,
        pciSubSystemId: gpu.kind().pci_subsystem_id,
        busId: field_text(&pci.nvml()),
    })
}

fn number(value: usize) -> Answer<c_uint> {
    c_uint::try_from(value).map_err(|_| NOT_SUPPORTED)
}
