//! The loaded library: found, checked, initialised, and shut down with its last user.

#![expect(unsafe_code, reason = "loads a C library")]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvml_wrapper_sys::bindings::{self as raw, NvmlLib};

use crate::device::Device;
use crate::device::memory::structure_version;
use crate::error::Error;
use crate::event::EventSet;
use crate::symbol::{Handle, symbol};

/// What the driver's packages install, first the name with a version as every client uses it.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The driver's management library, initialised.
///
/// Clones share it; the last of them, and of the [`Device`]s and [`EventSet`]s made from it,
/// shuts it down in order.
#[derive(Clone)]
pub struct Nvml {
    library: Arc<Library>,
}

/// The library proper; dropping it is the orderly end.
pub(crate) struct Library {
    pub(crate) raw: NvmlLib,
    path: PathBuf,
}

/// How confidential computing is set up on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfidentialCompute {
    /// Whether it is on.
    pub enabled: bool,
    /// Whether developer tools may look inside all the same.
    pub developer_tools: bool,
    /// Several GPUs: 0 no, 1 by protected PCIe, 2 by encrypted NVLink; `None` from older drivers.
    pub multi_gpu: Option<u32>,
}

impl Nvml {
    /// Loads and initialises the library: `path` if given, else `libnvidia-ml.so.1` and then
    /// `libnvidia-ml.so` by the loader's search path.
    ///
    /// Source: `nvmlInit_v2`. GPUs are not touched yet.
    ///
    /// # Errors
    ///
    /// [`Error::LibraryNotFound`] on a machine without the driver, [`Error::SymbolMissing`] for a
    /// library that is not NVML, [`Error::DriverNotLoaded`], [`Error::VersionMismatch`],
    /// [`Error::NoPermission`] or [`Error::Unknown`] with the library's code.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let candidates: Vec<PathBuf> = match path {
            Some(path) => vec![path.to_owned()],
            None => NAMES.iter().map(PathBuf::from).collect(),
        };
        let mut tried = Vec::new();
        for candidate in candidates {
            // SAFETY: loading runs the library's initialisers; the caller names the driver's own library.
            match unsafe { NvmlLib::new(&candidate) } {
                Ok(raw) => return Self::start(raw, candidate),
                Err(err) => tried.push((candidate, err.to_string())),
            }
        }
        Err(Error::LibraryNotFound { tried })
    }

    fn start(raw: NvmlLib, path: PathBuf) -> Result<Self, Error> {
        check_symbols(&raw, &path)?;
        let code = crate::symbol::Symbol::new(&raw.nvmlInit_v2, "nvmlInit_v2").call();
        match code.and_then(|code| Error::from_code(code, "nvmlInit_v2")) {
            Some(err) => Err(err),
            None => Ok(Self {
                library: Arc::new(Library { raw, path }),
            }),
        }
    }

    /// The file that was loaded, as it was named to the loader.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.library.path
    }

    /// The kernel driver's version, such as `550.163.01`; `None` if the library does not tell.
    ///
    /// Source: `nvmlSystemGetDriverVersion`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn driver_version(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlSystemGetDriverVersion).system_text()
    }

    /// The library's version, such as `12.550.163.01`; `None` if the library does not tell.
    ///
    /// Source: `nvmlSystemGetNVMLVersion`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn nvml_version(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlSystemGetNVMLVersion).system_text()
    }

    /// The newest CUDA version the driver serves, as (major, minor); `None` if unknown.
    ///
    /// Source: `nvmlSystemGetCudaDriverVersion_v2`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn cuda_version(&self) -> Result<Option<(i32, i32)>, Error> {
        let version = symbol!(self.library, nvmlSystemGetCudaDriverVersion_v2).system(0)?;
        Ok(version.map(|version| (version / 1000, version % 1000 / 10)))
    }

    /// How many GPUs the driver knows, lost ones included.
    ///
    /// Source: `nvmlDeviceGetCount_v2`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn device_count(&self) -> Result<u32, Error> {
        let count = symbol!(self.library, nvmlDeviceGetCount_v2).system(0)?;
        count.ok_or(Error::Unknown {
            call: "nvmlDeviceGetCount_v2",
            code: raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        })
    }

    /// Opens the GPU with this NVML index (bus order, from 0).
    ///
    /// Source: `nvmlDeviceGetHandleByIndex_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`] beyond the count, [`Error::GpuLost`] for one that has fallen off the bus.
    pub fn device(&self, index: u32) -> Result<Device, Error> {
        let call = "nvmlDeviceGetHandleByIndex_v2";
        let Ok(function) = &self.library.raw.nvmlDeviceGetHandleByIndex_v2 else {
            return Err(Error::NoSuchDevice);
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        let code = unsafe { function(index, &raw mut handle) };
        match code {
            raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT | raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND => {
                Err(Error::NoSuchDevice)
            }
            code => match Error::from_code(code, call) {
                Some(err) => Err(err),
                None => Ok(Device::new(Arc::clone(&self.library), Handle(handle), index)),
            },
        }
    }

    /// Opens the GPU or MIG device with this UUID.
    ///
    /// Its [`index`](Device::index) is the driver's, for a MIG device that within its GPU.
    ///
    /// Source: `nvmlDeviceGetHandleByUUID`, `nvmlDeviceGetIndex`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDevice`] for one that the driver does not know, [`Error::GpuLost`] for a lost one.
    pub fn device_by_uuid(&self, uuid: &str) -> Result<Device, Error> {
        let call = "nvmlDeviceGetHandleByUUID";
        let (Ok(function), Ok(text)) = (&self.library.raw.nvmlDeviceGetHandleByUUID, CString::new(uuid)) else {
            return Err(Error::NoSuchDevice);
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: a C text, and a pointer to a live handle.
        let code = unsafe { function(text.as_ptr(), &raw mut handle) };
        match code {
            raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT | raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND => {
                return Err(Error::NoSuchDevice);
            }
            code => {
                if let Some(err) = Error::from_code(code, call) {
                    return Err(err);
                }
            }
        }
        let handle = Handle(handle);
        let index = symbol!(self.library, nvmlDeviceGetIndex).read(handle, 0)?;
        Ok(Device::new(Arc::clone(&self.library), handle, index.unwrap_or(0)))
    }

    /// The state of confidential computing; `None` where library or processor know none.
    ///
    /// Source: `nvmlSystemGetConfComputeSettings`, else `nvmlSystemGetConfComputeState`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn confidential_compute(&self) -> Result<Option<ConfidentialCompute>, Error> {
        let empty = raw::nvmlSystemConfComputeSettings_t {
            version: structure_version::<raw::nvmlSystemConfComputeSettings_v1_t>(1),
            environment: 0,
            ccFeature: 0,
            devToolsMode: 0,
            multiGpuMode: 0,
        };
        if let Some(settings) = symbol!(self.library, nvmlSystemGetConfComputeSettings).system(empty)? {
            return Ok(Some(ConfidentialCompute {
                enabled: settings.ccFeature != 0,
                developer_tools: settings.devToolsMode != 0,
                multi_gpu: Some(settings.multiGpuMode),
            }));
        }
        let empty = raw::nvmlConfComputeSystemState_t {
            environment: 0,
            ccFeature: 0,
            devToolsMode: 0,
        };
        let state = symbol!(self.library, nvmlSystemGetConfComputeState).system(empty)?;
        Ok(state.map(|state| ConfidentialCompute {
            enabled: state.ccFeature != 0,
            developer_tools: state.devToolsMode != 0,
            multi_gpu: None,
        }))
    }

    /// Opens every GPU: index by index a device, or why there is none.
    ///
    /// # Errors
    ///
    /// Only if even the count is unknown; one lost GPU does not hide the others.
    pub fn devices(&self) -> Result<Vec<Result<Device, Error>>, Error> {
        Ok((0..self.device_count()?).map(|index| self.device(index)).collect())
    }

    /// Makes an empty set of events to wait for; `None` where the library has no events.
    ///
    /// Source: `nvmlEventSetCreate`.
    ///
    /// # Errors
    ///
    /// As all calls; no GPU is asked.
    pub fn event_set(&self) -> Result<Option<EventSet>, Error> {
        EventSet::create(&self.library)
    }
}

impl std::fmt::Debug for Nvml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvml")
            .field("path", &self.library.path)
            .finish_non_exhaustive()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // The code is of no use to anyone here: the process or the library's last user is leaving.
        let _ = symbol!(self, nvmlShutdown).call();
    }
}

/// The symbols without which nothing works; any other may be absent and is then "not supported".
fn check_symbols(raw: &NvmlLib, path: &Path) -> Result<(), Error> {
    let needed = [
        ("nvmlInit_v2", raw.nvmlInit_v2.is_ok()),
        ("nvmlShutdown", raw.nvmlShutdown.is_ok()),
        ("nvmlDeviceGetCount_v2", raw.nvmlDeviceGetCount_v2.is_ok()),
        (
            "nvmlDeviceGetHandleByIndex_v2",
            raw.nvmlDeviceGetHandleByIndex_v2.is_ok(),
        ),
    ];
    match needed.into_iter().find(|(_, present)| !present) {
        Some((symbol, _)) => Err(Error::SymbolMissing {
            path: path.to_owned(),
            symbol,
        }),
        None => Ok(()),
    }
}
