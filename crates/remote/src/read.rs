//! Remote read: another Prometheus, or a tool of its kind, asks for raw samples.
//!
//! A request names ranges and matchers; the answer holds the series as they are stored, without aliases, staleness
//! markers included. Two forms: one snappy body of samples, or a stream of messages with chunks in Prometheus' own XOR
//! encoding, each series' chunks ready to be sent while the next is read.

use std::sync::Arc;

use exposition::wire::{Wire, put_bytes, put_double, put_varint};
use model::store::{Selection, StoredSeries};
use model::{Column, Labels, MatchOp, Matcher, Millis, Queryable};

use crate::body::{Limits, Scratch, pack};
use crate::error::Error;
use crate::write::histogram;

mod bits;
mod chunk;

pub use chunk::SAMPLES_PER_CHUNK;

/// Queries of one request, and matchers of one query.
const QUERIES_MAX: usize = 64;
const MATCHERS_MAX: usize = 256;

/// The size from which a message of the stream is sent, in bytes.
const FRAME_BYTES: usize = 1 << 20;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadRequest {
    /// The ranges and matchers.
    pub queries: Vec<ReadQuery>,
    /// Whether the asker takes a stream of chunks, and dearer than samples.
    pub streamed: bool,
}

/// A range and its matchers.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadQuery {
    /// From this moment on, in milliseconds.
    pub start: Millis,
    /// To this one.
    pub end: Millis,
    /// Which series.
    pub matchers: Vec<Matcher>,
}

impl ReadRequest {
    /// Reads a snappy body.
    ///
    /// # Errors
    ///
    /// [`Error`] when it is broken or larger than allowed.
    pub fn read(body: &[u8], limits: &Limits) -> Result<Self, Error> {
        let mut scratch = Scratch::default();
        Self::read_plain(scratch.unpack(body, limits)?)
    }

    /// As [`ReadRequest::read`], of a body that is unpacked already.
    ///
    /// # Errors
    ///
    /// [`Error`] when it is broken.
    pub fn read_plain(plain: &[u8]) -> Result<Self, Error> {
        let (mut queries, mut accepted) = (Vec::new(), Vec::new());
        let mut wire = Wire::new(plain);
        while let Some((number, field)) = wire.field()? {
            match number {
                1 if queries.len() >= QUERIES_MAX => {
                    return Err(Error::Broken(format!("more than {QUERIES_MAX} queries in one request")));
                }
                1 => queries.push(query(field.bytes())?),
                2 => exposition::wire::repeated_varint(field, |kind| {
                    if accepted.len() < 8 {
                        accepted.push(kind);
                    }
                })?,
                _ => {}
            }
        }
        // The first of the two known forms that the asker names is what it wants.
        let wanted = accepted.into_iter().find(|kind| *kind <= 1);
        Ok(Self {
            queries,
            streamed: wanted == Some(1),
        })
    }
}

fn query(message: &[u8]) -> Result<ReadQuery, Error> {
    let (mut start, mut end, mut matchers) = (0, 0, Vec::new());
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => start = field.signed(),
            2 => end = field.signed(),
            3 if matchers.len() >= MATCHERS_MAX => {
                return Err(Error::Broken(format!("more than {MATCHERS_MAX} matchers in one query")));
            }
            3 => matchers.push(matcher(field.bytes())?),
            _ => {}
        }
    }
    Ok(ReadQuery { start, end, matchers })
}

fn matcher(message: &[u8]) -> Result<Matcher, Error> {
    let (mut op, mut name, mut value) = (MatchOp::Equal, "", "");
    let text = |field: exposition::wire::Field<'_>| field.text().is_some();
    let mut wire = Wire::new(message);
    while let Some((number, field)) = wire.field()? {
        match number {
            1 => {
                op = match field.unsigned() {
                    0 => MatchOp::Equal,
                    1 => MatchOp::NotEqual,
                    2 => MatchOp::Regex,
                    3 => MatchOp::NotRegex,
                    other => return Err(Error::Broken(format!("matcher of unknown type {other}"))),
                }
            }
            2 | 3 if !text(field) => return Err(Error::Broken("a matcher is not valid UTF-8".to_owned())),
            2 => name = field.text().unwrap_or(""),
            3 => value = field.text().unwrap_or(""),
            _ => {}
        }
    }
    Matcher::new(op, name, value).map_err(|e| Error::Broken(e.to_string()))
}

/// The external labels of this server: added to what is answered, and taken out of what is asked.
fn without_external(query: &ReadQuery, external: &Labels) -> Vec<Matcher> {
    let ours = |m: &Matcher| m.op == MatchOp::Equal && external.get(&m.name) == Some(m.value.as_str());
    query.matchers.iter().filter(|m| !ours(m)).cloned().collect()
}

fn with_external(labels: &Labels, external: &Labels) -> Labels {
    let mut out = labels.clone();
    for (name, value) in external {
        if labels.get(name).is_none() {
            out = out.with(name, value);
        }
    }
    out
}

fn select(store: &dyn Queryable, query: &ReadQuery, external: &Labels) -> Result<Selection, Error> {
    let matchers = without_external(query, external);
    if matchers.iter().all(Matcher::matches_empty) {
        return Err(Error::Broken(
            "a query must have at least one matcher that does not match the empty text".to_owned(),
        ));
    }
    Ok(store.select(&matchers, query.start, query.end)?)
}

/// What is answered.
pub enum Answer {
    /// One snappy body of samples.
    Samples(Vec<u8>),
    /// Messages of a stream, to be made one after the other.
    Stream(Stream),
}

