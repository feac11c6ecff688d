use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redb::StorageBackend;

use super::*;

#[test]
fn what_was_written_is_known_and_what_was_struck_out_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (journal, _) = Journal::open(Some(folder.path())).expect("opened");
    let entry = Entry::default();
    journal.write(
        vec![Write::entry("a", Some(&entry)), Write::entry("b", Some(&entry))],
        0,
    );
    journal.write(vec![Write::entry("a", None)], 0);
    assert_eq!(journal.waiting(), 0);
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

/// A disk in memory that can be full.
#[derive(Debug, Clone, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    full: Arc<AtomicBool>,
    opened: Arc<AtomicUsize>,
}

impl Disk {
    fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    fn room(&self) -> std::io::Result<()> {
        if self.full.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().expect("no panic")
    }

    fn journal(&self) -> (Journal, Known) {
        let disk = self.clone();
        let opener = move || {
            disk.opened.fetch_add(1, Ordering::SeqCst);
            Ok(builder().create_with_backend(disk.clone())?)
        };
        Journal::with(PathBuf::from(FILE), Box::new(opener)).expect("opened")
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).expect("small");
        out.copy_from_slice(&self.bytes()[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.room()?;
        self.bytes().resize(usize::try_from(len).expect("small"), 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.room()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.room()?;
        let start = usize::try_from(offset).expect("small");
        self.bytes()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

fn written(key: &str) -> Vec<Write> {
    vec![Write::entry(key, Some(&Entry::default()))]
}

#[test]
fn a_disk_that_was_full_is_written_to_again() {
    let disk = Disk::default();
    let (journal, _) = disk.journal();
    journal.write(written("before"), 0);
    disk.set_full(true);
    journal.write(written("during"), 1_000);
    journal.write(written("during"), 1_500);
    journal.write(written("during too"), 2_000);
    assert_eq!(journal.waiting(), 2, "one change a key");
    disk.set_full(false);
    journal.write(vec![], 2_100);
    assert_eq!(journal.waiting(), 2, "a pause is a pause");
    journal.write(vec![], 4_000);
    assert_eq!(journal.waiting(), 0);
    journal.write(written("after"), 4_001);
    drop(journal);
    let (_, known) = disk.journal();
    let keys: Vec<&str> = known.entries.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["after", "before", "during", "during too"]);
}

#[test]
fn a_full_disk_is_tried_ever_more_rarely_and_never_given_up() {
    let disk = Disk::default();
    let (journal, _) = disk.journal();
    disk.set_full(true);
    let before = disk.opened.load(Ordering::SeqCst);
    for second in 0..600 {
        journal.write(written("a"), second * 1_000);
    }
    let tries = disk.opened.load(Ordering::SeqCst) - before;
    assert!((10..=16).contains(&tries), "{tries}");
    disk.set_full(false);
    journal.write(vec![], 700_000);
    assert_eq!(journal.waiting(), 0);
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "watchfire::alerts"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_full_disk_is_logged_when_it_begins_and_when_it_ends() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let count = || lines.0.load(Ordering::SeqCst);
    let disk = Disk::default();
    let (journal, _) = disk.journal();
    disk.set_full(true);
    for second in 0..600 {
        journal.write(written("a"), second * 1_000);
    }
    assert_eq!(count(), 1);
    disk.set_full(false);
    journal.write(written("b"), 700_000);
    journal.write(written("c"), 700_001);
    assert_eq!(count(), 2);
}

#[test]
fn what_waits_is_bounded_and_the_newest_stays() {
    let disk = Disk::default();
    let (journal, _) = disk.journal();
    disk.set_full(true);
    let one = |id| Write::Delivery(id, Some("{}".to_owned()));
    journal.write((0..15_000).map(one).collect(), 0);
    assert_eq!(journal.waiting(), WAITING_MAX);
    assert_eq!(journal.state().waiting.last(), Some(&one(14_999)));
    assert_eq!(journal.state().failing.map(|f| f.forgotten), Some(5_000));
}

#[test]
fn the_end_does_not_wait_for_the_pause() {
    let disk = Disk::default();
    let (journal, _) = disk.journal();
    disk.set_full(true);
    journal.write(written("a"), 1_000);
    disk.set_full(false);
    journal.write_last(written("b"), 1_001);
    assert_eq!(journal.waiting(), 0);
}

/// A real file system without room, where there is one to be had: `WATCHFIRE_SMALL_DISK` names a folder on it.
#[test]
fn a_real_disk_that_was_full_is_written_to_again() {
    let Some(folder) = std::env::var_os("WATCHFIRE_SMALL_DISK").map(PathBuf::from) else {
        println!("skipped: WATCHFIRE_SMALL_DISK is not set");
        return;
    };
    let (journal, _) = Journal::open(Some(&folder)).expect("opened");
    let ballast = folder.join("ballast");
    let mut file = std::fs::File::create(&ballast).expect("made");
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    let large = |id| Write::Delivery(id, Some("x".repeat(10_000)));
    let mut now: Millis = 0;
    while journal.waiting() == 0 {
        now += 1_000;
        journal.write((0..50).map(|i| large(i + now.unsigned_abs())).collect(), now);
        assert!(now < 100_000, "the disk is too large");
    }
    journal.write(vec![large(1)], now + 5_000);
    assert!(journal.waiting() > 1);
    std::fs::remove_file(&ballast).expect("removed");
    drop(file);
    journal.write(written("after"), now + 200_000);
    assert_eq!(journal.waiting(), 0);
    drop(journal);
    let (_, known) = Journal::open(Some(&folder)).expect("opened again");
    assert_eq!(known.entries.len(), 1);
}
