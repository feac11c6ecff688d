//! Writes the ring: each beat is in the kernel's hands before the next.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

use super::SPAN_MS;
use super::record::{HEAD, RECORD, Record, head, slots, uuid_bits};
use crate::gpu::sample::Sample;

/// GPUs are counted in steps of this many, so that one more does not move the file.
const GPUS_STEP: u64 = 8;

/// A ring for more GPUs, or for quicker samples, than this many records hold covers a shorter time: 61 MB.
const SLOTS_MAX: u64 = 1_000_000;

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The file cannot be made, read or written.
    #[error("cannot keep the ring of GPU samples in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process writes it.
    #[error("the ring of GPU samples {} belongs to another running process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// The file, open for writing; nobody else writes it.
pub struct RingWriter {
    path: PathBuf,
    file: File,
    slots: u64,
    /// Of the next record.
    next: u64,
    buffer: Vec<u8>,
}

impl RingWriter {
    /// Opens or makes the file for this many GPUs and this interval. Records of a smaller or damaged file are carried over
    /// as far as they are whole.
    ///
    /// # Errors
    ///
    /// [`RingError`]; there is no ring then, and everything else works.
    pub fn open(path: &Path, gpus: u32, interval_ms: u32) -> Result<Self, RingError> {
        let want = slots_for(gpus, interval_ms);
        let failed = |source| RingError::File {
            path: path.to_owned(),
            source,
        };
        let file = create(path).map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(RingError::InUse { path: path.to_owned() });
        }
        let have = slots_of(&file);
        let mut ring = Self {
            path: path.to_owned(),
            file,
            slots: have.unwrap_or(0),
            next: 1,
            buffer: Vec::new(),
        };
        let mut newest = 0;
        each_record(&ring.file, ring.slots, |record| newest = newest.max(record.sequence)).map_err(failed)?;
        ring.next = newest + 1;
        if have == Some(want) {
            return Ok(ring);
        }
        let kept = ring.newest_first(want).map_err(failed)?;
        ring.slots = want;
        ring.begin_anew(&kept).map_err(failed)?;
        Ok(ring)
    }

    /// Appends the samples of one beat, over the oldest. `name` gives the UUID of a GPU.
    ///
    /// # Errors
    ///
    /// [`RingError::File`]; the next beat tries again.
    pub fn write<'a>(&mut self, samples: &[Sample], name: impl Fn(u16) -> &'a str) -> Result<(), RingError> {
        let mut records = Vec::with_capacity(samples.len());
        for (sequence, sample) in (self.next..).zip(samples) {
            let uuid = uuid_bits(name(sample.gpu));
            records.push(Record {
                sequence,
                uuid,
                sample: *sample,
            });
        }
        self.put(&records).map_err(|source| RingError::File {
            path: self.path.clone(),
            source,
        })?;
        self.next += u64::try_from(samples.len()).unwrap_or(0);
        Ok(())
    }

    /// Records that follow one another, in one write, or two where they pass the file's end.
    fn put(&mut self, records: &[Record]) -> io::Result<()> {
        let mut rest = records;
        while let Some(first) = rest.first() {
            let slot = first.sequence % self.slots;
            let room = usize::try_from(self.slots - slot).unwrap_or(usize::MAX);
            let (run, later) = rest.split_at(rest.len().min(room));
            self.buffer.clear();
            run.iter().for_each(|record| self.buffer.extend(record.bytes()));
            self.file.write_all_at(&self.buffer, offset(slot))?;
            rest = later;
        }
        Ok(())
    }

    /// Up to `max` whole records of the file, the newest first.
    fn newest_first(&self, max: u64) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        each_record(&self.file, self.slots, |record| records.push(record))?;
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.sequence));
        records.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        Ok(records)
    }

    /// Makes the file what it should be. Cut short by a kill, it is taken for a new one.
    fn begin_anew(&mut self, kept: &[Record]) -> io::Result<()> {
        self.file.set_len(0)?;
        let bytes = offset(self.slots);
        // Room that is taken now cannot be missing later; a file system without this has to grow.
        if fallocate(&self.file, FallocateFlags::empty(), 0, bytes).is_err() {
            self.file.set_len(bytes)?;
        }
        let mut kept: Vec<Record> = kept.to_vec();
        kept.reverse();
        // What a damaged file held need not be without gaps: each goes to its own slot.
        for record in &kept {
            self.put(std::slice::from_ref(record))?;
        }
        self.file.write_all_at(&head(self.slots), 0)
    }
}

