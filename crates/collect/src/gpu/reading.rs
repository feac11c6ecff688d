//! What a GPU answered, as plain data: it may come from NVML, over a pipe, or out of a text that `nvidia-smi` wrote.
//!
//! Invariant: a number is here only if the GPU told it; where it told that it has none, or something that is no number,
//! the word stands in [`Reading::absent`] with the reason, and nowhere else.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::throttle::Throttle;
use crate::Error;

/// How it stands with a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuState {
    /// It answers.
    Ok,
    /// It has fallen off the bus.
    Lost,
    /// It answers no more until it is reset.
    ResetRequired,
    /// It did not answer in time.
    Hung,
    /// It answers nothing, for another reason.
    Failed,
    /// The driver does not count it any more.
    Missing,
}

impl GpuState {
    /// The word in `watchfire_gpu_up{state}`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Lost => "lost",
            Self::ResetRequired => "reset_required",
            Self::Hung => "hung",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

/// Why a number is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Absence {
    /// This board, driver or mode has no such thing: `N/A`, `[Not Supported]`.
    Unsupported,
    /// The user may not ask: `[Insufficient Permissions]`, `[Requires Root]`.
    Denied,
    /// The driver failed to tell: `ERR!`, `[Unknown Error]`.
    Failed,
    /// It told what no board can measure, or a sentinel in place of a number.
    OutOfRange,
    /// The text that should be a number is none.
    Unreadable,
    /// Who was asked does not speak of it: `nvidia-smi` of energy.
    NotTold,
}

impl Absence {
    /// The word in `watchfire_gpu_field_absent{reason}`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::OutOfRange => "out_of_range",
            Self::Unreadable => "unreadable",
            Self::NotTold => "not_told",
        }
    }
}

/// What a GPU answered.
#[derive(Debug)]
pub struct Reading {
    pub identity: Identity,
    pub state: GpuState,
    /// The driver's numbers by word, in the driver's units; empty unless the state is [`GpuState::Ok`].
    pub numbers: HashMap<&'static str, f64>,
    /// Words that were asked and have no number.
    pub absent: Vec<(&'static str, Absence)>,
    /// What is a name rather than a number (brand, inforom versions), by word.
    pub texts: HashMap<&'static str, String>,
    /// Who has a context on it; `None` where nobody could be asked.
    pub processes: Option<Vec<GpuProcess>>,
    /// The parts it is cut into under MIG, by instance.
    pub instances: Vec<Instance>,
    pub throttle: Throttle,
    pub errors: Vec<Error>,
}

impl Reading {
    /// Of a GPU that answered nothing.
    pub fn without(identity: Identity, state: GpuState) -> Self {
        Self {
            identity,
            state,
            numbers: HashMap::new(),
            absent: Vec::new(),
            texts: HashMap::new(),
            processes: None,
            instances: Vec::new(),
            throttle: Throttle::default(),
            errors: Vec::new(),
        }
    }

    /// The number of a word; `None` where it was not told.
    pub fn number(&self, word: &str) -> Option<f64> {
        self.numbers.get(word).copied()
    }
}

/// A process with a context on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its id, in the namespace of who asked.
    pub pid: u32,
    /// What it does there.
    pub kind: ProcessKind,
    /// The name the driver tells; empty where only procfs knows.
    pub name: String,
    /// Its device memory, in bytes; `None` where the driver does not account it.
    pub memory_bytes: Option<u64>,
    /// Multiprocessors, in percent, in the last sample; `None` where it was not sampled.
    pub sm_percent: Option<u32>,
    /// Memory bandwidth, in percent, in the last sample.
    pub memory_percent: Option<u32>,
    /// The GPU instance it runs in, under MIG.
    pub gpu_instance: Option<u32>,
}

/// What a process does on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub enum ProcessKind {
    /// CUDA.
    #[default]
    Compute,
    /// Graphics.
    Graphics,
    /// Both.
    Both,
    /// CUDA through the MPS server.
    Mps,
}

impl ProcessKind {
    /// The word in the label `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Graphics => "graphics",
            Self::Both => "compute+graphics",
            Self::Mps => "mps",
        }
    }
}

/// A part of a GPU under MIG: a GPU instance with a compute instance in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Instance {
    /// The id of the GPU instance, label `GPU_I_ID`.
    pub gpu_instance: u32,
    /// The id of the compute instance.
    pub compute_instance: Option<u32>,
    /// `1g.10gb`, label `GPU_I_PROFILE`; empty where nobody told.
    pub profile: String,
    /// `MIG-…`; empty where nobody told.
    pub uuid: String,
    /// Its multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Device memory, in bytes.
    pub memory_total: Option<u64>,
    /// Device memory, in bytes.
    pub memory_used: Option<u64>,
    /// Device memory, in bytes.
    pub memory_free: Option<u64>,
    /// Device memory the driver keeps, in bytes.
    pub memory_reserved: Option<u64>,
    /// Uncorrected errors since the driver was loaded.
    pub ecc_uncorrected_volatile: Option<u64>,
}
