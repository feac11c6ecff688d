//! Who uses the GPU.

#![expect(unsafe_code, reason = "fills arrays whose length the driver decides")]

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use crate::device::Device;
use crate::error::Error;
use crate::sentinel::{known_percent, known_u64};
use crate::symbol::{Symbol, symbol};

/// A process with a context on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id, in the namespace of the caller.
    pub pid: u32,
    /// Its device memory, in bytes; `None` where the driver does not account it.
    pub used_memory: Option<u64>,
    /// The GPU instance it runs in, under MIG.
    pub gpu_instance: Option<u32>,
    /// The compute instance it runs in, under MIG.
    pub compute_instance: Option<u32>,
}

/// What a process did with the GPU in the last sample, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUtilization {
    /// Its id.
    pub pid: u32,
    /// When it was sampled, in microseconds since 1970; give the largest to the next call.
    pub timestamp_us: u64,
    /// Multiprocessors.
    pub sm: Option<u32>,
    /// Device memory.
    pub memory: Option<u32>,
    /// Video encoder.
    pub encoder: Option<u32>,
    /// Video decoder.
    pub decoder: Option<u32>,
}

/// The header's value for "not under MIG".
const NO_INSTANCE: u32 = u32::MAX;
/// More than this on one GPU is a driver gone mad; the list is cut off rather than grown.
const PROCESSES_MAX: u32 = 4096;

type GetProcesses =
    unsafe extern "C" fn(nvmlDevice_t, *mut std::ffi::c_uint, *mut raw::nvmlProcessInfo_t) -> nvmlReturn_t;

impl Device {
    /// Processes with a compute context.
    ///
    /// Source: `nvmlDeviceGetComputeRunningProcesses_v3`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] with code 7 if the list keeps outgrowing the room made for it.
    pub fn compute_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&symbol!(self.library, nvmlDeviceGetComputeRunningProcesses_v3))
    }

    /// Processes with a graphics context.
    ///
    /// Source: `nvmlDeviceGetGraphicsRunningProcesses_v3`.
    ///
    /// # Errors
    ///
    /// As [`compute_processes`](Self::compute_processes).
    pub fn graphics_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&symbol!(self.library, nvmlDeviceGetGraphicsRunningProcesses_v3))
    }

    /// Processes that compute through the MPS server.
    ///
    /// Source: `nvmlDeviceGetMPSComputeRunningProcesses_v3`.
    ///
    /// # Errors
    ///
    /// As [`compute_processes`](Self::compute_processes).
    pub fn mps_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&symbol!(self.library, nvmlDeviceGetMPSComputeRunningProcesses_v3))
    }

    fn processes(&self, symbol: &Symbol<GetProcesses>) -> Result<Option<Vec<Process>>, Error> {
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let empty = raw::nvmlProcessInfo_t {
            pid: 0,
            usedGpuMemory: 0,
            gpuInstanceId: 0,
            computeInstanceId: 0,
        };
        let mut room: u32 = 32;
        loop {
            let mut infos = vec![empty; room as usize];
            let mut count = room;
            // SAFETY: `count` says how many structures there is room for at the array pointer.
            let code = unsafe { function(self.handle.0, &raw mut count, infos.as_mut_ptr()) };
            if code == raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE && room < PROCESSES_MAX {
                // Some slack: processes may start between the two calls.
                room = count.max(room).saturating_add(16).min(PROCESSES_MAX);
                continue;
            }
            if !symbol.outcome(code)? {
                return Ok(None);
            }
            infos.truncate(count as usize);
            return Ok(Some(infos.iter().map(process).collect()));
        }
    }

    /// What processes did since `since_us` (0 = all the driver remembers), a sample for each
    /// process; empty if nobody did anything.
    ///
    /// Source: `nvmlDeviceGetProcessUtilization`.
    ///
    /// # Errors
    ///
    /// As [`compute_processes`](Self::compute_processes).
    pub fn process_utilization(&self, since_us: u64) -> Result<Option<Vec<ProcessUtilization>>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetProcessUtilization);
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let empty = raw::nvmlProcessUtilizationSample_t {
            pid: 0,
            timeStamp: 0,
            smUtil: 0,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        };
        let mut room: u32 = 128;
        loop {
            let mut samples = vec![empty; room as usize];
            let mut count = room;
            // SAFETY: `count` says how many structures there is room for at the array pointer.
            let code = unsafe { function(self.handle.0, samples.as_mut_ptr(), &raw mut count, since_us) };
            if code == raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE && room < PROCESSES_MAX {
                room = count.max(room).saturating_add(16).min(PROCESSES_MAX);
                continue;
            }
            if code == raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND {
                return Ok(Some(Vec::new()));
            }
            if !symbol.outcome(code)? {
                return Ok(None);
            }
            samples.truncate(count as usize);
            return Ok(Some(
                samples
                    .iter()
                    .filter(|sample| sample.pid != 0)
                    .map(utilization)
                    .collect(),
            ));
        }
    }
}

fn process(info: &raw::nvmlProcessInfo_t) -> Process {
    let instance = |id: u32| (id != NO_INSTANCE).then_some(id);
    Process {
        pid: info.pid,
        used_memory: known_u64(info.usedGpuMemory),
        gpu_instance: instance(info.gpuInstanceId),
        compute_instance: instance(info.computeInstanceId),
    }
}

fn utilization(sample: &raw::nvmlProcessUtilizationSample_t) -> ProcessUtilization {
    ProcessUtilization {
        pid: sample.pid,
        timestamp_us: sample.timeStamp,
        sm: known_percent(sample.smUtil),
        memory: known_percent(sample.memUtil),
        encoder: known_percent(sample.encUtil),
        decoder: known_percent(sample.decUtil),
    }
}
