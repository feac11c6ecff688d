//! Calling C functions of the few shapes that NVML has.
//!
//! All `unsafe` calls of plain shape are here, one per shape. The bindings give each function its
//! own pointer type, so a symbol can only be called in the shape of the vendor's header.

#![expect(unsafe_code, reason = "this module is where Rust meets the C library")]

use std::ffi::{CStr, c_char, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use crate::error::{Error, means_absent};

/// The handle of one GPU, valid while the library is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) nvmlDevice_t);

// SAFETY: a handle is an opaque token that NVML documents as usable from any thread; Rust never follows it.
unsafe impl Send for Handle {}
// SAFETY: as above; every NVML call is documented as thread-safe.
unsafe impl Sync for Handle {}

/// A C function that may be absent from an older library, and its name.
pub(crate) struct Symbol<F> {
    function: Option<F>,
    name: &'static str,
}

/// Names a function of the loaded library.
macro_rules! symbol {
    ($library:expr, $name:ident) => {
        $crate::symbol::Symbol::new(&$library.raw.$name, stringify!($name))
    };
}
pub(crate) use symbol;

type Get<T> = unsafe extern "C" fn(nvmlDevice_t, *mut T) -> nvmlReturn_t;
type GetBy<A, T> = unsafe extern "C" fn(nvmlDevice_t, A, *mut T) -> nvmlReturn_t;
type GetBy2<A, B, T> = unsafe extern "C" fn(nvmlDevice_t, A, B, *mut T) -> nvmlReturn_t;
type GetBy3<A, B, C, T> = unsafe extern "C" fn(nvmlDevice_t, A, B, C, *mut T) -> nvmlReturn_t;
type GetPair<T, U> = unsafe extern "C" fn(nvmlDevice_t, *mut T, *mut U) -> nvmlReturn_t;
type GetText = unsafe extern "C" fn(nvmlDevice_t, *mut c_char, c_uint) -> nvmlReturn_t;
type GetTextBy<A> = unsafe extern "C" fn(nvmlDevice_t, A, *mut c_char, c_uint) -> nvmlReturn_t;
type System<T> = unsafe extern "C" fn(*mut T) -> nvmlReturn_t;
type SystemText = unsafe extern "C" fn(*mut c_char, c_uint) -> nvmlReturn_t;

impl<F: Copy> Symbol<F> {
    pub(crate) fn new<E>(loaded: &Result<F, E>, name: &'static str) -> Self {
        Self {
            function: loaded.as_ref().ok().copied(),
            name,
        }
    }

    /// The function, or `None` where the library lacks it.
    pub(crate) fn function(&self) -> Option<F> {
        self.function
    }

    /// The outcome of a call of this symbol: whether there was an answer.
    ///
    /// # Errors
    ///
    /// Every code that is neither success nor "there is no such thing here".
    pub(crate) fn outcome(&self, code: nvmlReturn_t) -> Result<bool, Error> {
        if means_absent(code) {
            return Ok(false);
        }
        Error::from_code(code, self.name).map_or(Ok(true), Err)
    }

    /// As [`outcome`](Self::outcome), for calls with a selector: an older driver says
    /// "invalid argument" to a selector it does not know.
    fn outcome_by(&self, code: nvmlReturn_t) -> Result<bool, Error> {
        if code == raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT {
            return Ok(false);
        }
        self.outcome(code)
    }
}

impl<T: Copy> Symbol<Get<T>> {
    /// Asks for one value; `init` is what the function finds there (structure versions).
    pub(crate) fn read(&self, device: Handle, init: T) -> Result<Option<T>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut value = init;
        // SAFETY: the pointer is to a live `T`, which is what the header's function of this type writes.
        let code = unsafe { function(device.0, &raw mut value) };
        Ok(self.outcome(code)?.then_some(value))
    }
}

impl<A, T: Copy> Symbol<GetBy<A, T>> {
    /// Asks for one value by a selector.
    pub(crate) fn read_by(&self, device: Handle, by: A, init: T) -> Result<Option<T>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut value = init;
        // SAFETY: the pointer is to a live `T`; the selector is passed by value.
        let code = unsafe { function(device.0, by, &raw mut value) };
        Ok(self.outcome_by(code)?.then_some(value))
    }
}

impl<A, B, T: Copy> Symbol<GetBy2<A, B, T>> {
    /// Asks for one value by two selectors.
    pub(crate) fn read_by2(&self, device: Handle, by: (A, B), init: T) -> Result<Option<T>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut value = init;
        // SAFETY: the pointer is to a live `T`; the selectors are passed by value.
        let code = unsafe { function(device.0, by.0, by.1, &raw mut value) };
        Ok(self.outcome_by(code)?.then_some(value))
    }
}

impl<A, B, C, T: Copy> Symbol<GetBy3<A, B, C, T>> {
    /// Asks for one value by three selectors.
    pub(crate) fn read_by3(&self, device: Handle, by: (A, B, C), init: T) -> Result<Option<T>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut value = init;
        // SAFETY: the pointer is to a live `T`; the selectors are passed by value.
        let code = unsafe { function(device.0, by.0, by.1, by.2, &raw mut value) };
        Ok(self.outcome_by(code)?.then_some(value))
    }
}

