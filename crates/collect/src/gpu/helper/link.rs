//! The agent's side of one helper: its process and its socket.
//!
//! Nothing here waits: the socket does not block, and a process that will not die is looked after from time to time.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::protocol::{Begin, Report, Request};
use super::wire::Inbox;

/// How a helper is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperCommand {
    /// The executable; it is to call [`serve_stdin`](super::serve_stdin).
    pub program: PathBuf,
    /// What makes it a helper.
    pub args: Vec<OsString>,
}

impl HelperCommand {
    /// This process's own executable, also after the file was replaced by a newer one.
    #[must_use]
    pub fn this_binary(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            program: "/proc/self/exe".into(),
            args: args.into_iter().map(Into::into).collect(),
        }
    }
}

/// A helper.
pub struct Link {
    child: Child,
    /// Gone once we have hung up.
    socket: Option<UnixStream>,
    inbox: Inbox,
}

/// What came of listening to a helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It is there.
    Open,
    /// It has hung up, or talks nonsense.
    Closed,
}

impl Link {
    /// Starts the process and tells it what to do.
    ///
    /// # Errors
    ///
    /// The system refuses a socket or the process.
    pub fn start(command: &HelperCommand, begin: Begin) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&command.program)
            .args(&command.args)
            .arg0("watchfire")
            // Many threads with an arena each cost more memory than they save time.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()?;
        let mut link = Self {
            child,
            socket: Some(ours),
            inbox: Inbox::default(),
        };
        link.send(&Request::Begin(begin));
        Ok(link)
    }

    /// Sends a request. A helper whose socket is full has not listened for a long time and will be found silent.
    pub fn send(&mut self, request: &Request) {
        if let (Some(mut socket), Some(frame)) = (self.socket.as_ref(), request.frame()) {
            // A part of a frame would garble what follows.
            if !matches!(socket.write(&frame), Ok(written) if written == frame.len()) {
                self.hang_up();
            }
        }
    }

    /// Takes what has arrived.
    pub fn receive(&mut self, scratch: &mut [u8], each: &mut impl FnMut(Report)) -> Heard {
        let Some(mut socket) = self.socket.as_ref() else {
            return Heard::Closed;
        };
        loop {
            match socket.read(scratch) {
                Ok(0) => return Heard::Closed,
                Ok(got) => {
                    self.inbox.put(&scratch[..got]);
                    let read = self.inbox.frames(|frame| {
                        each(Report::read(frame)?);
                        Ok(())
                    });
                    if read.is_err() {
                        return Heard::Closed;
                    }
                    if got < scratch.len() {
                        return Heard::Open;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Open,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Heard::Closed,
            }
        }
    }

    /// Asks it to leave: it shuts the library down and ends, if the driver lets it.
    pub fn hang_up(&mut self) {
        self.socket = None;
    }

    /// Kills it. A process that is stuck in the kernel dies when the kernel lets it.
    pub fn kill(&mut self) {
        // It may have ended meanwhile.
        let _ = self.child.kill();
    }

    /// Whether it has ended, and how; it leaves no zombie then.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What to wait for.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }
}

/// How a process ended, in words.
pub fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(11), _) => "crashed in the driver's library (SIGSEGV)".to_owned(),
        (Some(7), _) => "crashed in the driver's library (SIGBUS)".to_owned(),
        (Some(6), _) => "was aborted (SIGABRT)".to_owned(),
        (Some(9), _) => "was killed (SIGKILL)".to_owned(),
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