/// Calls `each` with every whole record, in the order of the file.
pub(super) fn each_record(file: &File, slots: u64, mut each: impl FnMut(Record)) -> io::Result<()> {
    const CHUNK: usize = RECORD * 1_024;
    let mut chunk = vec![0; CHUNK];
    let (mut at, end) = (offset(0), offset(slots));
    while at < end {
        let want = usize::try_from(end - at).map_or(CHUNK, |rest| rest.min(CHUNK));
        let got = match file.read_at(&mut chunk[..want], at) {
            Ok(0) => return Ok(()),
            Ok(got) => got - got % RECORD,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if got == 0 {
            return Ok(());
        }
        for bytes in chunk[..got].chunks_exact(RECORD) {
            if let Some(record) = bytes.try_into().ok().and_then(Record::read) {
                each(record);
            }
        }
        at += u64::try_from(got).unwrap_or(0);
    }
    Ok(())
}

/// How many records the file's head promises; `None` where it is none of ours.
pub(super) fn slots_of(file: &File) -> Option<u64> {
    let mut bytes = [0; 28];
    file.read_exact_at(&mut bytes, 0).ok()?;
    slots(&bytes).filter(|slots| (1..=SLOTS_MAX).contains(slots))
}

fn slots_for(gpus: u32, interval_ms: u32) -> u64 {
    let gpus = u64::from(gpus.max(1)).next_multiple_of(GPUS_STEP);
    let span = SPAN_MS.unsigned_abs();
    let beats = span.div_ceil(u64::from(interval_ms.max(1)));
    // Two beats more: the oldest is being overwritten while somebody reads.
    ((beats + 2) * gpus).min(SLOTS_MAX)
}

fn offset(slot: u64) -> u64 {
    let wide = |n: usize| u64::try_from(n).unwrap_or(0);
    wide(HEAD) + slot * wide(RECORD)
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::ring::{RingReader, Wanted};

    const UUID: &str = "GPU-00112233-4455-6677-8899-aabbccddeeff";

    fn beat(n: i64, gpus: u16) -> Vec<Sample> {
        let sample = |gpu| Sample {
            gpu,
            time: n * 1_000,
            power_mw: Some(u32::try_from(n).unwrap_or(0)),
            ..Sample::default()
        };
        (0..gpus).map(sample).collect()
    }

    fn write(ring: &mut RingWriter, beats: std::ops::Range<i64>) {
        for n in beats {
            ring.write(&beat(n, 8), |_| UUID).expect("written");
        }
    }

    /// First and last second of GPU 7 in the file, and how many there are.
    fn span(path: &Path) -> (f64, f64, usize) {
        let wanted = Wanted {
            from: 0,
            to: i64::MAX,
            gpus: Some(vec![7]),
            max: 100_000,
        };
        let history = RingReader::new(path).read(&wanted).expect("read");
        let column = &history.gpus[0];
        assert_eq!(column.uuid, UUID);
        let (first, last) = (column.time.first().copied(), column.time.last().copied());
        (first.unwrap_or(-1.0), last.unwrap_or(-1.0), column.time.len())
    }

    #[test]
    fn half_an_hour_stays_and_the_rest_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gpu-ring");
        let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
        let size = std::fs::metadata(&path).expect("a file").len();
        write(&mut ring, 0..4_000);
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), size);
        assert_eq!(size, 4_096 + 1_802 * 8 * 64);
        let (first, last, count) = span(&path);
        assert_eq!((last, count), (3_999.0, 1_802));
        assert!(first <= 3_999.0 - 1_800.0, "{first}");
    }

    #[test]
    fn a_restart_goes_on_and_a_second_writer_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gpu-ring");
        let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
        write(&mut ring, 0..10);
        assert!(matches!(
            RingWriter::open(&path, 8, 1_000),
            Err(RingError::InUse { .. })
        ));
        drop(ring);
        let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
        write(&mut ring, 10..20);
        assert_eq!(span(&path), (0.0, 19.0, 20));
    }

    #[test]
    fn a_ring_for_more_gpus_or_another_interval_keeps_what_it_had() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gpu-ring");
        let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
        write(&mut ring, 0..2_000);
        drop(ring);
        drop(RingWriter::open(&path, 16, 1_000).expect("a larger ring"));
        assert_eq!(span(&path), (198.0, 1_999.0, 1_802));
        let mut ring = RingWriter::open(&path, 8, 5_000).expect("a smaller ring");
        write(&mut ring, 2_000..2_001);
        let (_, last, count) = span(&path);
        assert_eq!((last, count), (2_000.0, 362));
    }

    #[test]
    fn a_torn_record_is_skipped_and_a_damaged_head_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gpu-ring");
        let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
        write(&mut ring, 0..5);
        drop(ring);
        let file = OpenOptions::new().write(true).open(&path).expect("the file");
        // GPU 7 of the second beat has sequence 16.
        file.write_all_at(b"torn", offset(16) + 40).expect("written");
        assert_eq!(span(&path), (0.0, 4.0, 4));
        file.write_all_at(b"not ours", 0).expect("written");
        drop(RingWriter::open(&path, 8, 1_000).expect("a ring"));
        let wanted = Wanted {
            from: 0,
            to: i64::MAX,
            gpus: None,
            max: 10,
        };
        assert!(RingReader::new(&path).read(&wanted).expect("read").gpus.is_empty());
    }

    #[test]
    fn whatever_the_file_holds_opening_it_gives_a_ring() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gpu-ring");
        for bytes in [&b""[..], b"x", &[0xff; 5_000], &head(u64::MAX), &head(3)] {
            std::fs::write(&path, bytes).expect("written");
            let mut ring = RingWriter::open(&path, 8, 1_000).expect("a ring");
            write(&mut ring, 0..3);
            drop(ring);
            assert_eq!(span(&path), (0.0, 2.0, 3));
        }
    }
}
