use std::fs::{self, File};
use std::io::Write as _;

use super::*;

const SOON: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

#[track_caller]
fn check(bytes: &[u8], want: &str) {
    let got = Record::parse(bytes).map_or_else(
        || "none".to_owned(),
        |r| {
            let Record {
                level,
                facility,
                sequence,
                micros,
                is_fragment,
                text,
                fields,
                ..
            } = r;
            format!("{level} {facility} {sequence} {micros} {is_fragment} {text:?} {fields:?}")
        },
    );
    assert_eq!(got, want, "{}", String::from_utf8_lossy(bytes));
}

#[test]
fn a_record_has_priority_sequence_time_and_text() {
    check(
        b"6,339,5140900,-;NET: one; two\n",
        r#"6 0 339 5140900 false "NET: one; two" []"#,
    );
    check(b"30,1,2,c,caller=T1;x", r#"6 3 1 2 true "x" []"#);
    check(b"4,7,8,-;\n", r#"4 0 7 8 false "" []"#);
}

#[test]
fn continuation_lines_are_fields() {
    check(
        b"3,1,2,-;pci gone\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n",
        r#"3 0 1 2 false "pci gone" [("SUBSYSTEM", "pci"), ("DEVICE", "+pci:0000:3b:00.0")]"#,
    );
}

#[test]
fn escapes_are_undone_and_bad_bytes_replaced() {
    check(
        br"6,1,2,-;a\x0ab\x5cn \xzz \x",
        r#"6 0 1 2 false "a\nb\\n \\xzz \\x" []"#,
    );
    check(b"6,1,2,-;caf\\xc3\\xa9 \xff", "6 0 1 2 false \"caf\u{e9} \u{fffd}\" []");
}

#[test]
fn other_forms_are_no_record() {
    for bytes in [
        &b""[..],
        b"text",
        b"6,1;x",
        b"a,b,c,-;x",
        b"6,1,2;x",
        b" KEY=value",
        b"-1,1,1,-;x",
    ] {
        check(bytes, "none");
    }
}

struct Case {
    folder: tempfile::TempDir,
    stop: Stop,
}

impl Case {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Self {
            folder,
            stop: Stop::new().expect("a handle"),
        };
        fs::write(case.path(), content).expect("a file");
        case
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("kmsg")
    }

    fn open(&self, start: Start) -> Kmsg {
        Kmsg::open(&self.path(), start, Boot::At(1_000_000)).expect("a reader")
    }

    fn add(&self, content: &str) {
        let mut file = File::options().append(true).open(self.path()).expect("the file");
        file.write_all(content.as_bytes()).expect("room on the disk");
    }

    /// Everything that is there now, shortened.
    fn drain(&self, reader: &mut Kmsg) -> Vec<String> {
        let next = || reader.next(SOON, &self.stop).expect("a file can be read");
        std::iter::from_fn(next)
            .map(|item| match item {
                Item::Record(record) => format!("{}@{} {}", record.sequence, record.time, record.text),
                Item::Lost(count) => format!("lost {count}"),
            })
            .collect()
    }
}

#[test]
fn a_file_is_replayed_and_followed_and_gaps_are_told() {
    let case = Case::new("6,1,1000000,-;one\n6,2,2000000,-;two\n K=v\n");
    let mut reader = case.open(Start::Beginning);
    assert_eq!(case.drain(&mut reader), ["1@1001000 one", "2@1002000 two"]);
    case.add("6,5,3000000,-;fi");
    assert!(case.drain(&mut reader).is_empty(), "half a line is not a record yet");
    case.add("ve\n6,6,3000001,-;six\n");
    assert_eq!(case.drain(&mut reader), ["lost 2", "5@1003000 five", "6@1003000 six"]);
    assert_eq!(reader.malformed(), 0);
}

#[test]
fn from_the_end_only_what_comes_is_read() {
    let case = Case::new("6,1,0,-;old\n");
    let mut reader = case.open(Start::End);
    assert!(case.drain(&mut reader).is_empty());
    case.add("6,2,0,-;new\n");
    assert_eq!(case.drain(&mut reader), ["2@1000000 new"]);
}

#[test]
fn a_sequence_that_starts_anew_is_no_loss() {
    let case = Case::new("6,900,0,-;a\n6,1,0,-;b\n6,2,0,-;c\n");
    let mut reader = case.open(Start::Beginning);
    assert_eq!(case.drain(&mut reader), ["900@1000000 a", "1@1000000 b", "2@1000000 c"]);
}

#[test]
fn malformed_and_overlong_lines_are_counted_and_the_next_is_read() {
    let long = "x".repeat(LINE_BYTES_MAX * 3);
    let case = Case::new(&format!("garbage\n\n6,1,0,-;{long}\n6,2,0,-;fine\n"));
    let mut reader = case.open(Start::Beginning);
    assert_eq!(case.drain(&mut reader), ["2@1000000 fine"]);
    assert_eq!(reader.malformed(), 2);
}

#[test]
fn a_pipe_outlives_its_writers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let stop = Stop::new().expect("a handle");
    let mut reader = Kmsg::open(&path, Start::End, Boot::OfMachine).expect("a reader");
    for n in 1..3 {
        let mut writer = File::options().write(true).open(&path).expect("a writer");
        writeln!(writer, "6,{n},0,-;hello").expect("a reader listens");
        drop(writer);
        let item = reader.next(LONG, &stop).expect("a pipe can be read");
        assert!(matches!(item, Some(Item::Record(r)) if r.sequence == n));
    }
    assert_eq!(reader.next(SOON, &stop).expect("a pipe can be read"), None);
}

#[test]
fn a_wait_ends_at_once_when_told_to_stop() {
    let case = Case::new("6,1,0,-;a\n6,2,0,-;b\n");
    let mut reader = case.open(Start::Beginning);
    case.stop.stop();
    let begun = Instant::now();
    assert_eq!(reader.next(LONG, &case.stop).expect("a file can be read"), None);
    assert!(begun.elapsed() < LONG / 2);
}

#[test]
fn a_missing_file_has_its_own_error() {
    let opened = Kmsg::open(Path::new("/no/such/kmsg"), Start::End, Boot::OfMachine);
    assert!(matches!(opened, Err(Error::Absent { .. })), "{opened:?}");
}
