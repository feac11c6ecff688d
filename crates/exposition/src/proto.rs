//! The protobuf format: a stream of `io.prometheus.client.MetricFamily`, each with its length before it.
//!
//! What is read is handed on in the shape of the text formats: a series is written into a buffer as OpenMetrics
//! would write it, so that whoever knows a series by its text knows it here too. Bounds and quantiles have the form
//! of OpenMetrics (`1.0`), as they have in the field's stores.
//!
//! Native histograms come as [`Item::Histogram`]; their classic form only where it is wanted too, or where there is
//! no native one.

use std::borrow::Cow;
use std::sync::Arc;

use model::histogram::Histogram;
use model::{Kind, Millis};

use crate::error::{Cause, Error};
use crate::native::Native;
use crate::reader::{Entry, Exemplar, Sample};
use crate::series::Series;
use crate::wire::{Field, Wire, WireError};
use crate::write::{escape_label, put_openmetrics_float};

/// Which forms of a histogram are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histograms {
    /// The native form, where there is one.
    pub native: bool,
    /// The classic form also where there is a native one.
    pub always_classic: bool,
}

/// What a family holds.
#[derive(Debug)]
pub enum Item<'a> {
    /// Help, type or unit of the family.
    Note(Entry<'a>),
    /// A value, and when its counter began.
    Sample(Sample<'a>, Option<Millis>),
    /// A native histogram.
    Histogram(NativeSample<'a>),
}

/// A native histogram of a series.
#[derive(Debug)]
pub struct NativeSample<'a> {
    /// Name and labels, as the text formats write them.
    pub series: Series<'a>,
    /// The distribution.
    pub histogram: Arc<Histogram>,
    /// The target's own timestamp, in milliseconds; mostly absent.
    pub time: Option<Millis>,
    /// When counting began, in milliseconds.
    pub created: Option<Millis>,
    /// Examples: braces as the text formats write them, value and time.
    pub exemplars: Vec<OwnedExemplar>,
}

/// An example with its labels written as in the text formats.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedExemplar {
    braces: String,
    value: f64,
    time: Option<Millis>,
}

impl OwnedExemplar {
    /// The example in the shape that the text formats have.
    #[must_use]
    pub const fn borrowed(&self) -> Exemplar<'_> {
        Exemplar::new(self.braces.as_bytes(), self.value, self.time)
    }
}

