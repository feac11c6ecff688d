//! The handle that ends a wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

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

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
