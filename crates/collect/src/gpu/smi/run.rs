//! Runs nvidia-smi, with a deadline.
//!
//! A process that hangs in the driver cannot be killed. Then it is left to itself, and no second one is started beside it
//! until it has gone.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::Millis;

use super::{Complaint, Dialect, Report, read};
use crate::State;

/// More than an eight-GPU server with all its supported clocks prints.
const OUTPUT_BYTES_MAX: u64 = 32 << 20;

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A program that is not there is looked for again after so long, in milliseconds.
const RETRY_MS: Millis = 60_000;

/// Runs the program again and again.
pub struct Runner {
    program: PathBuf,
    dialect: Dialect,
    /// One that did not end when it was killed.
    stuck: Option<Child>,
    /// When it was last looked for in vain.
    missing_at: Option<Millis>,
}

impl Runner {
    pub fn new(program: PathBuf, dialect: Dialect) -> Self {
        Self {
            program,
            dialect,
            stuck: None,
            missing_at: None,
        }
    }

    /// Asks for everything; a report of complaints only if that fails. `None` where there is no such program.
    pub fn ask(&mut self, now: Millis, deadline: Duration) -> Option<Report> {
        if self.missing_at.is_some_and(|at| (0..RETRY_MS).contains(&(now - at))) {
            return None;
        }
        if let Some(child) = &mut self.stuck {
            if !matches!(child.try_wait(), Ok(Some(_))) {
                return Some(hung("nvidia-smi still hangs in the driver".to_owned()));
            }
            self.stuck = None;
        }
        match self.run(deadline) {
            Ok(report) => {
                self.missing_at = None;
                Some(report)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.missing_at = Some(now);
                None
            }
            Err(error) => Some(complaining(
                "no_permission",
                State::Denied,
                format!("{}: {error}", self.program.display()),
            )),
        }
    }

    fn run(&mut self, deadline: Duration) -> std::io::Result<Report> {
        let begun = Instant::now();
        let mut child = command(&self.program).spawn()?;
        let outputs = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = (outputs.0.map(drain), outputs.1.map(drain));
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if begun.elapsed() < deadline => thread::sleep(LOOK),
                None => {
                    // By its handle, which is its id for as long as it was not waited for.
                    let _ = child.kill();
                    thread::sleep(LOOK);
                    if !matches!(child.try_wait(), Ok(Some(_))) {
                        self.stuck = Some(child);
                    }
                    return Ok(hung(format!("nvidia-smi did not answer within {deadline:?}")));
                }
            }
        };
        let bytes =
            |reader: Option<thread::JoinHandle<Vec<u8>>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
        let mut output = bytes(stdout);
        output.push(b'\n');
        output.extend(bytes(stderr));
        let mut report = read(&self.dialect, &output, None);
        let unclear = report
            .complaints
            .iter()
            .all(|c| c.state == "unreadable" || c.state == "no_output");
        if let Some((state, collector)) = status.code().and_then(|code| self.dialect.exit_code(code))
            && unclear
            && !status.success()
        {
            let said = report
                .complaints
                .pop()
                .map(|c| format!(": {}", c.reason))
                .unwrap_or_default();
            report.complaints =
                complaining(state, collector, format!("nvidia-smi ended with {status}{said}")).complaints;
        }
        Ok(report)
    }
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-q", "-x"]).env("LC_ALL", "C");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reads a pipe to its end on a thread, so that the process never waits for us.
fn drain(pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        bytes
    })
}

fn hung(reason: String) -> Report {
    complaining("hung", State::Hung, reason)
}

fn complaining(state: &str, collector: State, reason: String) -> Report {
    Report {
        complaints: vec![Complaint {
            state: state.to_owned(),
            collector,
            reason,
            gpu: None,
        }],
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("nvidia-smi");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    fn ask(text: &str, deadline: Duration) -> Option<Report> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut runner = Runner::new(script(folder.path(), text), Dialect::embedded().expect("our own table"));
        runner.ask(0, deadline)
    }

    #[test]
    fn one_that_hangs_is_killed_at_its_deadline() {
        let begun = Instant::now();
        let report = ask("exec sleep 60", Duration::from_millis(100)).expect("a report");
        assert_eq!(report.verdict().0, State::Hung);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_exit_code_tells_where_no_line_does() {
        let report = ask("exit 9", Duration::from_secs(30)).expect("a report");
        assert_eq!(report.verdict().1, "driver_not_loaded");
        let report = ask("echo 'No devices were found'; exit 6", Duration::from_secs(30)).expect("a report");
        assert_eq!(report.verdict().1, "no_devices");
    }

    #[test]
    fn a_program_that_is_not_there_is_none() {
        let mut runner = Runner::new(
            "/nonexistent/nvidia-smi".into(),
            Dialect::embedded().expect("our own table"),
        );
        assert!(runner.ask(0, Duration::from_secs(1)).is_none());
    }
}