/// Reads a page and hands each of its items to `visit`, which may refuse one.
///
/// # Errors
///
/// [`Error`] at the first family that is broken or refused; the page is then refused as a whole.
pub fn read_protobuf(
    page: &[u8],
    histograms: Histograms,
    visit: &mut dyn FnMut(&Item<'_>) -> Result<(), Cause>,
) -> Result<(), Error> {
    let mut stream = Wire::new(page);
    let mut family = Family::new(histograms, visit);
    while !stream.is_done() {
        let start = stream.at();
        let message = stream.delimited().map_err(|e| broken(e.at, e))?;
        let began = stream.at() - message.len();
        family.read(message).map_err(|fault| match fault {
            Fault::Wire(e) => broken(began + e.at, e),
            Fault::Cause(cause) => Error::in_bytes(start, cause),
        })?;
    }
    Ok(())
}

fn broken(at: usize, error: WireError) -> Error {
    Error::in_bytes(at, Cause::Protobuf(error.what))
}

enum Fault {
    Wire(WireError),
    Cause(Cause),
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<Cause> for Fault {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

type Visit<'v> = dyn FnMut(&Item<'_>) -> Result<(), Cause> + 'v;

/// The family being read, and buffers that outlive it.
struct Family<'v> {
    histograms: Histograms,
    visit: &'v mut Visit<'v>,
    name: String,
    kind: Kind,
    /// The metric's labels as written between braces.
    labels: String,
    /// A whole series.
    text: String,
    time: Option<Millis>,
}

impl<'v> Family<'v> {
    fn new<'a: 'v>(histograms: Histograms, visit: &'v mut (dyn FnMut(&Item<'_>) -> Result<(), Cause> + 'a)) -> Self {
        Self {
            histograms,
            visit,
            name: String::new(),
            kind: Kind::Unknown,
            labels: String::new(),
            text: String::new(),
            time: None,
        }
    }

    fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        let (mut help, mut unit) = ("", "");
        self.name.clear();
        self.kind = Kind::Counter;
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            match number {
                1 => self.name.push_str(text(field)?),
                2 => help = text(field)?,
                3 => self.kind = kind(field.unsigned()),
                5 => unit = text(field)?,
                _ => {}
            }
        }
        if self.name.is_empty() {
            return Err(Cause::NameMissing.into());
        }
        self.notes(help, unit)?;
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            if number == 4 {
                self.metric(field.bytes())?;
            }
        }
        Ok(())
    }

    fn notes(&mut self, help: &str, unit: &str) -> Result<(), Cause> {
        let name = Cow::Borrowed(self.name.as_str());
        (self.visit)(&Item::Note(Entry::Type {
            name: name.clone(),
            kind: self.kind,
        }))?;
        if !help.is_empty() {
            (self.visit)(&Item::Note(Entry::Help {
                name: name.clone(),
                help: Cow::Borrowed(help),
            }))?;
        }
        if !unit.is_empty() {
            (self.visit)(&Item::Note(Entry::Unit {
                name,
                unit: Cow::Borrowed(unit),
            }))?;
        }
        Ok(())
    }

    fn metric(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.labels.clear();
        self.time = None;
        let mut value = None;
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            match number {
                1 => put_pair(&mut self.labels, field.bytes())?,
                6 => self.time = Some(field.signed()),
                2..=5 | 7 => value = Some((number, field.bytes())),
                _ => {}
            }
        }
        match value {
            None => Err(Cause::Rule(format!("a metric of {} has no value", self.name)).into()),
            Some((4, summary)) => self.summary(summary),
            Some((7, histogram)) => self.histogram(histogram),
            Some((3, counter)) => self.counter(counter),
            Some((_, plain)) => {
                let mut value = 0.0;
                let mut fields = Wire::new(plain);
                while let Some((number, field)) = fields.field()? {
                    if number == 1 {
                        value = field.double();
                    }
                }
                self.sample("", None, value, None, None)
            }
        }
    }

    fn counter(&mut self, message: &[u8]) -> Result<(), Fault> {
        let (mut value, mut example, mut created) = (0.0, None, None);
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            match number {
                1 => value = field.double(),
                2 => example = exemplar(field.bytes())?,
                3 => created = timestamp(field.bytes())?,
                _ => {}
            }
        }
        self.sample("", None, value, example.as_ref(), created)
    }

    fn summary(&mut self, message: &[u8]) -> Result<(), Fault> {
        let (mut count, mut sum, mut created) = (0_u64, 0.0, None);
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            match number {
                1 => count = field.unsigned(),
                2 => sum = field.double(),
                4 => created = timestamp(field.bytes())?,
                _ => {}
            }
        }
        self.sample("_count", None, float(count), None, created)?;
        self.sample("_sum", None, sum, None, created)?;
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            if number == 3 {
                let (mut quantile, mut value) = (0.0, 0.0);
                let mut fields = Wire::new(field.bytes());
                while let Some((number, field)) = fields.field()? {
                    match number {
                        1 => quantile = field.double(),
                        2 => value = field.double(),
                        _ => {}
                    }
                }
                self.sample("", Some(("quantile", quantile)), value, None, None)?;
            }
        }
        Ok(())
    }

    fn histogram(&mut self, message: &[u8]) -> Result<(), Fault> {
        let (mut count, mut count_float, mut sum, mut created) = (0_u64, None, 0.0, None);
        let mut native = Native::default();
        let mut examples = Vec::new();
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            match number {
                1 => count = field.unsigned(),
                2 => sum = field.double(),
                4 => count_float = Some(field.double()),
                15 => created = timestamp(field.bytes())?,
                16 => examples.extend(exemplar(field.bytes())?),
                _ => native.take(number, field)?,
            }
        }
        let count = count_float.filter(|c| *c > 0.0).unwrap_or_else(|| float(count));
        let is_native = self.histograms.native && native.is_there();
        if is_native {
            self.native(native, (count, sum), created, examples, message)?;
        }
        if is_native && !self.histograms.always_classic {
            return Ok(());
        }
        self.classic(message, count, sum, created)
    }

    fn native(
        &mut self,
        native: Native,
        (count, sum): (f64, f64),
        created: Option<Millis>,
        mut exemplars: Vec<OwnedExemplar>,
        message: &[u8],
    ) -> Result<(), Fault> {
        let gauge = self.kind == Kind::GaugeHistogram;
        let histogram = native.finish(count, sum, gauge).map_err(Cause::Rule)?;
        if exemplars.is_empty() && !self.histograms.always_classic {
            // Older clients tell the examples of a native histogram beside its classic buckets only.
            let mut fields = Wire::new(message);
            while let Some((number, field)) = fields.field()? {
                if number == 3 {
                    exemplars.extend(bucket(field.bytes())?.2);
                }
            }
        }
        self.write_series("", None);
        let sample = NativeSample {
            series: Series::new(self.text.as_bytes()),
            histogram: Arc::new(histogram),
            time: self.time,
            created,
            exemplars,
        };
        (self.visit)(&Item::Histogram(sample))?;
        Ok(())
    }

    fn classic(&mut self, message: &[u8], count: f64, sum: f64, created: Option<Millis>) -> Result<(), Fault> {
        self.sample("_count", None, count, None, created)?;
        self.sample("_sum", None, sum, None, created)?;
        let mut infinite = false;
        let mut fields = Wire::new(message);
        while let Some((number, field)) = fields.field()? {
            if number == 3 {
                let (bound, held, example) = bucket(field.bytes())?;
                infinite |= bound == f64::INFINITY;
                self.sample("_bucket", Some(("le", bound)), held, example.as_ref(), created)?;
            }
        }
        if !infinite {
            self.sample("_bucket", Some(("le", f64::INFINITY)), count, None, created)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        suffix: &str,
        extra: Option<(&str, f64)>,
        value: f64,
        example: Option<&OwnedExemplar>,
        created: Option<Millis>,
    ) -> Result<(), Fault> {
        self.write_series(suffix, extra);
        let sample = Sample {
            series: Series::new(self.text.as_bytes()),
            // No page may forge a staleness marker.
            value: if value.is_nan() { f64::NAN } else { value },
            time: self.time,
            exemplar: example.map(OwnedExemplar::borrowed),
        };
        (self.visit)(&Item::Sample(sample, created))?;
        Ok(())
    }

    /// Writes the series into the buffer: `name{a="b",le="1.0"}`.
    fn write_series(&mut self, suffix: &str, extra: Option<(&str, f64)>) {
        let out = &mut self.text;
        out.clear();
        let legacy = model::labels::is_legacy_metric_name(&self.name);
        if legacy {
            out.push_str(&self.name);
            out.push_str(suffix);
            if self.labels.is_empty() && extra.is_none() {
                return;
            }
            out.push('{');
        } else {
            out.push_str("{\"");
            escape_label(&self.name, out);
            out.push_str(suffix);
            out.push('"');
            if !self.labels.is_empty() || extra.is_some() {
                out.push(',');
            }
        }
        out.push_str(&self.labels);
        if let Some((name, value)) = extra {
            if !self.labels.is_empty() {
                out.push(',');
            }
            out.push_str(name);
            out.push_str("=\"");
            put_openmetrics_float(value, out);
            out.push('"');
        }
        out.push('}');
    }
}

