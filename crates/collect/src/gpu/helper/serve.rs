//! The helper's side of the socket.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use model::SystemClock;

use super::protocol::{Begin, Report, Request};
use super::station::{Station, Tell};
use super::wire::Inbox;

/// How long the library may take to be shut down when the agent has hung up. A driver that does not return is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves the agent at the other end of the socket until it hangs up, or somebody shuts this end's reading down.
///
/// The process is expected to end when this returns: a thread that the driver does not let go may still be there.
///
/// # Errors
///
/// Those of the socket; an agent that hangs up is none.
pub fn serve(socket: &UnixStream) -> io::Result<()> {
    let out = Mutex::new(socket.try_clone()?);
    let tell: Tell = Arc::new(move |report: Report| {
        if let Some(frame) = report.frame() {
            // An agent that is gone is noticed by whoever reads.
            let _ = out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame);
        }
    });
    let post = Arc::new(Post::default());
    let heard = listen(socket, &post, &tell);
    post.close();
    heard
}

/// Reads requests until there are no more. The first one starts the station, on a thread of its own: the library may hang
/// while it is loaded.
fn listen(mut socket: &UnixStream, post: &Arc<Post>, tell: &Tell) -> io::Result<()> {
    let mut inbox = Inbox::default();
    let mut bytes = [0; 4096];
    loop {
        let got = match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        inbox.put(&bytes[..got]);
        let mut requests = Vec::new();
        let read = inbox.frames(|frame| {
            requests.push(Request::read(frame)?);
            Ok(())
        });
        for request in requests {
            match request {
                Request::Begin(begin) => start(begin, Arc::clone(post), Arc::clone(tell))?,
                Request::Round(now) => post.with(|station| station.round(now)),
            }
        }
        read.map_err(io::Error::other)?;
    }
}

fn start(begin: Begin, post: Arc<Post>, tell: Tell) -> io::Result<()> {
    let work = move || post.open(Station::start(begin, Arc::new(SystemClock), tell));
    thread::Builder::new().name("gpu-load".to_owned()).spawn(work)?;
    Ok(())
}

/// Where the station is put once it stands.
#[derive(Default)]
struct Post {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
enum State {
    /// Nobody began.
    #[default]
    Empty,
    /// It stands.
    Open(Station),
    /// The agent has hung up.
    Closed,
}

impl Post {
    /// Puts the station up; one that comes too late is stopped at once.
    fn open(&self, station: Option<Station>) {
        let Some(station) = station else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Closed) {
            drop(state);
            station.stop(PATIENCE);
        } else {
            *state = State::Open(station);
            self.changed.notify_all();
        }
    }

    fn with(&self, act: impl FnOnce(&Station)) {
        if let State::Open(station) = &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            act(station);
        }
    }

    /// Ends the station in order, as far as the driver lets it.
    fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was = std::mem::replace(&mut *state, State::Closed);
        drop(state);
        if let State::Open(station) = was {
            station.stop(PATIENCE);
        }
    }
}
