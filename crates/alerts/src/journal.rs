//! What survives a restart: a small transactional file with the notification log, silences and deliveries.
//!
//! ```text
//! alerts.redb   table "notifications"  group and receiver ─► entry   (JSON)
//!               table "silences"       name               ─► silence (JSON)
//!               table "deliveries"     number             ─► delivery (JSON)
//!               table "alerts"         fingerprint        ─► foreign alert (JSON); our rules tell theirs anew
//! ```
//!
//! A value that cannot be read is skipped: losing one memory is better than losing all.
//!
//! A disk that is full for a while ends nothing: changes wait in memory, the newest of each key, and the
//! file is closed and opened anew, with growing pauses, until it takes them. Only the beginning and the end
//! of that are logged.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Millis;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;

use crate::alert::Alert;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::nflog::{Entry, alert_from_json, alert_to_json};
use crate::silence::Silence;

const NOTIFICATIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("notifications");
const SILENCES: TableDefinition<'_, &str, &str> = TableDefinition::new("silences");
const DELIVERIES: TableDefinition<'_, u64, &str> = TableDefinition::new("deliveries");

const ALERTS: TableDefinition<'_, u64, &str> = TableDefinition::new("alerts");

/// The file's name in the data folder.
pub const FILE: &str = "alerts.redb";
/// Memory the store may use for pages, in bytes.
const CACHE_BYTES: usize = 1 << 20;
/// The most changes that wait for a disk that does not take them.
const WAITING_MAX: usize = 10_000;
/// First pause after a failure, in milliseconds; twice as long after each further one.
const PAUSE_FIRST: Millis = 1_000;
/// Longest pause after a failure, in milliseconds.
const PAUSE_MAX: Millis = 60_000;

/// What was known when the file was opened.
#[derive(Debug, Default)]
pub struct Known {
    /// The notification log.
    pub entries: Vec<(String, Entry)>,
    /// Silences.
    pub silences: Vec<Silence>,
    /// Deliveries.
    pub deliveries: Vec<Delivery>,
    /// Alerts that came by the API.
    pub alerts: Vec<Alert>,
}

/// Something to write down; without a value, to strike out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// An entry of the notification log.
    Entry(String, Option<String>),
    /// A silence.
    Silence(String, Option<String>),
    /// A delivery.
    Delivery(u64, Option<String>),
    /// An alert that came by the API.
    Alert(u64, Option<String>),
}

impl Write {
    /// An entry of the notification log.
    #[must_use]
    pub fn entry(key: &str, entry: Option<&Entry>) -> Self {
        Self::Entry(key.to_owned(), entry.map(|e| e.to_json().to_string()))
    }

    /// A silence.
    #[must_use]
    pub fn silence(id: &str, silence: Option<&Silence>) -> Self {
        Self::Silence(id.to_owned(), silence.map(|s| s.to_json().to_string()))
    }

    /// A delivery.
    #[must_use]
    pub fn delivery(id: u64, delivery: Option<&Delivery>) -> Self {
        Self::Delivery(id, delivery.map(|d| d.to_json().to_string()))
    }

    /// An alert that came by the API.
    #[must_use]
    pub fn alert(fingerprint: u64, alert: Option<&Alert>) -> Self {
        Self::Alert(fingerprint, alert.map(|a| alert_to_json(a).to_string()))
    }
}

/// What a change is about.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Entry(&'a str),
    Silence(&'a str),
    Delivery(u64),
    Alert(u64),
}

impl Write {
    fn key(&self) -> Key<'_> {
        match self {
            Self::Entry(key, _) => Key::Entry(key),
            Self::Silence(id, _) => Key::Silence(id),
            Self::Delivery(id, _) => Key::Delivery(*id),
            Self::Alert(fingerprint, _) => Key::Alert(*fingerprint),
        }
    }
}

/// Opens the file, again and again if need be.
type Opener = Box<dyn Fn() -> Result<Database, redb::Error> + Send + Sync>;

/// The file, and what waits for it.
pub struct Journal {
    path: PathBuf,
    opener: Opener,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Absent after a failure: redb refuses everything from then on, so the file is opened anew.
    database: Option<Database>,
    waiting: Vec<Write>,
    failing: Option<Failing>,
}

