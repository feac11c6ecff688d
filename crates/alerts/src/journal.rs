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
        if folder.is_none() {
            let database = builder.create_with_backend(InMemoryBackend::new());
            let database = database.map_err(|e| failed(e.into()))?;
            return Ok((Self { database }, Known::default()));
        }
        let open = || -> Result<(Self, Known), redb::Error> {
            let journal = Self {
                database: builder.create(&path)?,
            };
            let known = journal.read()?;
            Ok((journal, known))
        };
        match open() {
            Err(error) if is_damaged(&error) => {
                set_aside(&path, &error);
                open().map_err(failed)
            }
            other => other.map_err(failed),
        }
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
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_and_what_was_struck_out_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (journal, _) = Journal::open(Some(folder.path())).expect("opened");
        let entry = Entry::default();
        journal
            .apply(&[Write::entry("a", Some(&entry)), Write::entry("b", Some(&entry))])
            .expect("written");
        journal.apply(&[Write::entry("a", None)]).expect("written");
        drop(journal);
        let (_, known) = Journal::open(Some(folder.path())).expect("opened again");
        assert_eq!(known.entries, [("b".to_owned(), entry)]);
    }

    #[test]
    fn a_damaged_file_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(FILE), "not a database".repeat(1_000)).expect("written");
        let (_, known) = Journal::open(Some(folder.path())).expect("opened");
        assert!(known.entries.is_empty());
        assert!(folder.path().join("alerts.redb.damaged").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = Journal::open(Some(&file.join("below"))).expect_err("refused");
        assert!(error.to_string().contains("below"), "{error}");
    }
}
