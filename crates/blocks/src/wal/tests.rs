use super::*;
use crate::vfs::mem::MemFs;

const DIR: &str = "wal";

fn options() -> Options {
    Options {
        segment_bytes: 200,
        sync_interval: Duration::from_secs(3600),
        backlog_bytes_max: 1000,
    }
}

fn open(fs: &MemFs) -> Wal {
    Wal::open(Arc::new(fs.clone()), Path::new(DIR), options()).unwrap()
}

fn append(wal: &Wal, text: &str) -> Result<(), Error> {
    let mut frames = Frames::new();
    frames.push_bytes(1, text.as_bytes());
    let mut guard = wal.lock();
    guard.chain();
    guard.append(&frames)
}

fn read(fs: &MemFs) -> (Vec<String>, Replayed) {
    let mut texts = Vec::new();
    let replayed = replay(fs, Path::new(DIR), &mut |record| {
        texts.push(String::from_utf8(record.payload.to_vec()).unwrap());
    });
    (texts, replayed.unwrap())
}

fn word(i: usize) -> String {
    format!("record {i} {}", "x".repeat(i % 17))
}

fn filled(n: usize) -> (MemFs, Vec<String>) {
    let fs = MemFs::new();
    let wal = open(&fs);
    let words: Vec<String> = (0..n).map(word).collect();
    for text in &words {
        append(&wal, text).unwrap();
    }
    wal.close().unwrap();
    (fs, words)
}

#[test]
fn what_was_appended_is_replayed_in_order() {
    let (fs, words) = filled(40);
    let (texts, replayed) = read(&fs);
    assert_eq!(texts, words);
    assert!(replayed.segments > 3, "{replayed:?}");
    assert!(replayed.damaged.is_empty());
}

