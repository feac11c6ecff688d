//! Steering a library that is loaded: the symbols of `abi::control`, from the side of the loader.

#![expect(unsafe_code, reason = "symbols of a loaded library are called")]

use std::path::Path;

use libloading::Library;

/// The time that returns the library to the machine's clock.
const REAL_CLOCK: i64 = i64::MIN;

/// The loaded library's controls. Loading a library that is loaded already gives the same instance.
#[derive(Debug)]
pub struct Controls {
    library: Library,
}

impl Controls {
    /// Loads the library, or takes the instance of it that is loaded already.
    ///
    /// # Errors
    ///
    /// The loader's message when the file is no library, or none of ours.
    pub fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: the file is this package's own library; loading it runs no code of its own.
        let library = unsafe { Library::new(path) }?;
        let controls = Self { library };
        controls.setter(b"watchfire_sim_set_epoch\0")?;
        controls.setter(b"watchfire_sim_set_time_ms\0")?;
        Ok(controls)
    }

    /// Sets the scenario's start, in milliseconds since the epoch.
    pub fn set_epoch(&self, time: i64) {
        self.call(b"watchfire_sim_set_epoch\0", time);
    }

    /// Stops the library's clock at a time, in milliseconds since the epoch; `None` lets it run with the machine's.
    pub fn set_time(&self, time: Option<i64>) {
        self.call(b"watchfire_sim_set_time_ms\0", time.unwrap_or(REAL_CLOCK));
    }

    fn call(&self, name: &[u8], value: i64) {
        if let Ok(set) = self.setter(name) {
            set(value);
        }
    }

    fn setter(&self, name: &[u8]) -> Result<libloading::Symbol<'_, extern "C" fn(i64)>, libloading::Error> {
        // SAFETY: both symbols take one 64-bit number and return nothing (`abi::control`).
        unsafe { self.library.get(name) }
    }
}
