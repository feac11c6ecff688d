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