#[derive(Clone, Copy)]
struct Failing {
    pause: Millis,
    next_try: Millis,
    forgotten: usize,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens or makes the file in a folder; without a folder everything is forgotten at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] and [`Error::Journal`].
    pub fn open(folder: Option<&Path>) -> Result<(Self, Known), Error> {
        let Some(folder) = folder else {
            let opener = || Ok(builder().create_with_backend(InMemoryBackend::new())?);
            return Self::with(PathBuf::new(), Box::new(opener));
        };
        std::fs::create_dir_all(folder).map_err(|source| Error::Folder {
            path: folder.to_owned(),
            source,
        })?;
        let path = folder.join(FILE);
        let own = path.clone();
        Self::with(path, Box::new(move || Ok(builder().create(&own)?)))
    }

    fn with(path: PathBuf, opener: Opener) -> Result<(Self, Known), Error> {
        let journal = Self {
            path,
            opener,
            state: Mutex::default(),
        };
        let (database, known) = journal.opened().map_err(|source| Error::Journal {
            path: journal.path.clone(),
            source: Box::new(source),
        })?;
        journal.state().database = Some(database);
        Ok((journal, known))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What waits is whole at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file with what it holds; a damaged one makes room for a new one.
    fn opened(&self) -> Result<(Database, Known), redb::Error> {
        let open = || -> Result<(Database, Known), redb::Error> {
            let database = (self.opener)()?;
            let known = read(&database)?;
            Ok((database, known))
        };
        match open() {
            Err(error) if is_damaged(&error) => {
                set_aside(&self.path, &error);
                open()
            }
            other => other,
        }
    }

    /// Writes down, all or nothing; on disk when it returns, unless the disk does not take it: then it waits
    /// here for the next call after a pause.
    pub fn write(&self, writes: Vec<Write>, now: Millis) {
        let mut state = self.state();
        state.waiting.extend(writes);
        if state.waiting.is_empty() {
            return;
        }
        // A clock that was set back must not make the pause longer.
        let paused = |f: &Failing| now < f.next_try && f.next_try.saturating_sub(now) <= PAUSE_MAX;
        if state.failing.as_ref().is_some_and(paused) {
            state.bound();
            return;
        }
        match self.try_write(&mut state) {
            Ok(()) => self.written(&mut state),
            Err(error) => self.failed(&mut state, &error, now),
        }
    }

    /// Writes what waits without regard for the pause: the process ends.
    pub fn write_last(&self, writes: Vec<Write>, now: Millis) {
        if let Some(failing) = &mut self.state().failing {
            failing.next_try = Millis::MIN;
        }
        self.write(writes, now);
        let lost = self.waiting();
        if lost > 0 {
            tracing::error!(
                target: "watchfire::alerts",
                path = %self.path.display(),
                changes = lost,
                "what was notified last is not written down: it may be told again after the next start"
            );
        }
    }

    /// How many changes wait for the disk.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn try_write(&self, state: &mut State) -> Result<(), redb::Error> {
        let database = match state.database.take() {
            Some(database) => database,
            None => self.opened()?.0,
        };
        // Dropped when it fails, which closes the file.
        apply(&database, &state.waiting)?;
        state.database = Some(database);
        Ok(())
    }

    fn written(&self, state: &mut State) {
        let written = std::mem::take(&mut state.waiting).len();
        if let Some(failing) = state.failing.take() {
            tracing::info!(
                target: "watchfire::alerts",
                path = %self.path.display(),
                written,
                forgotten = failing.forgotten,
                "what was notified is written down again"
            );
        }
    }

    fn failed(&self, state: &mut State, error: &redb::Error, now: Millis) {
        if state.failing.is_none() {
            tracing::error!(
                target: "watchfire::alerts",
                path = %self.path.display(),
                %error,
                "cannot write down what was notified; it waits in memory until the disk takes it"
            );
        }
        let (pause, forgotten) = match state.failing {
            None => (PAUSE_FIRST, 0),
            Some(failing) => ((failing.pause * 2).min(PAUSE_MAX), failing.forgotten),
        };
        state.failing = Some(Failing {
            pause,
            next_try: now.saturating_add(pause),
            forgotten,
        });
        state.bound();
    }
}

