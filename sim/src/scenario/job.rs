//! The work: which GPUs do what when.

use serde::Deserialize;

use crate::error::Error;
use crate::offset::Offset;

/// One job on some GPUs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: JobKind,
    /// When it starts.
    pub from: Offset,
    /// When it ends; never, if left out.
    #[serde(default)]
    pub until: Option<Offset>,
    /// Its GPUs; all, if left out.
    #[serde(default)]
    pub gpus: Option<Vec<usize>>,
    /// The process id on its first GPU; the next GPU's is one higher.
    pub pid: u32,
    /// The process name.
    pub process: String,
    /// The process' control group.
    #[serde(default = "root_cgroup")]
    pub cgroup: String,
    /// Device memory on each GPU, in MiB.
    pub memory_mib: u64,
    /// Host memory for each GPU, in GiB.
    #[serde(default)]
    pub host_memory_gib: u64,
}

/// What a job does to a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// Full load in step on all its GPUs, a checkpoint every half hour.
    Training,
    /// Load that follows requests.
    Inference,
}

impl Job {
    /// Whether it runs at a time.
    #[must_use]
    pub fn runs_at(&self, t_ms: i64) -> bool {
        t_ms >= self.from.ms() && self.until.is_none_or(|until| t_ms < until.ms())
    }

    /// Its process id on a GPU; `None` where it does not run.
    #[must_use]
    pub fn pid_on(&self, gpu: usize) -> Option<u32> {
        let rank = match &self.gpus {
            Some(gpus) => gpus.iter().position(|other| *other == gpu)?,
            None => gpu,
        };
        u32::try_from(rank).ok().and_then(|rank| self.pid.checked_add(rank))
    }

    pub(crate) fn check(&self, gpu_count: usize) -> Result<(), Error> {
        let fail = |what: String| Err(Error::invalid(format!("job {}: {what}", self.name)));
        if self.until.is_some_and(|until| until <= self.from) {
            return fail("ends before it starts".into());
        }
        match self.gpus.iter().flatten().find(|gpu| **gpu >= gpu_count) {
            Some(gpu) => fail(format!("there is no GPU {gpu}")),
            None => Ok(()),
        }
    }
}

fn root_cgroup() -> String {
    "/".into()
}
