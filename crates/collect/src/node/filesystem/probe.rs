//! Asks mount points for their size on a thread of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::Error;
use crate::source::to_f64;

/// A local disk answers in microseconds, a network one in milliseconds.
const PATIENCE: Duration = Duration::from_millis(800);

/// Threads lost to stuck mounts in one round; with [`PATIENCE`] this stays within the collector's deadline.
const NEW_STUCK_MAX: usize = 4;

/// Threads lost to stuck mounts in all.
const STUCK_MAX: usize = 32;

/// What a mount point said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Size, free and available bytes, file nodes, free file nodes.
    Sizes([f64; 5]),
    /// It refused.
    Refused(rustix::io::Errno),
    /// It did not answer in time, now or in an earlier round.
    Stuck,
    /// It was not asked: too many others are stuck.
    NotAsked,
}

impl Answer {
    /// The value of label `device_error`; empty when there is none.
    pub fn failure(&self) -> String {
        match self {
            Self::Sizes(_) => String::new(),
            Self::Refused(errno) => std::io::Error::from(*errno).kind().to_string(),
            Self::Stuck => "mountpoint timeout".to_owned(),
            Self::NotAsked => "not asked, too many mountpoints are stuck".to_owned(),
        }
    }

    /// The error beside the readings. A mount point that we may not look into is not one: the label tells it.
    pub fn error(&self, point: &Path) -> Option<Error> {
        match self {
            Self::Sizes(_) | Self::Refused(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) | Self::NotAsked => {
                None
            }
            Self::Refused(errno) => Some(Error::read(point, (*errno).into())),
            Self::Stuck => Some(Error::Hung {
                what: format!("mount point {}", point.display()),
                deadline: PATIENCE,
            }),
        }
    }
}

/// Asks mount points, and remembers those that are stuck.
pub struct Prober {
    /// Mount points whose thread has not come back, and whether it has.
    stuck: HashMap<PathBuf, Arc<AtomicBool>>,
    call: fn(&Path) -> Answer,
    patience: Duration,
}

impl Default for Prober {
    fn default() -> Self {
        Self {
            stuck: HashMap::new(),
            call: sizes,
            patience: PATIENCE,
        }
    }
}

impl Prober {
    /// One answer for each point, in order.
    pub fn ask(&mut self, points: &[PathBuf]) -> Vec<Answer> {
        self.stuck.retain(|_, back| !back.load(Ordering::Acquire));
        let asked: Vec<PathBuf> = points
            .iter()
            .filter(|p| !self.stuck.contains_key(*p))
            .cloned()
            .collect();
        let mut answers = self.ask_free(&asked).into_iter();
        let known_stuck = |point| !asked.contains(point);
        points
            .iter()
            .map(|point| {
                if known_stuck(point) {
                    Answer::Stuck
                } else {
                    answers.next().unwrap_or(Answer::NotAsked)
                }
            })
            .collect()
    }

    /// Asks on one thread, and on another from there on whenever a point is late.
    fn ask_free(&mut self, points: &[PathBuf]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(points.len());
        let mut lost = 0;
        while answers.len() < points.len() && lost < NEW_STUCK_MAX && self.stuck.len() < STUCK_MAX {
            let back = Arc::new(AtomicBool::new(false));
            let Some(arriving) = self.start(points[answers.len()..].to_vec(), Arc::clone(&back)) else {
                break;
            };
            while answers.len() < points.len() {
                match arriving.recv_timeout(self.patience) {
                    Ok(answer) => answers.push(answer),
                    Err(RecvTimeoutError::Timeout) => {
                        self.stuck.insert(points[answers.len()].clone(), back);
                        answers.push(Answer::Stuck);
                        lost += 1;
                        break;
                    }
                    Err(RecvTimeoutError::Disconnected) => return answers,
                }
            }
        }
        answers
    }

    fn start(&self, points: Vec<PathBuf>, back: Arc<AtomicBool>) -> Option<mpsc::Receiver<Answer>> {
        let (answers, arriving) = mpsc::channel();
        let call = self.call;
        let work = move || {
            for point in &points {
                // Nobody listens any more once this thread was late.
                if answers.send(call(point)).is_err() {
                    break;
                }
            }
            back.store(true, Ordering::Release);
        };
        thread::Builder::new().name("statfs".to_owned()).spawn(work).ok()?;
        Some(arriving)
    }
}

fn sizes(point: &Path) -> Answer {
    match rustix::fs::statfs(point) {
        Err(errno) => Answer::Refused(errno),
        Ok(stat) => {
            let block = to_f64(stat.f_bsize.unsigned_abs());
            let bytes = |blocks: u64| to_f64(blocks) * block;
            Answer::Sizes([
                bytes(stat.f_blocks),
                bytes(stat.f_bfree),
                bytes(stat.f_bavail),
                to_f64(stat.f_files),
                to_f64(stat.f_ffree),
            ])
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static GATE: Mutex<()> = Mutex::new(());

    /// `/stuck` blocks as long as the gate is shut.
    fn gated(point: &Path) -> Answer {
        if point == Path::new("/stuck") {
            drop(GATE.lock());
        }
        Answer::Sizes([1.0; 5])
    }

    #[test]
    fn a_stuck_mount_point_is_skipped_until_it_comes_back() {
        let shut = GATE.lock().expect("no test panicked with it");
        let mut prober = Prober {
            call: gated,
            patience: Duration::from_millis(50),
            ..Prober::default()
        };
        let points: Vec<PathBuf> = ["/a", "/stuck", "/b"].map(PathBuf::from).into();
        let good = Answer::Sizes([1.0; 5]);
        let expected = [good.clone(), Answer::Stuck, good.clone()];
        assert_eq!(prober.ask(&points), expected);
        assert_eq!(prober.ask(&points), expected, "a second round starts no second thread");
        assert_eq!(prober.stuck.len(), 1);
        drop(shut);
        let back = (0..100_000).any(|_| {
            thread::yield_now();
            prober.ask(&points)[1] == good
        });
        assert!(back);
        assert!(prober.stuck.is_empty());
    }

    #[test]
    fn a_mount_point_that_is_gone_is_an_error_of_its_own() {
        let answers = Prober::default().ask(&["/".into(), "/no/such/folder".into()]);
        assert!(matches!(answers[0], Answer::Sizes(sizes) if sizes[0] > 0.0));
        assert_eq!(answers[1], Answer::Refused(rustix::io::Errno::NOENT));
        assert!(answers[1].error(Path::new("/no/such/folder")).is_some());
    }
}
