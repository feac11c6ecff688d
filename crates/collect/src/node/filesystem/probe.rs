//! Asks mount points for their size on a thread of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
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
    /// The thread that asks, as long as it is not late.
    asker: Option<Asker>,
    /// Mount points whose thread has not come back, and whether it has.
    stuck: HashMap<PathBuf, Arc<AtomicBool>>,
    call: fn(&Path) -> Answer,
    patience: Duration,
}

/// A thread that answers lists of points, one answer for each.
struct Asker {
    lists: mpsc::Sender<Vec<PathBuf>>,
    answers: mpsc::Receiver<Answer>,
    /// Set when the thread has left.
    back: Arc<AtomicBool>,
}

impl Default for Prober {
    fn default() -> Self {
        Self {
            asker: None,
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
        let is_free: Vec<bool> = points.iter().map(|p| !self.stuck.contains_key(p)).collect();
        let free: Vec<PathBuf> = points
            .iter()
            .zip(&is_free)
            .filter(|(_, free)| **free)
            .map(|(p, _)| p.clone())
            .collect();
        let mut answers = self.ask_free(&free).into_iter();
        let answer = |is_free| {
            if is_free {
                answers.next().unwrap_or(Answer::NotAsked)
            } else {
                Answer::Stuck
            }
        };
        is_free.into_iter().map(answer).collect()
    }

    /// Asks on one thread, and on another from there on whenever a point is late.
    fn ask_free(&mut self, points: &[PathBuf]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(points.len());
        let mut lost = 0;
        while answers.len() < points.len() && lost < NEW_STUCK_MAX && self.stuck.len() < STUCK_MAX {
            let Some(asker) = self.asker.take().or_else(|| Asker::start(self.call)) else {
                break;
            };
            if asker.lists.send(points[answers.len()..].to_vec()).is_err() {
                break;
            }
            if asker.listen(points.len(), self.patience, &mut answers) {
                self.asker = Some(asker);
            } else if let Some(point) = points.get(answers.len()) {
                self.stuck.insert(point.clone(), asker.back);
                answers.push(Answer::Stuck);
                lost += 1;
            }
        }
        answers
    }
}

impl Asker {
    fn start(call: fn(&Path) -> Answer) -> Option<Self> {
        let (lists, arriving) = mpsc::channel::<Vec<PathBuf>>();
        let (sender, answers) = mpsc::channel();
        let back = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&back);
        let work = move || {
            // Once this thread was late nobody listens or sends any more, and it leaves.
            let tell = |point: PathBuf| sender.send(call(&point)).is_ok();
            while arriving.recv().is_ok_and(|points| points.into_iter().all(tell)) {}
            of_thread.store(true, Ordering::Release);
        };
        thread::Builder::new().name("statfs".to_owned()).spawn(work).ok()?;
        Some(Self { lists, answers, back })
    }

    /// Collects answers until there are `count`; false when one is late.
    fn listen(&self, count: usize, patience: Duration, into: &mut Vec<Answer>) -> bool {
        while into.len() < count {
            match self.answers.recv_timeout(patience) {
                Ok(answer) => into.push(answer),
                Err(_) => return false,
            }
        }
        true
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
