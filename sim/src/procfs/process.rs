//! The processes on the GPUs: enough of `/proc/<pid>` to know name and control group.

use super::{Tree, write};
use crate::error::Error;
use crate::state::ProcessState;

impl Tree {
    /// Writes the folders of running processes and removes those of ended ones.
    pub(super) fn write_processes(&mut self, t_ms: i64) -> Result<(), Error> {
        let processes = self.processes(t_ms);
        for process in &processes {
            let folder = self.root.join(process.pid.to_string());
            write(&folder.join("comm"), &format!("{}\n", process.name))?;
            write(&folder.join("cmdline"), &format!("{}\0", process.name))?;
            write(&folder.join("cgroup"), &format!("0::{}\n", process.cgroup))?;
            write(&folder.join("status"), &status(process))?;
        }
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        for gone in self.pids.iter().filter(|pid| !pids.contains(pid)) {
            let folder = self.root.join(gone.to_string());
            std::fs::remove_dir_all(&folder).map_err(|source| Error::Write {
                path: folder.clone(),
                source,
            })?;
        }
        self.pids = pids;
        Ok(())
    }

    fn processes(&self, t_ms: i64) -> Vec<ProcessState> {
        (0..self.scenario.gpu_count())
            .flat_map(|gpu| self.scenario.state(gpu, t_ms).processes)
            .collect()
    }
}

fn status(process: &ProcessState) -> String {
    let ProcessState { pid, name, .. } = process;
    format!(
        "Name:\t{name}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
    )
}
