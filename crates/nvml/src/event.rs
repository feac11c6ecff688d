//! Events: the driver says when a GPU has a critical error (XID).

#![expect(unsafe_code, reason = "owns a C event set")]

use std::sync::Arc;
use std::time::Duration;

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::library::Library;
use crate::symbol::{Handle, symbol};

/// A critical error of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidEvent {
    /// The NVML index of the GPU.
    pub gpu: u32,
    /// Its UUID, as read when it was registered.
    pub uuid: Option<String>,
    /// Its PCI address, `00000000:1B:00.0`, as read when it was registered.
    pub pci_bus_id: Option<String>,
    /// The error's number in the driver's list.
    pub xid: u64,
}

/// GPUs whose critical errors are waited for.
///
/// It may move to another thread; one thread waits on it. Who the GPUs are is read when they are
/// registered: after an XID 79 they can no longer tell.
pub struct EventSet {
    library: Arc<Library>,
    set: raw::nvmlEventSet_t,
    devices: Vec<(Handle, XidEvent)>,
}

// SAFETY: the set is used by one thread at a time (waiting takes `&mut self`), and NVML does not tie it to a thread.
unsafe impl Send for EventSet {}

impl EventSet {
    pub(crate) fn create(library: &Arc<Library>) -> Result<Option<Self>, Error> {
        let created = symbol!(library, nvmlEventSetCreate).system(std::ptr::null_mut())?;
        Ok(created.filter(|set| !set.is_null()).map(|set| Self {
            library: Arc::clone(library),
            set,
            devices: Vec::new(),
        }))
    }

    /// Adds a GPU; `false` if it has no such events (as under MIG, or in some virtual machines).
    ///
    /// Source: `nvmlDeviceRegisterEvents` with `nvmlEventTypeXidCriticalError`.
    ///
    /// # Errors
    ///
    /// [`Error::GpuLost`] for one that is lost already.
    pub fn register(&mut self, device: &Device) -> Result<bool, Error> {
        let symbol = symbol!(self.library, nvmlDeviceRegisterEvents);
        let Some(function) = symbol.function() else {
            return Ok(false);
        };
        let event = XidEvent {
            gpu: device.index(),
            uuid: device.uuid()?,
            pci_bus_id: device.pci_info()?.map(|info| info.bus_id),
            xid: 0,
        };
        // SAFETY: the set is live until dropped.
        let code = unsafe { function(device.handle.0, raw::nvmlEventTypeXidCriticalError.into(), self.set) };
        let registered = symbol.outcome(code)?;
        if registered {
            self.devices.push((device.handle, event));
        }
        Ok(registered)
    }

    /// Waits for the next critical error of any registered GPU; `None` if none came in time.
    ///
    /// Source: `nvmlEventSetWait_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::GpuLost`] when the driver only says that one of the GPUs has gone; it says so at once
    /// in every later wait too, so a loop should pause.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<XidEvent>, Error> {
        let call = "nvmlEventSetWait_v2";
        let Some(function) = symbol!(self.library, nvmlEventSetWait_v2).function() else {
            // Not `None`: a caller that waits in a loop would spin.
            return Err(Error::Unknown {
                call,
                code: raw::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND,
            });
        };
        let mut data = raw::nvmlEventData_t {
            device: std::ptr::null_mut(),
            eventType: 0,
            eventData: 0,
            gpuInstanceId: 0,
            computeInstanceId: 0,
        };
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        // SAFETY: the set is live until dropped and the pointer is to a live structure.
        let code = unsafe { function(self.set, &raw mut data, timeout_ms) };
        if code == raw::nvmlReturn_enum_NVML_ERROR_TIMEOUT {
            return Ok(None);
        }
        match Error::from_code(code, call) {
            Some(err) => Err(err),
            None => Ok(self.event(&data)),
        }
    }

    fn event(&self, data: &raw::nvmlEventData_t) -> Option<XidEvent> {
        if data.eventType & u64::from(raw::nvmlEventTypeXidCriticalError) == 0 {
            return None;
        }
        let (_, known) = self.devices.iter().find(|(handle, _)| handle.0 == data.device)?;
        Some(XidEvent {
            xid: data.eventData,
            ..known.clone()
        })
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        if let Some(function) = symbol!(self.library, nvmlEventSetFree).function() {
            // SAFETY: the set was created by this library and is freed once; the code is of no use here.
            let _ = unsafe { function(self.set) };
        }
    }
}

impl std::fmt::Debug for EventSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gpus: Vec<u32> = self.devices.iter().map(|(_, event)| event.gpu).collect();
        f.debug_struct("EventSet").field("gpus", &gpus).finish_non_exhaustive()
    }
}
