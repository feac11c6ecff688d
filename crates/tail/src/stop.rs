//! The handle that ends a wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::Error;

/// Ends the wait of every reader that holds a clone, now and from now on.
#[derive(Debug, Clone)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// A handle that has not been used.
    ///
    /// # Errors
    ///
    /// [`Error::Wait`] when the process may open no more files.
    pub fn new() -> Result<Self, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self(Arc::new(event.map_err(|e| Error::Wait(e.into()))?)))
    }

    /// Ends the waits.
    pub fn stop(&self) {
        // It fails only when the counter is full, and then everyone is awake already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Stop {
    /// Whether it was used.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until it is used, for `patience` at most, and says whether it was.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).ok();
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        // A wait that fails is over at once: the caller looks again.
        poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
