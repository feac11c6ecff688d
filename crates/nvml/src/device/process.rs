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

type Words = u64;
type GetProcesses<T> = unsafe extern "C" fn(nvmlDevice_t, *mut std::ffi::c_uint, *mut T) -> nvmlReturn_t;

/// Words of one entry: pid and memory; then the instances; then the protected memory.
const WORDS_V1: usize = size_of::<raw::nvmlProcessInfo_v1_t>() / size_of::<Words>();
const WORDS_V2: usize = size_of::<raw::nvmlProcessInfo_v2_t>() / size_of::<Words>();
const WORDS_MAX: usize = 4;

/// What no driver writes: it tells written words from others.
const UNTOUCHED: Words = 0xA5A5_5A5A_C3C3_3C3C;

const _: () = assert!(WORDS_V1 == 2 && size_of::<raw::nvmlProcessInfo_v1_t>() == 16);
const _: () = assert!(WORDS_V2 == 3 && size_of::<raw::nvmlProcessInfo_v2_t>() == 24);
const _: () = assert!(align_of::<raw::nvmlProcessInfo_v2_t>() == align_of::<Words>());

/// The three generations of a list: since driver 510 with instances, before without.
struct Lists {
    v3: Symbol<GetProcesses<raw::nvmlProcessInfo_t>>,
    v2: Symbol<GetProcesses<raw::nvmlProcessInfo_v2_t>>,
    v1: Symbol<GetProcesses<raw::nvmlProcessInfo_v1_t>>,
}

impl Device {
    /// Processes with a compute context.
    ///
    /// On a GPU under MIG the list has those of all instances, each with its instance; on a MIG device
    /// only its own.
    ///
    /// Source: `nvmlDeviceGetComputeRunningProcesses_v3`, else `_v2`, else the first version.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] with code 7 if the list keeps outgrowing the room made for it.
    pub fn compute_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&Lists {
            v3: symbol!(self.library, nvmlDeviceGetComputeRunningProcesses_v3),
            v2: symbol!(self.library, nvmlDeviceGetComputeRunningProcesses_v2),
            v1: symbol!(self.library, nvmlDeviceGetComputeRunningProcesses),
        })
    }

    /// Processes with a graphics context.
    ///
    /// Source: `nvmlDeviceGetGraphicsRunningProcesses_v3`, else `_v2`, else the first version.
    ///
    /// # Errors
    ///
    /// As [`compute_processes`](Self::compute_processes).
    pub fn graphics_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&Lists {
            v3: symbol!(self.library, nvmlDeviceGetGraphicsRunningProcesses_v3),
            v2: symbol!(self.library, nvmlDeviceGetGraphicsRunningProcesses_v2),
            v1: symbol!(self.library, nvmlDeviceGetGraphicsRunningProcesses),
        })
    }

    /// Processes that compute through the MPS server.
    ///
    /// Source: `nvmlDeviceGetMPSComputeRunningProcesses_v3`, else `_v2`, else the first version.
    ///
    /// # Errors
    ///
    /// As [`compute_processes`](Self::compute_processes).
    pub fn mps_processes(&self) -> Result<Option<Vec<Process>>, Error> {
        self.processes(&Lists {
            v3: symbol!(self.library, nvmlDeviceGetMPSComputeRunningProcesses_v3),
            v2: symbol!(self.library, nvmlDeviceGetMPSComputeRunningProcesses_v2),
            v1: symbol!(self.library, nvmlDeviceGetMPSComputeRunningProcesses),
        })
    }

    fn processes(&self, lists: &Lists) -> Result<Option<Vec<Process>>, Error> {
        if lists.v3.function().is_some() {
            self.process_list(&lists.v3, WORDS_V2)
        } else if lists.v2.function().is_some() {
            self.process_list(&lists.v2, WORDS_V2)
        } else {
            self.process_list(&lists.v1, WORDS_V1)
        }
    }

    /// Reads a list. The buffer has room for the widest entries that any driver writes, whatever it was asked for:
    /// drivers 535.43 to 535.86 wrote a fourth word into each entry of the third version.
    fn process_list<T>(&self, symbol: &Symbol<GetProcesses<T>>, words: usize) -> Result<Option<Vec<Process>>, Error> {
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let mut room: u32 = 32;
        loop {
            let mut buffer = vec![UNTOUCHED; room as usize * WORDS_MAX];
            let mut count = room;
            // SAFETY: `count` says how many entries there is room for at the array pointer, which is aligned for them;
            // there are four words for each, and no version of the header has a wider entry.
            let code = unsafe { function(self.handle.0, &raw mut count, buffer.as_mut_ptr().cast()) };
            if code == raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE && room < PROCESSES_MAX {
                // Some slack: processes may start between the two calls.
                room = count.max(room).saturating_add(16).min(PROCESSES_MAX);
                continue;
            }
            if !symbol.outcome(code)? {
                return Ok(None);
            }
            return Ok(Some(entries(&buffer, count.min(room) as usize, words)));
        }
    }

    /// What processes did since `since_us` (0 = all the driver remembers), a sample for each
    /// process; empty if nobody did anything.
    ///
    /// `None` under MIG: the driver does not tell there.
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

