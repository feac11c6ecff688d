//! Where a thread that works in rounds and those who ask it meet.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Millis;

/// Where a thread that works in rounds and those who ask it meet.
///
/// The thread takes [`Desk::next`] and gives [`Desk::answer`]s; who asks waits no longer than it likes, and what comes
/// later is dropped.
pub struct Desk<A> {
    round: Mutex<Round<A>>,
    changed: Condvar,
}

struct Round<A> {
    /// The moment to work for, until the thread takes it.
    asked: Option<Millis>,
    /// Whether the thread is at work on a round.
    busy: bool,
    answers: Vec<A>,
    stop: bool,
}

/// What the thread is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Work a round for this moment.
    Ask(Millis),
    /// Nobody asked for a while.
    Tick,
    /// Leave.
    Stop,
}

impl<A> Default for Desk<A> {
    fn default() -> Self {
        let (asked, busy, answers, stop) = (None, false, Vec::new(), false);
        Self {
            round: Mutex::new(Round {
                asked,
                busy,
                answers,
                stop,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<A> Desk<A> {
    /// Asks for a round; false when the thread is still at an older one.
    pub fn ask(&self, now: Millis) -> bool {
        let mut round = self.lock();
        if round.busy || round.asked.is_some() {
            return false;
        }
        round.answers.clear();
        round.asked = Some(now);
        self.changed.notify_all();
        true
    }

    /// What was answered when the round is over or `deadline` has passed since `begun`, whichever comes first.
    pub fn wait(&self, begun: Instant, deadline: Duration) -> Vec<A> {
        let rest = deadline.saturating_sub(begun.elapsed());
        let under_way = |round: &mut Round<A>| round.busy || round.asked.is_some();
        let waited = self.changed.wait_timeout_while(self.lock(), rest, under_way);
        let (mut round, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut round.answers)
    }

    /// Lets the thread go when it next looks.
    pub fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits for the next order, as the thread; a tick comes when nobody asks for that long.
    pub fn next(&self, tick: Option<Duration>) -> Order {
        let idle = |round: &mut Round<A>| round.asked.is_none() && !round.stop;
        let mut round = match tick {
            None => self
                .changed
                .wait_while(self.lock(), idle)
                .unwrap_or_else(PoisonError::into_inner),
            Some(tick) => {
                let waited = self.changed.wait_timeout_while(self.lock(), tick, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if round.stop {
            return Order::Stop;
        }
        let Some(now) = round.asked.take() else {
            return Order::Tick;
        };
        round.busy = true;
        Order::Ask(now)
    }

    /// Gives an answer, as the thread.
    pub fn answer(&self, answer: A) {
        self.lock().answers.push(answer);
    }

    /// Ends the round, as the thread.
    pub fn done(&self) {
        self.lock().busy = false;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Round<A>> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
