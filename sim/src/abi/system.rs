//! The library itself: start, end, versions, and the way to a GPU.

use std::ffi::{CStr, c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NOT_FOUND, code, put, put_text, simulator};
use crate::scenario::Scenario;

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    simulator::init()
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit() -> nvmlReturn_t {
    simulator::init()
}

/// Vendor's function of this name; the flags change nothing here.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    simulator::init()
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    simulator::shutdown()
}

/// Vendor's function of this name: works without `nvmlInit`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    error_text(result).as_ptr()
}

fn error_text(result: nvmlReturn_t) -> &'static CStr {
    match result {
        raw::nvmlReturn_enum_NVML_SUCCESS => c"Success",
        raw::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => c"Uninitialized",
        raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT => c"Invalid Argument",
        raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => c"Not Supported",
        raw::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => c"Insufficient Permissions",
        raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND => c"Not Found",
        raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE => c"Insufficient Size",
        raw::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        raw::nvmlReturn_enum_NVML_ERROR_TIMEOUT => c"Timeout",
        raw::nvmlReturn_enum_NVML_ERROR_LIBRARY_NOT_FOUND => c"NVML Shared Library Not Found",
        raw::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND => c"Function Not Found",
        raw::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        raw::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => c"GPU requires reset",
        raw::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH => c"Driver/library version mismatch",
        raw::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH => c"Argument version mismatch",
        _ => c"Unknown Error",
    }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    // SAFETY: the header asks for a buffer of this length.
    code(
        simulator::scenario()
            .and_then(|scenario| unsafe { put_text(out, length, &scenario.driver_at(simulator::tick()).version) }),
    )
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    // SAFETY: the header asks for a buffer of this length.
    code(
        simulator::scenario()
            .and_then(|scenario| unsafe { put_text(out, length, &scenario.driver_at(simulator::tick()).nvml) }),
    )
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(out: *mut c_int) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to an int.
    code(simulator::scenario().and_then(|scenario| unsafe { put(out, scenario.driver_at(simulator::tick()).cuda) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) -> nvmlReturn_t {
    // SAFETY: as for the first version.
    unsafe { nvmlSystemGetCudaDriverVersion(out) }
}

/// Vendor's function of this name: the scenario's processes have a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetProcessName(pid: c_uint, out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let named = simulator::scenario().and_then(|scenario| {
        let t_ms = simulator::tick();
        (0..scenario.gpu_count())
            .flat_map(|gpu| scenario.state(gpu, t_ms).processes)
            .find(|process| process.pid == pid && process.alive)
            .map(|process| process.name)
            .ok_or(NOT_FOUND)
    });
    // SAFETY: the header asks for a buffer of this length.
    code(named.and_then(|name| unsafe { put_text(out, length, &name) }))
}

/// Vendor's function of this name: no S-class units.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlUnitGetCount(out: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to an unsigned int.
    code(simulator::scenario().and_then(|_| unsafe { put(out, 0) }))
}

/// Vendor's function of this name: lost GPUs are counted too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> nvmlReturn_t {
    let count = super::call::enter("nvmlDeviceGetCount_v2", None)
        .and_then(|()| simulator::scenario())
        .map(|_| c_uint::try_from(simulator::present().len()).unwrap_or(0));
    // SAFETY: the header asks for a pointer to an unsigned int.
    code(count.and_then(|count| unsafe { put(out, count) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount(out: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: as for the second version.
    unsafe { nvmlDeviceGetCount_v2(out) }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    let found = simulator::scenario().and_then(|scenario| {
        let board = simulator::present()
            .get(index as usize)
            .copied()
            .ok_or(INVALID_ARGUMENT)?;
        super::call::enter_named("nvmlDeviceGetHandleByIndex_v2", Some(board))?;
        find(&scenario, |gpu| gpu == board, INVALID_ARGUMENT)
    });
    // SAFETY: the header asks for a pointer to a handle.
    code(found.and_then(|device| unsafe { put(out, device) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex(index: c_uint, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    // SAFETY: as for the second version.
    unsafe { nvmlDeviceGetHandleByIndex_v2(index, out) }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    // SAFETY: the header asks for a C text and a pointer to a handle.
    code(
        match unsafe { by_text(uuid, out, |scenario, gpu, text| scenario.boards()[gpu].uuid == text) } {
            // SAFETY: as above.
            Err(NOT_FOUND) => unsafe { instance_by_uuid(uuid, out) },
            other => other,
        },
    )
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleBySerial(serial: *const c_char, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    // SAFETY: the header asks for a C text and a pointer to a handle.
    code(unsafe { by_text(serial, out, |scenario, gpu, text| scenario.boards()[gpu].serial == text) })
}

/// Vendor's function of this name: any form of the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    // SAFETY: the header asks for a C text and a pointer to a handle.
    code(unsafe {
        by_text(id, out, |scenario, gpu, text| {
            let address = crate::scenario::PciAddress::parse(text);
            address == Some(scenario.boards()[gpu].pci)
        })
    })
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId(id: *const c_char, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    // SAFETY: as for the second version.
    unsafe { nvmlDeviceGetHandleByPciBusId_v2(id, out) }
}

/// # Safety
///
/// `text` is null or a C text; `out` is null or points to a writable handle.
unsafe fn by_text(
    text: *const c_char,
    out: *mut nvmlDevice_t,
    is: impl Fn(&Scenario, usize, &str) -> bool,
) -> Answer<()> {
    let scenario = simulator::scenario()?;
    if text.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and a C text by the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_ARGUMENT)?;
    let device = find(&scenario, |gpu| is(&scenario, gpu, text), NOT_FOUND)?;
    // SAFETY: the caller's promise.
    unsafe { put(out, device) }
}

/// # Safety
///
/// As for [`by_text`].
unsafe fn instance_by_uuid(text: *const c_char, out: *mut nvmlDevice_t) -> Answer<()> {
    let scenario = simulator::scenario()?;
    // SAFETY: a C text by the caller's promise; null was refused before.
    let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_ARGUMENT)?;
    let t_ms = simulator::tick();
    let device = simulator::present()
        .into_iter()
        .find_map(|gpu| {
            let mig = scenario.state(gpu, t_ms).mig;
            let slot = mig.iter().position(|mig| mig.instance.uuid == text)?;
            simulator::mig_handle(gpu, slot)
        })
        .ok_or(NOT_FOUND)?;
    // SAFETY: the caller's promise.
    unsafe { put(out, device) }
}

/// A GPU off the bus cannot be opened any more.
fn find(scenario: &Scenario, is: impl Fn(usize) -> bool, missing: nvmlReturn_t) -> Answer<nvmlDevice_t> {
    let gpu = simulator::present().into_iter().find(|gpu| is(*gpu)).ok_or(missing)?;
    if scenario.is_lost(gpu, simulator::tick()) {
        return Err(GPU_IS_LOST);
    }
    simulator::handle(gpu).ok_or(missing)
}
