//! `watchfire gpu-helper`: speaks to the GPU driver for an agent, over the socket that is its standard input.
//!
//! It ends when the agent hangs up. Asked to end by a signal, as a service manager asks every process of a service, it first
//! shuts the driver's library down in order.

use std::net::Shutdown;
use std::thread;

use anyhow::Context as _;
use collect::gpu::helper;

/// Serves until the agent hangs up, or a signal asks to end.
pub fn run() -> anyhow::Result<()> {
    // In lists of processes it would go by the name of the link that it was started by.
    let _ = std::fs::write("/proc/self/comm", "watchfire-gpu");
    let socket = helper::socket().context("cannot use standard input as a socket")?;
    let ending = socket.try_clone().context("cannot use standard input as a socket")?;
    let signals = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("cannot listen for signals")?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            signals.block_on(super::asked_to_end());
            // Whoever reads takes this for the agent's hanging up.
            let _ = ending.shutdown(Shutdown::Read);
        })
        .context("cannot start a thread")?;
    helper::serve(&socket).context("this process is started by an agent, not by hand")
}
