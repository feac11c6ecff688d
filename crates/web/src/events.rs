//! An agent's stream of events: what was counted, the moment it was, for hubs that hold the stream open.
//!
//! Text: `# boot ID` first, then for each event `# event SEQ age_ms=N`, the lines of a page, `# end SEQ`, and every ten
//! seconds `# alive`. `?boot=ID&after=SEQ` goes on where a client left off; the last [`EVENTS_MAX`] events are kept, and
//! what is older stands in the counters of the next page.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::{Clock, Millis};
use tokio::sync::watch;

use crate::params::Params;

/// Events kept for clients that come back.
const EVENTS_MAX: usize = 1_024;
/// How often a silent stream says that it is alive.
const ALIVE: Duration = Duration::from_secs(10);
/// The most streams at once.
const STREAMS_MAX: usize = 64;

/// The events of one agent.
pub struct EventLog {
    boot: String,
    clock: Arc<dyn Clock>,
    kept: Mutex<VecDeque<Kept>>,
    last: watch::Sender<u64>,
}

struct Kept {
    number: u64,
    time: Millis,
    page: String,
}

impl EventLog {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            boot: format!("{:x}-{:x}", clock.now(), std::process::id()),
            clock,
            kept: Mutex::default(),
            last: watch::Sender::new(0),
        }
    }

    /// Adds an event: the lines of a page, each ended.
    pub fn push(&self, page: String, time: Millis) {
        let mut kept = lock(&self.kept);
        let number = *self.last.borrow() + 1;
        if kept.len() == EVENTS_MAX {
            kept.pop_front();
        }
        kept.push_back(Kept { number, time, page });
        drop(kept);
        self.last.send_replace(number);
    }

    /// Streams that are open.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.last.receiver_count()
    }

    /// What came after `number`, and the last number of it.
    fn after(&self, number: u64) -> (String, u64) {
        let now = self.clock.now();
        let mut out = String::new();
        let mut last = number;
        for event in lock(&self.kept).iter().filter(|event| event.number > number) {
            let age = (now - event.time).max(0);
            last = event.number;
            let _ = write!(out, "# event {last} age_ms={age}\n{}# end {last}\n", event.page);
        }
        (out, last)
    }

    /// `GET /events`
    pub fn stream(self: &Arc<Self>, params: &Params) -> Response {
        if self.last.receiver_count() >= STREAMS_MAX {
            let text = format!("{STREAMS_MAX} streams are open already\n");
            return (axum::http::StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
        let news = self.last.subscribe();
        // A client of this run goes on where it was; one that is new here begins now.
        let known = params.get("boot") == Some(self.boot.as_str());
        let after = params.get("after").and_then(|n| n.parse().ok()).filter(|_| known);
        let seen = after.unwrap_or(*news.borrow());
        let reader = Reader {
            log: Arc::clone(self),
            news,
            seen,
            first: true,
        };
        let stream = futures_util::stream::unfold(reader, |mut reader| async move {
            let text = reader.next().await?;
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), reader))
        });
        let kind = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (kind, Body::from_stream(stream)).into_response()
    }
}

/// One client's place in the log.
struct Reader {
    log: Arc<EventLog>,
    news: watch::Receiver<u64>,
    seen: u64,
    first: bool,
}

impl Reader {
    /// The next piece of the stream; the end when the log is gone.
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.first) {
            return Some(format!("# boot {}\n", self.log.boot));
        }
        loop {
            self.news.borrow_and_update();
            let (text, last) = self.log.after(self.seen);
            if last > self.seen {
                self.seen = last;
                return Some(text);
            }
            match tokio::time::timeout(ALIVE, self.news.changed()).await {
                Err(_) => return Some("# alive\n".to_owned()),
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {}
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At(Millis);

    impl Clock for At {
        fn now(&self) -> Millis {
            self.0
        }
    }

    #[test]
    fn a_client_gets_what_it_missed() {
        let log = EventLog::new(Arc::new(At(5_000)));
        log.push("x 1\n".into(), 4_000);
        log.push("x 2\n".into(), 4_990);
        assert_eq!(log.after(0).1, 2);
        assert_eq!(log.after(1).0, "# event 2 age_ms=10\nx 2\n# end 2\n");
        assert_eq!(log.after(2), (String::new(), 2));
    }

    #[test]
    fn the_oldest_events_go() {
        let log = EventLog::new(Arc::new(At(0)));
        for _ in 0..EVENTS_MAX + 10 {
            log.push(String::new(), 0);
        }
        assert_eq!(lock(&log.kept).len(), EVENTS_MAX);
        assert_eq!(log.after(0).1, (EVENTS_MAX + 10) as u64);
    }
}
