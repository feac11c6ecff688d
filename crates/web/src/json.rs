//! Query results as JSON text, written straight into the answer: a range query may have a million points.

use std::fmt::Write as _;

use model::{Column, Histogram, Labels, Millis, QueryOutcome, Sample, Value};

/// The body of a successful query.
pub fn query_body(outcome: &QueryOutcome, stats: Option<&serde_json::Value>) -> String {
    let mut out = String::with_capacity(256 + 24 * points(&outcome.value));
    out.push_str(r#"{"status":"success","data":{"resultType":""#);
    out.push_str(outcome.value.type_name());
    out.push_str(r#"","result":"#);
    put_value(&mut out, &outcome.value);
    if let Some(stats) = stats {
        let _ = write!(out, r#","stats":{stats}"#);
    }
    out.push('}');
    put_texts(&mut out, "warnings", &outcome.warnings);
    put_texts(&mut out, "infos", &outcome.infos);
    out.push('}');
    out
}

/// `{"status":"success","data":…}` around data that is JSON already.
pub fn success(data: &str) -> String {
    format!(r#"{{"status":"success","data":{data}}}"#)
}

/// A list of label sets.
pub fn label_sets(sets: &[Labels]) -> String {
    put_list(sets, put_labels)
}

/// A list of texts.
pub fn texts(list: &[String]) -> String {
    put_list(list, |out, text| put_text(out, text))
}

fn put_list<T>(list: &[T], mut put: impl FnMut(&mut String, &T)) -> String {
    let mut out = String::from("[");
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put(&mut out, item);
    }
    out.push(']');
    out
}

fn points(value: &Value) -> usize {
    match value {
        Value::Scalar(_) | Value::Text(..) => 1,
        Value::Vector(samples) => samples.len() * 8,
        Value::Matrix(series) => series.iter().map(|(_, column)| column.len() + 8).sum(),
    }
}

fn put_value(out: &mut String, value: &Value) {
    match value {
        Value::Scalar(sample) => put_number(out, sample.time, sample.value),
        Value::Text(time, text) => {
            out.push('[');
            put_time(out, *time);
            out.push(',');
            put_text(out, text);
            out.push(']');
        }
        Value::Vector(samples) => {
            out.push_str(&put_list(samples, |out, (labels, sample)| {
                out.push_str(r#"{"metric":"#);
                put_labels(out, labels);
                put_sample(out, sample);
                out.push('}');
            }));
        }
        Value::Matrix(series) => {
            out.push_str(&put_list(series, |out, (labels, column)| {
                out.push_str(r#"{"metric":"#);
                put_labels(out, labels);
                put_column(out, column);
                out.push('}');
            }));
        }
    }
}

/// Writes a label set as an object.
pub fn put_labels(out: &mut String, labels: &Labels) {
    out.push('{');
    for (i, (name, value)) in labels.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put_text(out, name);
        out.push(':');
        put_text(out, value);
    }
    out.push('}');
}

fn put_sample(out: &mut String, sample: &Sample) {
    match &sample.histogram {
        None => {
            out.push_str(r#","value":"#);
            put_number(out, sample.time, sample.value);
        }
        Some(histogram) => {
            out.push_str(r#","histogram":"#);
            put_native(out, sample.time, histogram);
        }
    }
}

/// The numbers of a column, then its histograms; what is empty is left out.
fn put_column(out: &mut String, column: &Column) {
    let places = |native: bool| (0..column.len()).filter(move |i| column.histogram(*i).is_some() == native);
    for (i, place) in places(false).enumerate() {
        out.push_str(if i == 0 { r#","values":["# } else { "," });
        put_number(out, column.times[place], column.values[place]);
    }
    if places(false).next().is_some() {
        out.push(']');
    }
    if column.histograms.is_empty() {
        return;
    }
    let natives = places(true).filter_map(|i| Some((column.times[i], column.histogram(i)?)));
    let mut any = false;
    for (time, histogram) in natives {
        out.push_str(if any { "," } else { r#","histograms":["# });
        put_native(out, time, histogram);
        any = true;
    }
    if any {
        out.push(']');
    }
}

fn put_number(out: &mut String, time: Millis, value: f64) {
    out.push('[');
    put_time(out, time);
    out.push_str(",\"");
    put_float(out, value);
    out.push_str("\"]");
}

/// A histogram: count, sum, and the buckets that are not empty, each with how its bounds count: 0 the upper
/// one alone is included, 1 the lower one alone, 2 neither, 3 both.
fn put_native(out: &mut String, time: Millis, histogram: &Histogram) {
    out.push('[');
    put_time(out, time);
    out.push_str(r#",{"count":""#);
    put_float(out, histogram.count);
    out.push_str(r#"","sum":""#);
    put_float(out, histogram.sum);
    out.push('"');
    let buckets = histogram.buckets();
    for (i, bucket) in buckets.iter().filter(|b| b.count != 0.0).enumerate() {
        out.push_str(if i == 0 { r#","buckets":["# } else { "," });
        let bounds = match (bucket.lower_inclusive, bucket.upper_inclusive) {
            (false, true) => "[0",
            (true, false) => "[1",
            (false, false) => "[2",
            (true, true) => "[3",
        };
        out.push_str(bounds);
        for number in [bucket.lower, bucket.upper, bucket.count] {
            out.push_str(",\"");
            put_float(out, number);
            out.push('"');
        }
        out.push(']');
    }
    if buckets.iter().any(|b| b.count != 0.0) {
        out.push(']');
    }
    out.push_str("}]");
}

/// Seconds with up to three decimals.
pub fn put_time(out: &mut String, time: Millis) {
    let sign = if time < 0 { "-" } else { "" };
    let (seconds, millis) = (time.unsigned_abs() / 1000, time.unsigned_abs() % 1000);
    let _ = write!(out, "{sign}{seconds}");
    if millis > 0 {
        let fraction = format!("{millis:03}");
        let _ = write!(out, ".{}", fraction.trim_end_matches('0'));
    }
}

/// Plain decimals, an exponent for the very small and the very large.
pub fn put_float(out: &mut String, value: f64) {
    let size = value.abs();
    if value.is_finite() && value != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |digits| ('-', digits));
        let _ = write!(out, "{mantissa}e{sign}{digits:0>2}");
    } else {
        let _ = write!(out, "{}", model::number::Plain(value));
    }
}

fn put_texts(out: &mut String, name: &str, list: &[String]) {
    if !list.is_empty() {
        let _ = write!(out, r#","{name}":{}"#, texts(list));
    }
}

/// Writes a text in JSON's quotes and escapes.
pub fn put_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::BucketSpan;
    use std::sync::Arc;

    #[track_caller]
    fn check(value: Value, want: &str) {
        let outcome = QueryOutcome {
            value,
            warnings: vec![],
            infos: vec![],
            samples_read: 0,
        };
        let body = query_body(&outcome, None);
        assert_eq!(body, format!(r#"{{"status":"success","data":{{{want}}}}}"#));
        serde_json::from_str::<serde_json::Value>(&body).expect("an answer is JSON");
    }

    #[test]
    fn values_are_written_as_prometheus_writes_them() {
        check(
            Value::Scalar(Sample::float(1500, 1.0)),
            r#""resultType":"scalar","result":[1.5,"1"]"#,
        );
        check(
            Value::Text(0, "a\"b\n".into()),
            r#""resultType":"string","result":[0,"a\"b\n"]"#,
        );
        let labels = Labels::from_pairs([("__name__", "up"), ("job", "x\\y")]);
        check(
            Value::Vector(vec![(labels.clone(), Sample::float(1_764_530_000_120, f64::INFINITY))]),
            r#""resultType":"vector","result":[{"metric":{"__name__":"up","job":"x\\y"},"value":[1764530000.12,"+Inf"]}]"#,
        );
        let mut column = Column::default();
        column.push(-1001, 1e-7);
        column.push(0, -1e21);
        column.push(7, f64::NAN);
        check(
            Value::Matrix(vec![(Labels::empty(), column)]),
            r#""resultType":"matrix","result":[{"metric":{},"values":[[-1.001,"1e-07"],[0,"-1e+21"],[0.007,"NaN"]]}]"#,
        );
    }

    #[test]
    fn native_histograms_are_written_as_prometheus_writes_them() {
        let span = |offset, length| vec![BucketSpan { offset, length }];
        let histogram = Arc::new(Histogram {
            count: 11.5,
            sum: -0.25,
            zero_threshold: 0.001,
            zero_count: 1.0,
            positive_spans: span(0, 3),
            positive_buckets: vec![1.0, 0.0, 2.0],
            negative_spans: span(1, 1),
            negative_buckets: vec![4.0],
            ..Histogram::default()
        });
        let text = concat!(
            r#"{"count":"11.5","sum":"-0.25","buckets":[[1,"-2","-1","4"],[3,"-0.001","0.001","1"],"#,
            r#"[0,"0.5","1","1"],[0,"2","4","2"]]}"#
        );
        check(
            Value::Vector(vec![(Labels::empty(), Sample::native(1000, Arc::clone(&histogram)))]),
            &format!(r#""resultType":"vector","result":[{{"metric":{{}},"histogram":[1,{text}]}}]"#),
        );
        let mut column = Column::default();
        column.push_histogram(0, histogram);
        check(
            Value::Matrix(vec![(Labels::empty(), column.clone())]),
            &format!(r#""resultType":"matrix","result":[{{"metric":{{}},"histograms":[[0,{text}]]}}]"#),
        );
        column.push(1000, 2.0);
        column.push_histogram(2000, Arc::new(Histogram::default()));
        let empty = r#"{"count":"0","sum":"0"}"#;
        check(
            Value::Matrix(vec![(Labels::empty(), column)]),
            &format!(
                r#""resultType":"matrix","result":[{{"metric":{{}},"values":[[1,"2"]],"histograms":[[0,{text}],[2,{empty}]]}}]"#
            ),
        );
    }
}
