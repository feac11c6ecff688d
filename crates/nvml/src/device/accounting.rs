//! What processes have used over their whole life, if an administrator switched that on.

#![expect(unsafe_code, reason = "fills an array whose length the driver decides")]

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::sentinel::{known_percent, known_u64};
use crate::symbol::symbol;

/// Whether the driver keeps accounts, and of how many processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounting {
    /// Whether it does.
    pub enabled: bool,
    /// The most processes it remembers; older ones are forgotten.
    pub buffer_size: Option<u32>,
}

/// The account of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountedProcess {
    /// Its id.
    pub pid: u32,
    /// Percent of its life in which a kernel of it ran.
    pub gpu: Option<u32>,
    /// Percent of its life in which it read or wrote device memory.
    pub memory: Option<u32>,
    /// The most memory it ever held, in bytes.
    pub memory_max: Option<u64>,
    /// How long it ran, in milliseconds; 0 while it runs.
    pub time_ms: Option<u64>,
    /// When it started, in microseconds since 1970.
    pub started_us: Option<u64>,
    /// Whether it still runs.
    pub running: bool,
}

/// More than any driver's buffer.
const PIDS_MAX: u32 = 16_384;

impl Device {
    /// Whether accounts are kept; `None` on boards that cannot.
    ///
    /// Source: `nvmlDeviceGetAccountingMode`, `nvmlDeviceGetAccountingBufferSize`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn accounting(&self) -> Result<Option<Accounting>, Error> {
        let mode = symbol!(self.library, nvmlDeviceGetAccountingMode).read(self.handle, 0)?;
        let Some(mode) = mode else {
            return Ok(None);
        };
        Ok(Some(Accounting {
            enabled: mode == raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED,
            buffer_size: symbol!(self.library, nvmlDeviceGetAccountingBufferSize).read(self.handle, 0)?,
        }))
    }

    /// The processes there are accounts of, running or ended; empty where accounting is off.
    ///
    /// Source: `nvmlDeviceGetAccountingPids`.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] with code 7 if the list keeps outgrowing the room made for it.
    pub fn accounted_pids(&self) -> Result<Option<Vec<u32>>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetAccountingPids);
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let mut room: u32 = 256;
        loop {
            let mut pids = vec![0; room as usize];
            let mut count = room;
            // SAFETY: `count` says how many numbers there is room for at the array pointer.
            let code = unsafe { function(self.handle.0, &raw mut count, pids.as_mut_ptr()) };
            if code == raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE && room < PIDS_MAX {
                room = count.max(room).saturating_add(64).min(PIDS_MAX);
                continue;
            }
            if !symbol.outcome(code)? {
                return Ok(None);
            }
            pids.truncate(count as usize);
            return Ok(Some(pids));
        }
    }

    /// The account of one process; `None` if there is none (any more).
    ///
    /// Source: `nvmlDeviceGetAccountingStats`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn accounted_process(&self, pid: u32) -> Result<Option<AccountedProcess>, Error> {
        let empty = raw::nvmlAccountingStats_t {
            gpuUtilization: 0,
            memoryUtilization: 0,
            maxMemoryUsage: 0,
            time: 0,
            startTime: 0,
            isRunning: 0,
            reserved: [0; 5],
        };
        let stats = match symbol!(self.library, nvmlDeviceGetAccountingStats).read_by(self.handle, pid, empty) {
            Err(Error::Unknown {
                code: raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND,
                ..
            }) => None,
            other => other?,
        };
        Ok(stats.map(|stats| AccountedProcess {
            pid,
            gpu: known_percent(stats.gpuUtilization),
            memory: known_percent(stats.memoryUtilization),
            memory_max: known_u64(stats.maxMemoryUsage),
            time_ms: known_u64(stats.time),
            started_us: known_u64(stats.startTime),
            running: stats.isRunning != 0,
        }))
    }
}
