//! A thread by each GPU in this process: it asks the driver, and only it waits when the driver does not answer.
//!
//! For machines whose driver is this process's own, as the simulated one is; the driver of a real machine is asked by a
//! [`helper`](super::helper).

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Clock, Millis};
use nvml::Nvml;

use super::asker::Asker;
use super::identity::Identity;
use super::reading::{GpuState, Reading};
use crate::Error;
use crate::desk::{Desk, Order};

/// Stands by one GPU.
pub struct Watcher {
    desk: Arc<Desk<Reading>>,
    /// Who the GPU was when it last answered.
    identity: Identity,
}

impl Watcher {
    /// Starts the thread. It asks for the words in `words`.
    pub fn start(
        nvml: Nvml,
        index: u32,
        words: &[String],
        tick: Duration,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let of_thread = Arc::clone(&desk);
        let mut asker = Asker::new(nvml, index, words);
        std::thread::Builder::new().name(format!("gpu{index}")).spawn(move || {
            loop {
                match of_thread.next(Some(tick)) {
                    Order::Stop => return,
                    Order::Tick => asker.look(clock.now()),
                    Order::Ask(now) => {
                        of_thread.answer(asker.round(now, &mut |_, _| {}));
                        of_thread.done();
                    }
                }
            }
        })?;
        Ok(Self {
            desk,
            identity: Identity::unknown(index),
        })
    }

    /// Asks; false when the thread still waits for the driver.
    pub fn ask(&self, now: Millis) -> bool {
        self.desk.ask(now)
    }

    /// The answer, or that there is none in time.
    pub fn wait(&mut self, asked: bool, begun: Instant, deadline: Duration) -> Reading {
        let answer = if asked {
            self.desk.wait(begun, deadline).pop()
        } else {
            None
        };
        match answer {
            Some(reading) => {
                self.identity.clone_from(&reading.identity);
                reading
            }
            None => Reading {
                errors: vec![Error::Hung {
                    what: format!("GPU {} ({})", self.identity.index, self.identity.uuid),
                    deadline,
                }],
                ..Reading::without(self.identity.clone(), GpuState::Hung)
            },
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.desk.stop();
    }
}