impl<T: Copy, U: Copy> Symbol<GetPair<T, U>> {
    /// Asks for two values at once.
    pub(crate) fn read_pair(&self, device: Handle, init: (T, U)) -> Result<Option<(T, U)>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let (mut first, mut second) = init;
        // SAFETY: the pointers are to a live `T` and a live `U`; functions that fill arrays are not called through here.
        let code = unsafe { function(device.0, &raw mut first, &raw mut second) };
        Ok(self.outcome(code)?.then_some((first, second)))
    }
}

/// Larger than any text NVML gives (device names 96, versions 80, UUID 96).
const TEXT_BYTES: usize = 256;

impl Symbol<GetText> {
    /// Asks for a text.
    pub(crate) fn text(&self, device: Handle) -> Result<Option<String>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut buffer = [0_u8; TEXT_BYTES];
        // SAFETY: pointer and length describe `buffer`.
        let code = unsafe { function(device.0, buffer.as_mut_ptr().cast(), TEXT_BYTES as c_uint) };
        Ok(if self.outcome(code)? { text(&buffer) } else { None })
    }
}

type GetTextUnbounded = unsafe extern "C" fn(nvmlDevice_t, *mut c_char) -> nvmlReturn_t;

impl Symbol<GetTextUnbounded> {
    /// Asks for a text of a function that takes no length; the header bounds it well below [`TEXT_BYTES`].
    pub(crate) fn text_unbounded(&self, device: Handle) -> Result<Option<String>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut buffer = [0_u8; TEXT_BYTES];
        // SAFETY: the buffer is larger than the header's bound for every such text.
        let code = unsafe { function(device.0, buffer.as_mut_ptr().cast()) };
        Ok(if self.outcome(code)? { text(&buffer) } else { None })
    }
}

impl<A> Symbol<GetTextBy<A>> {
    /// Asks for a text by a selector.
    pub(crate) fn text_by(&self, device: Handle, by: A) -> Result<Option<String>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut buffer = [0_u8; TEXT_BYTES];
        // SAFETY: pointer and length describe `buffer`; the selector is passed by value.
        let code = unsafe { function(device.0, by, buffer.as_mut_ptr().cast(), TEXT_BYTES as c_uint) };
        Ok(if self.outcome_by(code)? { text(&buffer) } else { None })
    }
}

impl<T: Copy> Symbol<System<T>> {
    /// Asks the library, not a GPU, for one value.
    pub(crate) fn system(&self, init: T) -> Result<Option<T>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut value = init;
        // SAFETY: the pointer is to a live `T`, which is what the header's function of this type writes.
        let code = unsafe { function(&raw mut value) };
        Ok(self.outcome(code)?.then_some(value))
    }
}

impl Symbol<SystemText> {
    /// Asks the library, not a GPU, for a text.
    pub(crate) fn system_text(&self) -> Result<Option<String>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let mut buffer = [0_u8; TEXT_BYTES];
        // SAFETY: pointer and length describe `buffer`.
        let code = unsafe { function(buffer.as_mut_ptr().cast(), TEXT_BYTES as c_uint) };
        Ok(if self.outcome(code)? { text(&buffer) } else { None })
    }
}

impl Symbol<unsafe extern "C" fn() -> nvmlReturn_t> {
    /// Calls a function without arguments.
    pub(crate) fn call(&self) -> Option<nvmlReturn_t> {
        // SAFETY: the function takes nothing and returns a code.
        self.function.map(|function| unsafe { function() })
    }
}

/// Reads a C text; empty and `N/A` are absent.
pub(crate) fn text(buffer: &[u8]) -> Option<String> {
    let bytes = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    (!text.is_empty() && text != "N/A" && text != "[N/A]").then_some(text)
}

/// Reads a C text held in a structure.
pub(crate) fn field_text<const N: usize>(field: &[c_char; N]) -> Option<String> {
    text(&field.map(|byte| byte as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(buffer: &[u8], want: Option<&str>) {
        assert_eq!(text(buffer).as_deref(), want);
    }

    #[test]
    fn a_text_ends_at_its_nul() {
        check(b"NVIDIA H100\0garbage", Some("NVIDIA H100"));
        check(b"no end", Some("no end"));
        check(b"bad \xff byte\0", Some("bad \u{fffd} byte"));
    }

    #[test]
    fn a_text_that_says_nothing_is_absent() {
        check(b"\0", None);
        check(b"  \0", None);
        check(b"N/A\0", None);
        check(b"[N/A]\0", None);
    }

    #[test]
    fn a_function_that_the_library_lacks_gives_nothing() {
        type Get = unsafe extern "C" fn(nvmlDevice_t, *mut u32) -> nvmlReturn_t;
        let missing: Symbol<Get> = Symbol::new(&Err("no such symbol"), "nvmlDeviceGetSomething");
        assert!(matches!(missing.read(Handle(std::ptr::null_mut()), 7), Ok(None)));
    }

    #[test]
    fn an_unknown_selector_is_absent_and_an_invalid_handle_is_an_error() {
        let symbol: Symbol<()> = Symbol {
            function: None,
            name: "nvmlDeviceGetSomething",
        };
        let invalid = raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
        assert!(matches!(symbol.outcome_by(invalid), Ok(false)));
        assert!(matches!(symbol.outcome(invalid), Err(Error::Unknown { code: 2, .. })));
        assert!(matches!(
            symbol.outcome(raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
            Ok(false)
        ));
        assert!(matches!(symbol.outcome(raw::nvmlReturn_enum_NVML_SUCCESS), Ok(true)));
    }
}