const fn kind(number: u64) -> Kind {
    match number {
        0 => Kind::Counter,
        1 => Kind::Gauge,
        2 => Kind::Summary,
        4 => Kind::Histogram,
        5 => Kind::GaugeHistogram,
        _ => Kind::Unknown,
    }
}

fn text(field: Field<'_>) -> Result<&str, Cause> {
    field.text().ok_or(Cause::Utf8)
}

#[expect(clippy::cast_precision_loss, reason = "counts are floats in every store")]
const fn float(count: u64) -> f64 {
    count as f64
}

/// Adds `name="value"` to labels.
fn put_pair(out: &mut String, message: &[u8]) -> Result<(), Fault> {
    let (mut name, mut value) = ("", "");
    let mut fields = Wire::new(message);
    while let Some((number, field)) = fields.field()? {
        match number {
            1 => name = text(field)?,
            2 => value = text(field)?,
            _ => {}
        }
    }
    if name.is_empty() {
        return Err(Cause::Rule("a label has no name".to_owned()).into());
    }
    if !out.is_empty() {
        out.push(',');
    }
    if model::labels::is_legacy_label_name(name) {
        out.push_str(name);
    } else {
        out.push('"');
        escape_label(name, out);
        out.push('"');
    }
    out.push_str("=\"");
    escape_label(value, out);
    out.push('"');
    Ok(())
}

