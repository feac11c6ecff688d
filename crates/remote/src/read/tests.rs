use exposition::wire::{Field, put_varint};
use model::store::StoreError;

use super::*;

struct Series(Labels, Column);

impl StoredSeries for Series {
    fn labels(&self) -> &Labels {
        &self.0
    }

    fn read(&self, mint: Millis, maxt: Millis, into: &mut Column) -> Result<(), StoreError> {
        for sample in self.1.iter().filter(|s| (mint..=maxt).contains(&s.time)) {
            into.push(sample.time, sample.value);
        }
        Ok(())
    }
}

struct Store(Vec<Arc<dyn StoredSeries>>);

impl Queryable for Store {
    fn select(&self, matchers: &[Matcher], _: Millis, _: Millis) -> Result<Selection, StoreError> {
        let passes = |s: &&Arc<dyn StoredSeries>| matchers.iter().all(|m| m.matches_labels(s.labels()));
        Ok(Selection {
            series: self.0.iter().filter(passes).cloned().collect(),
            warnings: Vec::new(),
        })
    }

    fn label_names(&self, _: &[Matcher], _: Millis, _: Millis) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn label_values(&self, _: &str, _: &[Matcher], _: Millis, _: Millis) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

fn store() -> Store {
    let series = |job: &str, count: i64| {
        let labels = Labels::from_pairs([("__name__", "up"), ("job", job)]);
        let times: Vec<Millis> = (0..count).map(|i| i * 1000).collect();
        let values = times.iter().map(|t| *t as f64).collect();
        Arc::new(Series(labels, Column::of(times, values))) as Arc<dyn StoredSeries>
    };
    Store(vec![series("a", 3), series("b", 250)])
}

/// A request for `up` with another matcher, in `0..=end`.
fn request(name: &str, value: &str, end: Millis, accepted: &[u8]) -> Vec<u8> {
    let matcher = |kind: u64, name: &str, value: &str| {
        let mut out = Vec::new();
        put_varint(&mut out, 1, kind);
        put_bytes(&mut out, 2, name.as_bytes());
        put_bytes(&mut out, 3, value.as_bytes());
        out
    };
    let mut query = Vec::new();
    put_varint(&mut query, 2, end.cast_unsigned());
    put_bytes(&mut query, 3, &matcher(0, "__name__", "up"));
    put_bytes(&mut query, 3, &matcher(0, name, value));
    let mut out = Vec::new();
    put_bytes(&mut out, 1, &query);
    if !accepted.is_empty() {
        put_bytes(&mut out, 2, accepted);
    }
    pack(&out).expect("packed")
}

fn ask(body: &[u8], samples_max: usize) -> Result<Answer, Error> {
    let request = ReadRequest::read(body, &Limits::default())?;
    answer(&request, &store(), &Labels::from_pairs([("site", "here")]), samples_max)
}

#[test]
fn samples_come_with_the_external_labels() {
    let Answer::Samples(body) = ask(&request("site", "here", 1000, &[]), 1000).expect("an answer") else {
        panic!("samples were asked for");
    };
    let plain = snap::raw::Decoder::new().decompress_vec(&body).expect("snappy");
    let Ok(Some((1, Field::Bytes(result)))) = Wire::new(&plain).field() else {
        panic!("one result");
    };
    let mut wire = Wire::new(result);
    let mut texts = Vec::new();
    while let Some((_, field)) = wire.field().expect("whole") {
        let mut series = Wire::new(field.bytes());
        let mut counts = [0; 5];
        while let Some((number, _)) = series.field().expect("whole") {
            counts[number as usize] += 1;
        }
        texts.push((counts[1], counts[2]));
    }
    assert_eq!(texts, [(3, 2), (3, 2)], "name, job and site; two samples each");
    let error = ask(&request("site", "here", 300_000, &[]), 10).err().expect("refused");
    assert!(error.to_string().contains("exceeded sample limit (10)"), "{error}");
    let error = ReadRequest::read(&request("a", "b", 0, &[])[..9], &Limits::default());
    assert!(error.is_err());
}

#[test]
fn a_stream_holds_chunks_in_checked_frames() {
    let Answer::Stream(mut stream) = ask(&request("job", "b", 300_000, &[1, 0]), 10).expect("an answer") else {
        panic!("a stream was asked for");
    };
    let frame = stream.next_frame().expect("read").expect("one");
    let mut wire = Wire::new(&frame);
    let length = usize::try_from(wire.varint().expect("a length")).expect("small");
    let head = wire.at();
    let message = &frame[head + 4..];
    assert_eq!(message.len(), length);
    assert_eq!(frame[head..head + 4], crc32c::crc32c(message).to_be_bytes());
    let Ok(Some((1, series))) = Wire::new(message).field() else {
        panic!("a series");
    };
    let mut chunks = Vec::new();
    let mut wire = Wire::new(series.bytes());
    while let Some((number, field)) = wire.field().expect("whole") {
        if number == 2 {
            let mut ends = (0, 0);
            let mut chunk = Wire::new(field.bytes());
            while let Some((number, field)) = chunk.field().expect("whole") {
                match number {
                    1 => ends.0 = field.signed(),
                    2 => ends.1 = field.signed(),
                    _ => {}
                }
            }
            chunks.push(ends);
        }
    }
    assert_eq!(chunks, [(0, 119_000), (120_000, 239_000), (240_000, 249_000)]);
    assert!(stream.next_frame().expect("read").is_none());
}