#[test]
fn a_log_cut_at_any_byte_yields_a_prefix_and_takes_more() {
    let (fs, words) = filled(5);
    let path = segment_path(Path::new(DIR), 0);
    let size = fs.map(&path).unwrap().len();
    for cut in 0..=size {
        let fs = fs.at(fs.op_count());
        fs.edit(&path, |bytes| bytes.truncate(cut)).unwrap();
        let (texts, replayed) = read(&fs);
        assert_eq!(texts, words[..texts.len()], "cut at {cut}");
        assert!(replayed.damaged.is_empty(), "a torn tail is normal");
        let wal = open(&fs);
        append(&wal, "more").unwrap();
        wal.close().unwrap();
        let mut want = texts;
        want.push("more".into());
        assert_eq!(read(&fs).0, want, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_costs_the_rest_of_its_segment_and_the_file_is_kept() {
    let (fs, words) = filled(20);
    let path = segment_path(Path::new(DIR), 1);
    let original = fs.map(&path).unwrap().to_vec();
    for bit in 0..original.len() * 8 {
        let fs = fs.at(fs.op_count());
        fs.edit(&path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).unwrap();
        let (texts, replayed) = read(&fs);
        assert!(texts.len() < words.len(), "bit {bit} was not noticed");
        let mut rest = words.iter();
        assert!(
            texts.iter().all(|t| rest.any(|w| w == t)),
            "bit {bit} invented a record"
        );
        assert_eq!(texts.last(), words.last(), "the next segments are read");
        assert_eq!(replayed.damaged.len(), 1);
        assert_eq!(fs.map(&replayed.damaged[0]).unwrap().len(), original.len());
        let again = read(&fs);
        assert_eq!(again.0, texts, "the good part stays in its place");
        assert!(again.1.damaged.is_empty());
    }
}

#[test]
fn after_any_power_cut_synced_records_are_there_and_a_prefix_of_the_rest() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    let wal = open(&fs);
    let mut synced_at = vec![(fs.op_count(), 0)];
    for i in 0..30 {
        append(&wal, &word(i)).unwrap();
        if i % 4 == 3 {
            wal.sync().unwrap();
            synced_at.push((fs.op_count(), i + 1));
        }
    }
    for ops in synced_at[0].0..=fs.op_count() {
        let must = synced_at.iter().rev().find(|(at, _)| *at <= ops).unwrap().1;
        let disk = fs.at(ops).power_cut();
        let (texts, _) = read(&disk);
        assert!(texts.len() >= must, "after {ops} changes: {} of {must}", texts.len());
        assert_eq!(texts, (0..texts.len()).map(word).collect::<Vec<_>>());
    }
}

#[test]
fn a_checkpoint_replaces_its_segments_and_survives_a_crash_at_any_change() {
    let (fs, _) = filled(12);
    let before = read(&fs).0;
    let wal = open(&fs);
    let start = fs.op_count();
    wal.checkpoint(|w| w.push(2, |out| out.extend_from_slice(b"state")))
        .unwrap();
    let end = fs.op_count();
    append(&wal, "after").unwrap();
    wal.close().unwrap();
    assert_eq!(read(&fs).0, ["state", "after"]);
    for ops in start..=end {
        for disk in [fs.at(ops), fs.at(ops).power_cut()] {
            let texts = read(&disk).0;
            assert!(texts == before || texts == ["state"], "after {ops} changes: {texts:?}");
        }
    }
}

#[test]
fn a_full_disk_is_waited_out() {
    let fs = MemFs::new();
    let wal = open(&fs);
    append(&wal, "one").unwrap();
    fs.set_free(5);
    assert!(append(&wal, "two").unwrap_err().is_full_disk());
    assert!(append(&wal, "three").unwrap_err().is_full_disk());
    fs.set_free(1 << 20);
    append(&wal, "four").unwrap();
    wal.close().unwrap();
    assert_eq!(read(&fs).0, ["one", "two", "three", "four"]);
    assert_eq!(wal.counters().lost.load(Ordering::Relaxed), 0);
}

#[test]
fn a_disk_full_for_too_long_costs_records_and_breaks_the_chain() {
    let fs = MemFs::new();
    let wal = open(&fs);
    let chain = wal.lock().chain();
    fs.set_free(0);
    for i in 0..100 {
        assert!(append(&wal, &word(i)).is_err());
    }
    assert!(wal.lock().chain() > chain);
    assert!(wal.counters().lost.load(Ordering::Relaxed) > 0);
    fs.set_free(1 << 20);
    append(&wal, "on").unwrap();
    let texts = read(&fs).0;
    assert_eq!(texts.first(), Some(&word(0)));
    assert_eq!(texts.last().map(String::as_str), Some("on"));
}

/// Removes or empties segment `number` of ten and more, and tells what replay finds twice.
#[track_caller]
fn check_loss(number: u64, damage: impl Fn(&MemFs, &Path), damaged: usize, missing: &[(u64, u64)]) {
    let (fs, words) = filled(100);
    damage(&fs, &segment_path(Path::new(DIR), number));
    let (texts, replayed) = read(&fs);
    assert!(texts.len() < words.len());
    assert_eq!(texts.last(), words.last(), "the segments after it are read");
    assert_eq!((replayed.damaged.len(), &replayed.missing[..]), (damaged, missing));
    let (again, replayed) = read(&fs);
    assert_eq!(again, texts);
    assert_eq!((replayed.damaged.len(), &replayed.missing[..]), (0, missing));
}

#[test]
fn a_segment_that_is_missing_or_emptied_is_told() {
    let remove = |fs: &MemFs, path: &Path| fs.remove_file(path).unwrap();
    let empty = |fs: &MemFs, path: &Path| fs.edit(path, Vec::clear).unwrap();
    check_loss(2, remove, 0, &[(2, 2)]);
    check_loss(0, remove, 0, &[(0, 0)]);
    check_loss(2, empty, 1, &[]);
    check_loss(0, empty, 1, &[]);
}

#[test]
fn a_segment_missing_right_after_a_checkpoint_is_told() {
    let (fs, _) = filled(12);
    let wal = open(&fs);
    append(&wal, "before").unwrap();
    wal.checkpoint(|w| w.push(2, |out| out.extend_from_slice(b"state")))
        .unwrap();
    append(&wal, "after").unwrap();
    wal.close().unwrap();
    assert_eq!(read(&fs).1.missing, []);
    let first = segments(&fs, Path::new(DIR)).unwrap()[0];
    fs.remove_file(&segment_path(Path::new(DIR), first)).unwrap();
    assert_eq!(read(&fs).1.missing, [(first, first)]);
}

#[test]
fn starts_without_a_sample_leave_no_empty_segment_behind() {
    let (fs, words) = filled(3);
    for _ in 0..3 {
        let wal = open(&fs);
        let upto = wal.checkpoint(|_| Err(Error::damaged(Path::new(DIR), 0, "no checkpoint this time")));
        assert!(upto.is_err());
        wal.close().unwrap();
    }
    let wal = open(&fs);
    append(&wal, "more").unwrap();
    wal.close().unwrap();
    let (texts, replayed) = read(&fs);
    assert_eq!(texts.len(), words.len() + 1);
    assert_eq!((replayed.damaged, replayed.missing), (vec![], vec![]));
}

/// Gathers what is logged by this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            lock(&self.0).push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_full_disk_is_logged_once_when_it_begins_and_once_when_it_is_over() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let fs = MemFs::new();
        let wal = open(&fs);
        append(&wal, "one").unwrap();
        for _ in 0..2 {
            fs.set_free(0);
            for i in 0..100 {
                append(&wal, &word(i)).unwrap_err();
            }
            fs.set_free(1 << 20);
            append(&wal, "on").unwrap();
            append(&wal, "and on").unwrap();
        }
        wal.close().unwrap();
    });
    let told = lock(&log.0);
    let about = |what: &str| told.iter().filter(|m| m.contains(what)).cloned().collect::<Vec<_>>();
    let (failed, works) = (about("cannot be written"), about("can be written"));
    assert_eq!((failed.len(), works.len()), (2, 2), "{told:?}");
    assert!(failed[0].contains("wal/00000000.seg"), "{failed:?}");
    assert!(
        !works[0].contains(" 0 bytes") && !works[0].contains(" 0 appends"),
        "{works:?}"
    );
}