/// The entries of a list, by the width that the driver really used: what lies behind the narrow ones was written
/// only if the entries are wider.
fn entries(buffer: &[Words], count: usize, words: usize) -> Vec<Process> {
    let wide = words == WORDS_V2 && count > 0 && buffer.get(count * words).is_some_and(|word| *word != UNTOUCHED);
    let width = if wide { WORDS_MAX } else { words };
    buffer.chunks_exact(width).take(count).map(process).collect()
}

/// Pid, memory and, in the lower and upper half of the third word, the instances.
fn process(entry: &[Words]) -> Process {
    let halves = |word: Words| {
        let bytes = word.to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (half(0), half(4))
    };
    let instance = |id: u32| (id != NO_INSTANCE).then_some(id);
    let (gpu_instance, compute_instance) = entry.get(2).map_or((NO_INSTANCE, NO_INSTANCE), |word| halves(*word));
    Process {
        pid: entry.first().map_or(0, |word| halves(*word).0),
        used_memory: entry.get(1).copied().and_then(known_u64),
        gpu_instance: instance(gpu_instance),
        compute_instance: instance(compute_instance),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pid_word(pid: u32) -> Words {
        // The padding after the pid is not written by anyone.
        let mut bytes = UNTOUCHED.to_ne_bytes();
        bytes[..4].copy_from_slice(&pid.to_ne_bytes());
        Words::from_ne_bytes(bytes)
    }

    fn instances(gpu: u32, compute: u32) -> Words {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&gpu.to_ne_bytes());
        bytes[4..].copy_from_slice(&compute.to_ne_bytes());
        Words::from_ne_bytes(bytes)
    }

    /// Reads entries of these words, in a buffer for four of them.
    #[track_caller]
    fn check(written: &[&[Words]], words: usize, want: &[(u32, Option<u64>, Option<u32>)]) {
        let mut buffer = vec![UNTOUCHED; 4 * WORDS_MAX];
        for (slot, word) in buffer.iter_mut().zip(written.iter().flat_map(|entry| entry.iter())) {
            *slot = *word;
        }
        let got: Vec<_> = entries(&buffer, written.len(), words)
            .iter()
            .map(|process| (process.pid, process.used_memory, process.gpu_instance))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn entries_of_each_generation_are_read() {
        let none = instances(NO_INSTANCE, NO_INSTANCE);
        check(
            &[&[pid_word(7), 100], &[pid_word(8), 200]],
            WORDS_V1,
            &[(7, Some(100), None), (8, Some(200), None)],
        );
        check(
            &[&[pid_word(7), 100, none], &[pid_word(8), u64::MAX, instances(3, 0)]],
            WORDS_V2,
            &[(7, Some(100), None), (8, None, Some(3))],
        );
        check(&[], WORDS_V2, &[]);
    }

    #[test]
    fn drivers_that_write_four_words_where_three_were_asked_for_are_understood() {
        let none = instances(NO_INSTANCE, NO_INSTANCE);
        check(&[&[pid_word(7), 100, none, 0]], WORDS_V2, &[(7, Some(100), None)]);
        check(
            &[
                &[pid_word(7), 100, none, 0],
                &[pid_word(8), 200, none, 0],
                &[pid_word(9), 300, none, 0],
            ],
            WORDS_V2,
            &[(7, Some(100), None), (8, Some(200), None), (9, Some(300), None)],
        );
        check(
            &[
                &[pid_word(1), 1, none, 0],
                &[pid_word(2), 2, none, 0],
                &[pid_word(3), 3, none, 0],
                &[pid_word(4), 4, none, 0],
            ],
            WORDS_V2,
            &[
                (1, Some(1), None),
                (2, Some(2), None),
                (3, Some(3), None),
                (4, Some(4), None),
            ],
        );
    }
}
