//! What survives a restart: a small transactional file with the notification log, silences and deliveries.
//!
//! ```text
//! alerts.redb   table "notifications"  group and receiver ─► entry   (JSON)
//!               table "silences"       name               ─► silence (JSON)
//!               table "deliveries"     number             ─► delivery (JSON)
//! ```
//!
//! A value that cannot be read is skipped: losing one memory is better than losing all.

use std::path::Path;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;

use crate::delivery::Delivery;
use crate::error::Error;
use crate::nflog::Entry;
use crate::silence::Silence;

const NOTIFICATIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("notifications");
const SILENCES: TableDefinition<'_, &str, &str> = TableDefinition::new("silences");
const DELIVERIES: TableDefinition<'_, u64, &str> = TableDefinition::new("deliveries");

/// The file's name in the data folder.
pub const FILE: &str = "alerts.redb";
/// Memory the store may use for pages, in bytes.
const CACHE_BYTES: usize = 1 << 20;

/// What was known when the file was opened.
#[derive(Debug, Default)]
pub struct Known {
    /// The notification log.
    pub entries: Vec<(String, Entry)>,
    /// Silences.
    pub silences: Vec<Silence>,
    /// Deliveries.
    pub deliveries: Vec<Delivery>,
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
}

/// The open file.
#[derive(Debug)]
pub struct Journal {
    database: Database,
}

impl Journal {
    /// Opens or makes the file in a folder; without a folder everything is forgotten at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] and [`Error::Journal`].
    pub fn open(folder: Option<&Path>) -> Result<(Self, Known), Error> {
        let path = folder.map(|f| f.join(FILE)).unwrap_or_default();
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(|source| Error::Folder {
                path: folder.to_owned(),
                source,
            })?;
        }
        let failed = |source: redb::Error| Error::Journal {
            path: path.clone(),
            source: Box::new(source),
        };
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let database = match folder {
            Some(_) => builder.create(&path),
            None => builder.create_with_backend(InMemoryBackend::new()),
        };
        let journal = Self {
            database: database.map_err(|e| failed(e.into()))?,
        };
        let known = journal.read().map_err(failed)?;
        Ok((journal, known))
    }

    fn read(&self) -> Result<Known, redb::Error> {
        // The tables are made here, so that reading below finds them.
        self.apply(&[])?;
        let reading = self.database.begin_read()?;
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
        Ok(known)
    }

    /// Writes down, all or nothing; on disk when it returns.
    ///
    /// # Errors
    ///
    /// What the store said.
    pub fn apply(&self, writes: &[Write]) -> Result<(), redb::Error> {
        let writing = self.database.begin_write()?;
        {
            let mut notifications = writing.open_table(NOTIFICATIONS)?;
            let mut silences = writing.open_table(SILENCES)?;
            let mut deliveries = writing.open_table(DELIVERIES)?;
            for write in writes {
                match write {
                    Write::Entry(key, Some(value)) => drop(notifications.insert(key.as_str(), value.as_str())?),
                    Write::Entry(key, None) => drop(notifications.remove(key.as_str())?),
                    Write::Silence(id, Some(value)) => drop(silences.insert(id.as_str(), value.as_str())?),
                    Write::Silence(id, None) => drop(silences.remove(id.as_str())?),
                    Write::Delivery(id, Some(value)) => drop(deliveries.insert(id, value.as_str())?),
                    Write::Delivery(id, None) => drop(deliveries.remove(id)?),
                }
            }
        }
        writing.commit()?;
        Ok(())
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}
