//! Driver calls in a process of their own, so that a driver that never answers takes a helper with it and not the agent.
//!
//! [`protocol`] is what the two say to each other, in frames of [`wire`] over one socket that is the helper's standard
//! input. In the helper, [`serve`] listens to the agent and a [`station`] has a thread by each GPU. In the agent,
//! [`supervisor`] starts helpers, hears them and ends them, as the [`roster`] decides: which helper serves which GPUs, who
//! is sick, when to try again.
//!
//! A helper ends by itself when its agent is gone: the socket closes, the library is shut down in order, and a driver that
//! will not let go is left behind. Nothing that arrives from a helper can make the agent fail.

mod link;
mod protocol;
mod roster;
mod serve;
mod station;
mod supervisor;
mod wire;

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

pub use link::HelperCommand;
pub use serve::serve;
pub use supervisor::{Helpers, Supervisor};

pub(super) use protocol::{Begin, Serves};
pub(super) use roster::Times;
pub(super) use supervisor::Options;

/// The socket that a helper was started with, as its standard input.
///
/// # Errors
///
/// Standard input is closed.
pub fn socket() -> io::Result<UnixStream> {
    let stdin = io::stdin();
    Ok(UnixStream::from(stdin.as_fd().try_clone_to_owned()?))
}

/// Serves the agent that started this process as its GPU helper, until it hangs up.
///
/// # Errors
///
/// Those of the socket.
pub fn serve_stdin() -> io::Result<()> {
    serve(&socket()?)
}