/// Answers a request. `samples_max` bounds what a body of samples may hold; a stream holds a message at a time.
///
/// # Errors
///
/// [`Error::Partial`] beyond the bound, [`Error::Store`] when the store cannot be read.
pub fn answer(
    request: &ReadRequest,
    store: &dyn Queryable,
    external: &Labels,
    samples_max: usize,
) -> Result<Answer, Error> {
    let mut found = Vec::new();
    for query in &request.queries {
        found.push(select(store, query, external)?.series);
    }
    if request.streamed && !has_histograms(request, &found)? {
        return Ok(Answer::Stream(Stream {
            ranges: request.queries.iter().map(|q| (q.start, q.end)).collect(),
            found,
            external: external.clone(),
            at: (0, 0),
            column: Column::default(),
        }));
    }
    samples(request, &found, external, samples_max).map(Answer::Samples)
}

/// Whether any series has native histograms: their chunks are not written, so such an answer goes as samples, which
/// every asker takes.
fn has_histograms(request: &ReadRequest, found: &[Vec<Arc<dyn StoredSeries>>]) -> Result<bool, Error> {
    let mut column = Column::default();
    for (query, series) in request.queries.iter().zip(found) {
        for series in series {
            column.clear();
            series.read(query.start, query.end, &mut column)?;
            if !column.histograms.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn samples(
    request: &ReadRequest,
    found: &[Vec<Arc<dyn StoredSeries>>],
    external: &Labels,
    samples_max: usize,
) -> Result<Vec<u8>, Error> {
    let (mut out, mut column, mut count) = (Vec::new(), Column::default(), 0);
    for (query, series) in request.queries.iter().zip(found) {
        let mut result = Vec::new();
        for series in series {
            column.clear();
            series.read(query.start, query.end, &mut column)?;
            count += column.len();
            if count > samples_max {
                return Err(Error::Partial(format!(
                    "exceeded sample limit ({samples_max}): ask for less, or for a stream of chunks"
                )));
            }
            if column.is_empty() {
                continue;
            }
            let message = time_series(&with_external(series.labels(), external), &column);
            put_bytes(&mut result, 1, &message);
        }
        put_bytes(&mut out, 1, &result);
    }
    pack(&out)
}

fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    let mut pair = Vec::with_capacity(64);
    for (name, value) in labels {
        pair.clear();
        put_bytes(&mut pair, 1, name.as_bytes());
        put_bytes(&mut pair, 2, value.as_bytes());
        put_bytes(out, 1, &pair);
    }
}

fn time_series(labels: &Labels, column: &Column) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + column.len() * 20);
    put_labels(&mut out, labels);
    let mut inner = Vec::with_capacity(24);
    for (i, sample) in column.iter().enumerate() {
        if let Some(Some(native)) = column.histograms.get(i) {
            put_bytes(&mut out, 4, &histogram::write(native, sample.time));
            continue;
        }
        inner.clear();
        put_double(&mut inner, 1, sample.value);
        put_varint(&mut inner, 2, sample.time.cast_unsigned());
        put_bytes(&mut out, 2, &inner);
    }
    out
}

/// The stream of chunks, message by message.
pub struct Stream {
    ranges: Vec<(Millis, Millis)>,
    found: Vec<Vec<Arc<dyn StoredSeries>>>,
    external: Labels,
    /// The query and the series that come next.
    at: (usize, usize),
    column: Column,
}

impl Stream {
    /// The next message in its frame: length, checksum, bytes; `None` at the end. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when a series cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut message = Vec::new();
        while self.at.0 < self.found.len() {
            let (query, series) = self.at;
            let Some(next) = self.found[query].get(series) else {
                if !message.is_empty() {
                    break;
                }
                self.at = (query + 1, 0);
                continue;
            };
            let (start, end) = self.ranges[query];
            self.column.clear();
            next.read(start, end, &mut self.column)?;
            if !self.column.is_empty() {
                let labels = with_external(next.labels(), &self.external);
                put_bytes(&mut message, 1, &chunked_series(&labels, &self.column));
            }
            self.at.1 += 1;
            if message.len() >= FRAME_BYTES {
                break;
            }
        }
        if message.is_empty() {
            return Ok(None);
        }
        put_varint(&mut message, 2, self.at.0 as u64);
        let mut frame = Vec::with_capacity(message.len() + 14);
        exposition::wire::put_raw_varint(&mut frame, message.len() as u64);
        frame.extend_from_slice(&crc32c::crc32c(&message).to_be_bytes());
        frame.extend_from_slice(&message);
        Ok(Some(frame))
    }
}

fn chunked_series(labels: &Labels, column: &Column) -> Vec<u8> {
    let mut out = Vec::new();
    put_labels(&mut out, labels);
    for start in (0..column.len()).step_by(SAMPLES_PER_CHUNK) {
        let end = (start + SAMPLES_PER_CHUNK).min(column.len());
        let (times, values) = (&column.times[start..end], &column.values[start..end]);
        let mut inner = Vec::new();
        put_varint(&mut inner, 1, times[0].cast_unsigned());
        put_varint(&mut inner, 2, times[times.len() - 1].cast_unsigned());
        // The XOR encoding of floats.
        put_varint(&mut inner, 3, 1);
        put_bytes(&mut inner, 4, &chunk::encode(times, values));
        put_bytes(&mut out, 2, &inner);
    }
    out
}

#[cfg(test)]
mod tests;
