//! Why the driver did not answer.

use std::path::PathBuf;

use nvml_wrapper_sys::bindings as raw;

/// Why the library could not be loaded or a call gave no answer.
///
/// "Not supported" is no error: such calls return `Ok(None)`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No NVML library was found: normally a machine without an NVIDIA driver.
    #[error("cannot load the NVML library: {}", list(.tried))]
    LibraryNotFound {
        /// Each path tried, with the loader's reason.
        tried: Vec<(PathBuf, String)>,
    },
    /// The file is a library, but not NVML or too old.
    #[error("the library {} lacks the symbol {symbol}", .path.display())]
    SymbolMissing {
        /// The library's path.
        path: PathBuf,
        /// The C function that every NVML since driver 450 has.
        symbol: &'static str,
    },
    /// The library is there, the kernel module is not loaded.
    #[error("the NVIDIA kernel driver is not loaded")]
    DriverNotLoaded,
    /// Library and kernel module are of different releases, as after an unattended upgrade.
    #[error("the NVML library and the loaded kernel driver are of different versions")]
    VersionMismatch,
    /// The user may not ask this.
    #[error("no permission for {call}")]
    NoPermission {
        /// The C function that was refused.
        call: &'static str,
    },
    /// The driver gave up waiting for the GPU.
    #[error("{call} timed out in the driver")]
    Timeout {
        /// The C function that timed out.
        call: &'static str,
    },
    /// The GPU has fallen off the bus (XID 79) or is otherwise unreachable.
    #[error("the GPU is lost")]
    GpuLost,
    /// The GPU answers no more until it is reset.
    #[error("the GPU requires a reset")]
    ResetRequired,
    /// No such GPU: the index, UUID or bus id is unknown to the driver.
    #[error("no such GPU")]
    NoSuchDevice,
    /// The library was shut down, or never initialised.
    #[error("the NVML library is not initialised")]
    Uninitialized,
    /// Any other code of the library.
    #[error("{call} failed with NVML code {code}")]
    Unknown {
        /// The C function that failed.
        call: &'static str,
        /// The library's `nvmlReturn_t`.
        code: u32,
    },
}

impl Error {
    /// Turns a return code into an error; `None` for success.
    pub(crate) fn from_code(code: raw::nvmlReturn_t, call: &'static str) -> Option<Self> {
        Some(match code {
            raw::nvmlReturn_enum_NVML_SUCCESS => return None,
            raw::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => Self::Uninitialized,
            raw::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => Self::NoPermission { call },
            raw::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => Self::DriverNotLoaded,
            raw::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH => Self::VersionMismatch,
            raw::nvmlReturn_enum_NVML_ERROR_TIMEOUT => Self::Timeout { call },
            raw::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => Self::GpuLost,
            raw::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => Self::ResetRequired,
            raw::nvmlReturn_enum_NVML_ERROR_GPU_NOT_FOUND => Self::NoSuchDevice,
            code => Self::Unknown { call, code },
        })
    }

    /// Whether this speaks of the GPU itself, so that asking it anything else is vain.
    #[must_use]
    pub fn is_gpu_gone(&self) -> bool {
        matches!(self, Self::GpuLost | Self::ResetRequired | Self::NoSuchDevice)
    }
}

/// Whether a code says that there is no such thing here, as opposed to a failure.
///
/// `NO_DATA` and `NOT_READY` belong here: the sampling behind the value has nothing yet.
/// `ARGUMENT_VERSION_MISMATCH` is an older driver refusing a newer structure.
pub(crate) fn means_absent(code: raw::nvmlReturn_t) -> bool {
    matches!(
        code,
        raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED
            | raw::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND
            | raw::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH
            | raw::nvmlReturn_enum_NVML_ERROR_DEPRECATED
            | raw::nvmlReturn_enum_NVML_ERROR_NO_DATA
            | raw::nvmlReturn_enum_NVML_ERROR_NOT_READY
    )
}

fn list(tried: &[(PathBuf, String)]) -> String {
    let each: Vec<String> = tried
        .iter()
        .map(|(path, reason)| format!("{} ({reason})", path.display()))
        .collect();
    each.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_no_error() {
        assert!(Error::from_code(0, "nvmlInit_v2").is_none());
    }

    #[test]
    fn an_unknown_code_keeps_its_number_and_call() {
        let text = Error::from_code(777, "nvmlInit_v2").map(|err| err.to_string());
        assert_eq!(text.as_deref(), Some("nvmlInit_v2 failed with NVML code 777"));
    }

    #[test]
    fn a_missing_library_names_each_path() {
        let err = Error::LibraryNotFound {
            tried: vec![("a.so".into(), "no file".into()), ("b.so".into(), "bad".into())],
        };
        assert_eq!(
            err.to_string(),
            "cannot load the NVML library: a.so (no file); b.so (bad)"
        );
    }
}