impl State {
    /// Keeps the newest change of each key, and of those no more than fit.
    fn bound(&mut self) {
        let mut last: HashMap<Key<'_>, usize> = HashMap::new();
        for (at, write) in self.waiting.iter().enumerate() {
            last.insert(write.key(), at);
        }
        let mut kept: Vec<usize> = last.into_values().collect();
        kept.sort_unstable();
        let excess = kept.len().saturating_sub(WAITING_MAX);
        kept.drain(..excess);
        let mut kept = kept.into_iter().peekable();
        let mut at = 0;
        self.waiting.retain(|_| {
            at += 1;
            kept.next_if_eq(&(at - 1)).is_some()
        });
        if let Some(failing) = &mut self.failing {
            failing.forgotten += excess;
        }
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn read(database: &Database) -> Result<Known, redb::Error> {
    // The tables are made here, so that reading below finds them.
    apply(database, &[])?;
    let reading = database.begin_read()?;
    let mut known = Known::default();
    for row in reading.open_table(NOTIFICATIONS)?.iter()? {
        let (key, value) = row?;
        if let Some(entry) = json(value.value()).as_ref().and_then(Entry::from_json) {
            known.entries.push((key.value().to_owned(), entry));
        }
    }
    for row in reading.open_table(SILENCES)?.iter()? {
        let (key, value) = row?;
        let silence = json(value.value()).and_then(|v| Silence::from_json(key.value(), &v));
        known.silences.extend(silence);
    }
    for row in reading.open_table(DELIVERIES)?.iter()? {
        let (key, value) = row?;
        let delivery = json(value.value()).and_then(|v| Delivery::from_json(key.value(), &v));
        known.deliveries.extend(delivery);
    }
    for row in reading.open_table(ALERTS)?.iter()? {
        let alert = json(row?.1.value()).as_ref().and_then(alert_from_json);
        known.alerts.extend(alert);
    }
    Ok(known)
}

/// Writes down, all or nothing; on disk when it returns.
fn apply(database: &Database, writes: &[Write]) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    {
        let mut notifications = writing.open_table(NOTIFICATIONS)?;
        let mut silences = writing.open_table(SILENCES)?;
        let mut deliveries = writing.open_table(DELIVERIES)?;
        let mut alerts = writing.open_table(ALERTS)?;
        for write in writes {
            match write {
                Write::Entry(key, Some(value)) => drop(notifications.insert(key.as_str(), value.as_str())?),
                Write::Entry(key, None) => drop(notifications.remove(key.as_str())?),
                Write::Silence(id, Some(value)) => drop(silences.insert(id.as_str(), value.as_str())?),
                Write::Silence(id, None) => drop(silences.remove(id.as_str())?),
                Write::Delivery(id, Some(value)) => drop(deliveries.insert(id, value.as_str())?),
                Write::Delivery(id, None) => drop(deliveries.remove(id)?),
                Write::Alert(id, Some(value)) => drop(alerts.insert(id, value.as_str())?),
                Write::Alert(id, None) => drop(alerts.remove(id)?),
            }
        }
    }
    writing.commit()?;
    Ok(())
}

/// Whether the file itself is at fault, not the way to it.
fn is_damaged(error: &redb::Error) -> bool {
    match error {
        redb::Error::Corrupted(_) | redb::Error::UpgradeRequired(_) | redb::Error::RepairAborted => true,
        redb::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Renames a damaged file, so that it can be looked at: a damaged memory must not keep alerts from people.
fn set_aside(path: &Path, error: &redb::Error) {
    let aside = path.with_extension("redb.damaged");
    let renamed = std::fs::rename(path, &aside);
    tracing::error!(
        target: "watchfire::alerts",
        %error,
        aside = %aside.display(),
        renamed = renamed.is_ok(),
        "the notification log is damaged and set aside; what was notified before is forgotten"
    );
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests;
