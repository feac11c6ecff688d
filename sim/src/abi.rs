//! The driver's library as C programs see it.
//!
//! Each exported function has the vendor's name and signature, and the vendor's manners: nothing
//! before `nvmlInit`, invalid pointers and handles are refused, buffers too small say how much is
//! needed, versioned structures must carry their version, a lost GPU is lost in every call. What
//! is not simulated is absent as a symbol, which every client meets with older drivers too.
//!
//! Sampled values change every 100 ms, as the driver's do; that is also what makes hundreds of
//! calls for one page cheap.

#![expect(unsafe_code, reason = "this is a C library")]

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

mod accounting;
mod call;
mod control;
mod errors;
mod events;
mod fabric;
mod fields;
mod gpm;
mod identity;
mod links;
mod mig;
mod processes;
mod readings;
mod simulator;
mod system;

use crate::scenario::NoNumber;
use simulator::Gpu;

type Answer<T> = Result<T, nvmlReturn_t>;

const SUCCESS: nvmlReturn_t = raw::nvmlReturn_enum_NVML_SUCCESS;
const UNINITIALIZED: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED;
const INVALID_ARGUMENT: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
const NOT_SUPPORTED: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
const NOT_FOUND: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
const INSUFFICIENT_SIZE: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
const TIMEOUT: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_TIMEOUT;
const GPU_IS_LOST: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
const UNKNOWN: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_UNKNOWN;
const VERSION_MISMATCH: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;

/// The code of an outcome.
fn code(outcome: Answer<()>) -> nvmlReturn_t {
    outcome.err().unwrap_or(SUCCESS)
}

/// Writes a value through a pointer that the caller owns.
///
/// # Safety
///
/// `out` is null or points to a writable `T`.
unsafe fn put<T>(out: *mut T, value: T) -> Answer<()> {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and writable by the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes a text and its end into a buffer.
///
/// # Safety
///
/// `out` is null or points to `length` writable bytes.
unsafe fn put_text(out: *mut c_char, length: c_uint, text: &str) -> Answer<()> {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the text and its end fit into the caller's `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// The text as a field of a structure.
fn field_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (slot, byte) in field.iter_mut().zip(text.bytes().take(N - 1)) {
        *slot = byte as c_char;
    }
    field
}

/// The header's structure version: `sizeof(s) | n << 24`.
#[expect(clippy::cast_possible_truncation, reason = "structures are far smaller than 16 MiB")]
const fn structure_version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}

/// Defines functions of the shape `(device, *mut T)`.
macro_rules! getters {
    ($($name:ident: $type:ty = $get:expr;)*) => {
        $(
            /// Vendor's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(device: $crate::abi::nvmlDevice_t, out: *mut $type) -> $crate::abi::nvmlReturn_t {
                // SAFETY: the header asks for a pointer to this type.
                $crate::abi::code(unsafe { $crate::abi::get(stringify!($name), device, out, $get) })
            }
        )*
    };
}

/// Defines functions of the shape `(device, selector, *mut T)`.
macro_rules! getters_by {
    ($($name:ident: $by:ty => $type:ty = $get:expr;)*) => {
        $(
            /// Vendor's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(device: $crate::abi::nvmlDevice_t, by: $by, out: *mut $type) -> $crate::abi::nvmlReturn_t {
                let get = |gpu: &$crate::abi::simulator::Gpu| $get(gpu, by);
                // SAFETY: the header asks for a pointer to this type.
                $crate::abi::code(unsafe { $crate::abi::get(stringify!($name), device, out, get) })
            }
        )*
    };
}

/// Defines functions of the shape `(device, *mut T, *mut T)`.
macro_rules! getters_pair {
    ($($name:ident: $type:ty = $get:expr;)*) => {
        $(
            /// Vendor's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                device: $crate::abi::nvmlDevice_t,
                first: *mut $type,
                second: *mut $type,
            ) -> $crate::abi::nvmlReturn_t {
                // SAFETY: the header asks for pointers to this type.
                $crate::abi::code(unsafe { $crate::abi::get_pair(stringify!($name), device, first, second, $get) })
            }
        )*
    };
}

/// Defines functions of the shape `(device, *mut char, length)`.
macro_rules! getters_text {
    ($($name:ident = $get:expr;)*) => {
        $(
            /// Vendor's function of this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                device: $crate::abi::nvmlDevice_t,
                out: *mut std::ffi::c_char,
                length: std::ffi::c_uint,
            ) -> $crate::abi::nvmlReturn_t {
                // SAFETY: the header asks for a buffer of this length.
                $crate::abi::code(unsafe { $crate::abi::get_text(stringify!($name), device, out, length, $get) })
            }
        )*
    };
}

use {getters, getters_by, getters_pair, getters_text};

/// # Safety
///
/// `out` is null or points to a writable `T`.
unsafe fn get<T>(
    function: &'static str,
    device: nvmlDevice_t,
    out: *mut T,
    get: impl FnOnce(&Gpu) -> Answer<T>,
) -> Answer<()> {
    let gpu = Gpu::open(function, device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    unsafe {
        put(out, get(&gpu)?)?;
        spoil(out, gpu.no_number);
    }
    Ok(())
}

/// Writes a number that means none over an answer.
///
/// # Safety
///
/// `out` points to a writable `T`, which is a number or a structure of numbers.
unsafe fn spoil<T>(out: *mut T, no_number: Option<NoNumber>) {
    // SAFETY: within the `T` of the caller's promise; any bits are a number.
    unsafe {
        match (no_number, size_of::<T>()) {
            (None, _) => {}
            (Some(NoNumber::Blank), 4) => out.cast::<u32>().write_unaligned(INT32_BLANK),
            (Some(NoNumber::Blank), 8) => out.cast::<u64>().write_unaligned(INT64_BLANK),
            (Some(_), size) => out.cast::<u8>().write_bytes(0xff, size),
        }
    }
}

/// The blanks of DCGM's header.
const INT32_BLANK: u32 = 2_147_483_632;
const INT64_BLANK: u64 = 9_223_372_036_854_775_794;

/// # Safety
///
/// Each of the pointers is null or points to a writable `T`.
unsafe fn get_pair<T>(
    function: &'static str,
    device: nvmlDevice_t,
    first: *mut T,
    second: *mut T,
    get: impl FnOnce(&Gpu) -> Answer<(T, T)>,
) -> Answer<()> {
    let gpu = Gpu::open(function, device)?;
    if first.is_null() || second.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let (one, two) = get(&gpu)?;
    // SAFETY: the caller's promise.
    unsafe {
        put(first, one)?;
        put(second, two)?;
        spoil(first, gpu.no_number);
        spoil(second, gpu.no_number);
    }
    Ok(())
}

/// # Safety
///
/// `out` is null or points to `length` writable bytes.
unsafe fn get_text(
    function: &'static str,
    device: nvmlDevice_t,
    out: *mut c_char,
    length: c_uint,
    get: impl FnOnce(&Gpu) -> Answer<String>,
) -> Answer<()> {
    let gpu = Gpu::open(function, device)?;
    // SAFETY: the caller's promise.
    unsafe { put_text(out, length, &get(&gpu)?) }
}