/// Bound, count and example of a classic bucket.
fn bucket(message: &[u8]) -> Result<(f64, f64, Option<OwnedExemplar>), Fault> {
    let (mut bound, mut count, mut example) = (0.0, 0.0, None);
    let mut fields = Wire::new(message);
    while let Some((number, field)) = fields.field()? {
        match number {
            1 if count == 0.0 => count = float(field.unsigned()),
            2 => bound = field.double(),
            3 => example = exemplar(field.bytes())?,
            4 => count = field.double(),
            _ => {}
        }
    }
    Ok((bound, count, example))
}

fn exemplar(message: &[u8]) -> Result<Option<OwnedExemplar>, Fault> {
    let (mut labels, mut value, mut time) = (String::from("{"), 0.0, None);
    let mut pairs = String::new();
    let mut fields = Wire::new(message);
    while let Some((number, field)) = fields.field()? {
        match number {
            1 => put_pair(&mut pairs, field.bytes())?,
            2 => value = field.double(),
            3 => time = timestamp(field.bytes())?,
            _ => {}
        }
    }
    labels.push_str(&pairs);
    labels.push('}');
    Ok(Some(OwnedExemplar {
        braces: labels,
        value,
        time,
    }))
}

/// `google.protobuf.Timestamp`, in milliseconds; `None` beyond what they can count.
fn timestamp(message: &[u8]) -> Result<Option<Millis>, Fault> {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    let mut fields = Wire::new(message);
    while let Some((number, field)) = fields.field()? {
        match number {
            1 => seconds = field.signed(),
            2 => nanos = field.signed(),
            _ => {}
        }
    }
    Ok(seconds
        .checked_mul(1000)
        .and_then(|ms| ms.checked_add(nanos / 1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{put_bytes, put_double, put_varint, put_zigzag};

    fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    fn label(name: &str, value: &str) -> Vec<u8> {
        message(|out| {
            put_bytes(out, 1, name.as_bytes());
            put_bytes(out, 2, value.as_bytes());
        })
    }

    fn page(name: &str, kind: u64, metric: &[u8]) -> Vec<u8> {
        let family = message(|out| {
            put_bytes(out, 1, name.as_bytes());
            put_bytes(out, 2, b"Help.");
            put_varint(out, 3, kind);
            put_bytes(out, 4, metric);
        });
        message(|out| {
            crate::wire::put_raw_varint(out, family.len() as u64);
            out.extend_from_slice(&family);
        })
    }

    fn items(page: &[u8], histograms: Histograms) -> Vec<String> {
        let mut got = Vec::new();
        let read = read_protobuf(page, histograms, &mut |item| {
            got.push(match item {
                Item::Note(_) => return Ok(()),
                Item::Sample(s, created) => {
                    let created = created.map_or_else(String::new, |t| format!(" since {t}"));
                    let example = s
                        .exemplar
                        .map_or_else(String::new, |e| format!(" # {} {} {:?}", e.labels(), e.value, e.time));
                    format!(
                        "{} {}{created}{example}",
                        String::from_utf8_lossy(s.series.text()),
                        s.value
                    )
                }
                Item::Histogram(h) => format!(
                    "{} {} {:?} since {:?}, {} examples",
                    String::from_utf8_lossy(h.series.text()),
                    h.histogram.count,
                    h.histogram.positive_buckets,
                    h.created,
                    h.exemplars.len()
                ),
            });
            Ok(())
        });
        if let Err(error) = read {
            got.push(error.to_string());
        }
        got
    }

    fn histogram() -> Vec<u8> {
        let example = message(|out| {
            put_bytes(out, 1, &label("trace_id", "x"));
            put_double(out, 2, 0.75);
        });
        let inner = message(|out| {
            put_varint(out, 1, 6);
            put_double(out, 2, 4.5);
            put_bytes(
                out,
                3,
                &message(|out| {
                    put_varint(out, 1, 4);
                    put_double(out, 2, 1.0);
                    put_bytes(out, 3, &example);
                }),
            );
            put_zigzag(out, 5, 3);
            put_bytes(
                out,
                12,
                &message(|out| {
                    put_zigzag(out, 1, -2);
                    put_varint(out, 2, 2);
                }),
            );
            // Two and four observations.
            put_bytes(out, 13, &[4, 4]);
            put_bytes(out, 15, &message(|out| put_varint(out, 1, 9)));
        });
        message(|out| {
            put_bytes(out, 1, &label("a", "b\"c"));
            put_bytes(out, 7, &inner);
        })
    }

    #[test]
    fn a_counter_tells_when_it_began_and_an_example() {
        let counter = message(|out| {
            put_double(out, 1, 7.0);
            put_bytes(
                out,
                2,
                &message(|out| {
                    put_bytes(out, 1, &label("trace_id", "x"));
                    put_double(out, 2, 0.5);
                    put_bytes(out, 3, &message(|out| put_varint(out, 1, 2)));
                }),
            );
            put_bytes(
                out,
                3,
                &message(|out| {
                    put_varint(out, 1, 1);
                    put_varint(out, 2, 500_000_000);
                }),
            );
        });
        let metric = message(|out| put_bytes(out, 3, &counter));
        assert_eq!(
            items(&page("n_total", 0, &metric), Histograms::default()),
            ["n_total 7 since 1500 # {trace_id=\"x\"} 0.5 Some(2000)"]
        );
        assert_eq!(
            items(&page("n.total", 0, &metric), Histograms::default()),
            ["{\"n.total\"} 7 since 1500 # {trace_id=\"x\"} 0.5 Some(2000)"]
        );
    }

    #[test]
    fn a_histogram_comes_in_the_forms_that_are_wanted() {
        let page = page("h", 4, &histogram());
        let classic = [
            "h_count{a=\"b\\\"c\"} 6 since 9000",
            "h_sum{a=\"b\\\"c\"} 4.5 since 9000",
            "h_bucket{a=\"b\\\"c\",le=\"1.0\"} 4 since 9000 # {trace_id=\"x\"} 0.75 None",
            "h_bucket{a=\"b\\\"c\",le=\"+Inf\"} 6 since 9000",
        ];
        let native = "h{a=\"b\\\"c\"} 6 [2.0, 4.0] since Some(9000), 1 examples";
        assert_eq!(items(&page, Histograms::default()), classic);
        let only = Histograms {
            native: true,
            always_classic: false,
        };
        assert_eq!(items(&page, only), [native]);
        let both = Histograms {
            native: true,
            always_classic: true,
        };
        let got = items(&page, both);
        assert!(got[0].starts_with("h{a=\"b\\\"c\"} 6 [2.0, 4.0]"), "{got:?}");
        assert_eq!(got[1..], classic);
    }

    #[test]
    fn a_broken_page_names_the_byte() {
        let page = page("h", 4, &histogram());
        let got = items(&page[..page.len() - 1], Histograms::default());
        assert_eq!(got, ["byte 1: a length beyond the message's end"]);
    }
}
