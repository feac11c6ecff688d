//! The processes on the GPUs: enough of `/proc/<pid>` to know name and control group.

use super::Tree;
use crate::error::Error;
use crate::state::ProcessState;

impl Tree {
    /// Writes the folders of running processes and removes those of ended ones.
    pub(super) fn write_processes(&mut self, t_ms: i64) -> Result<(), Error> {
        let processes = self.processes(t_ms);
        // By the first process a reader knows that it sees the machine's own processes and not a container's.
        self.folder.put(
            "1/stat",
            "1 (systemd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n".to_owned(),
        )?;
        for process in &processes {
            let pid = process.pid;
            self.folder.put(&format!("{pid}/comm"), format!("{}\n", process.name))?;
            self.folder
                .put(&format!("{pid}/cmdline"), format!("{}\0", process.name))?;
            self.folder
                .put(&format!("{pid}/cgroup"), format!("0::{}\n", process.cgroup))?;
            self.folder.put(&format!("{pid}/status"), status(process))?;
            self.folder.put(&format!("{pid}/stat"), stat(process))?;
        }
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        for gone in self.pids.iter().filter(|pid| !pids.contains(pid)) {
            self.folder.remove(&gone.to_string())?;
        }
        self.pids = pids;
        Ok(())
    }

    fn processes(&self, t_ms: i64) -> Vec<ProcessState> {
        (0..self.scenario.gpu_count())
            .flat_map(|gpu| self.scenario.state(gpu, t_ms).processes)
            .filter(|process| process.alive)
            .collect()
    }
}

fn status(process: &ProcessState) -> String {
    let ProcessState { pid, name, .. } = process;
    format!(
        "Name:\t{name}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
    )
}

/// The line that tells whether it lives, and since when: in ticks since boot, here told apart by its id.
fn stat(process: &ProcessState) -> String {
    let ProcessState { pid, name, .. } = process;
    let start = 100 * u64::from(*pid);
    format!("{pid} ({name}) R 1 {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n")
}
