//! The reins of a simulated library that this process has loaded.

#![expect(unsafe_code, reason = "calls symbols of a loaded library")]

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Steers the simulated `libnvidia-ml.so.1` at a path: the same instance that a client of the
/// same path has loaded in this process. Without it the library reads `WATCHFIRE_SIM_EPOCH_MS` and
/// `WATCHFIRE_SIM_SCENARIO` at its first `nvmlInit`, and follows the machine's clock.
pub struct Control {
    path: PathBuf,
    set_epoch: extern "C" fn(i64),
    set_time: extern "C" fn(i64),
    set_scenario: unsafe extern "C" fn(*const c_char) -> c_int,
    inject: unsafe extern "C" fn(*const c_char) -> i64,
    end: extern "C" fn(i64),
    /// Keeps the functions above loaded.
    _library: libloading::Library,
}

impl Control {
    /// Takes the reins.
    ///
    /// # Errors
    ///
    /// [`Error::Control`] if the file is not there or is the real driver's library.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |err: libloading::Error| Error::Control {
            path: path.to_owned(),
            message: err.to_string(),
        };
        // SAFETY: loading the simulator runs nothing; whoever names another library answers for its initialisers.
        let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
        // SAFETY: the symbols have these signatures, and the library stays loaded as long as they are used.
        unsafe {
            Ok(Self {
                path: path.to_owned(),
                set_epoch: *library.get(b"watchfire_sim_set_epoch\0").map_err(failed)?,
                set_time: *library.get(b"watchfire_sim_set_time_ms\0").map_err(failed)?,
                set_scenario: *library.get(b"watchfire_sim_set_scenario\0").map_err(failed)?,
                inject: *library.get(b"watchfire_sim_inject\0").map_err(failed)?,
                end: *library.get(b"watchfire_sim_end\0").map_err(failed)?,
                _library: library,
            })
        }
    }

    /// Sets the scenario's start, in milliseconds since 1970; `None` forgets it.
    pub fn set_epoch_ms(&self, ms: Option<i64>) {
        (self.set_epoch)(ms.unwrap_or(i64::MIN));
    }

    /// Sets the time, in milliseconds since 1970; `None` returns to the machine's clock.
    pub fn set_time_ms(&self, ms: Option<i64>) {
        (self.set_time)(ms.unwrap_or(i64::MIN));
    }

    /// Injects a fault from now on, as written in a scenario without times: `{ gpu: 3, xid: 79 }`. Gives its number, for
    /// [`end`](Self::end). Other processes that play the same scenario hear nothing of it: see
    /// [`Switches`](crate::Switches).
    ///
    /// # Errors
    ///
    /// [`Error::Control`] for what is no fault; the library says why on standard error.
    pub fn inject(&self, fault: &str) -> Result<u64, Error> {
        let failed = || Error::Control {
            path: self.path.clone(),
            message: format!("no fault: {fault}"),
        };
        let text = CString::new(fault).map_err(|_| failed())?;
        // SAFETY: a C text that lives until the call returns.
        u64::try_from(unsafe { (self.inject)(text.as_ptr()) }).map_err(|_| failed())
    }

    /// Ends a fault that was injected; what it counted stays counted.
    pub fn end(&self, fault: u64) {
        (self.end)(i64::try_from(fault).unwrap_or(-1));
    }

    /// Names the scenario file for the next first `nvmlInit`; `None` returns to the default.
    ///
    /// # Errors
    ///
    /// [`Error::Control`] for a path with a NUL or that is not UTF-8.
    pub fn set_scenario(&self, scenario: Option<&Path>) -> Result<(), Error> {
        let failed = |message: &str| Error::Control {
            path: self.path.clone(),
            message: message.into(),
        };
        let text = scenario
            .map(|path| CString::new(path.as_os_str().as_bytes()))
            .transpose()
            .map_err(|_| failed("the scenario's path has a NUL"))?;
        // SAFETY: null, or a C text that lives until the call returns.
        match unsafe { (self.set_scenario)(text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())) } {
            0 => Ok(()),
            _ => Err(failed("the scenario's path is not UTF-8")),
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
