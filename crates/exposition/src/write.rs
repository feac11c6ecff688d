//! Families into text, in either format; labels stand in the order handed over.

use std::fmt::Write as _;

use model::{Family, Kind, Metric};

use crate::format::Format;

/// Writes a page of `families`; a family without lines is left out.
#[must_use]
pub fn write_page(families: &[Family], format: Format) -> String {
    let lines: usize = families.iter().map(|f| f.metrics.len()).sum();
    let mut out = String::with_capacity(lines * 160);
    for family in families.iter().filter(|f| !f.metrics.is_empty()) {
        write_family(family, format, &mut out);
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn write_family(family: &Family, format: Format, out: &mut String) {
    let (name, kind) = heading(family, format);
    if !family.help.is_empty() {
        out.push_str("# HELP ");
        write_name(&name, out);
        out.push(' ');
        escape_help(&family.help, format, out);
        out.push('\n');
    }
    out.push_str("# TYPE ");
    write_name(&name, out);
    out.push(' ');
    out.push_str(kind);
    out.push('\n');
    for metric in &family.metrics {
        write_metric(&family.name, metric, format, out);
    }
}

/// Name and type as the metadata lines tell them.
///
/// The series keep their names in either format, for dashboards know them: where OpenMetrics would want
/// another name (a counter without `_total`), the type is told as unknown instead.
fn heading(family: &Family, format: Format) -> (String, &'static str) {
    let name = family.name.clone();
    let full = |suffix: &str| family.metrics.iter().all(|m| m.suffix == suffix);
    match (format, family.kind) {
        (Format::Text, Kind::Counter) if full("_total") => (name + "_total", "counter"),
        (Format::Text, Kind::Info) if full("_info") => (name + "_info", "gauge"),
        (Format::Text, Kind::Info | Kind::StateSet) => (name, "gauge"),
        (Format::Text, Kind::GaugeHistogram | Kind::Unknown) => (name, "untyped"),
        (Format::Text, kind) => (name, kind.as_str()),
        (Format::OpenMetrics, Kind::Counter) if full("_total") => (name, "counter"),
        (Format::OpenMetrics, Kind::Counter) => match name.strip_suffix("_total") {
            Some(stem) if full("") => (stem.to_owned(), "counter"),
            _ => (name, "unknown"),
        },
        (Format::OpenMetrics, Kind::Info) if full("_info") => (name, "info"),
        (Format::OpenMetrics, Kind::Info) => match name.strip_suffix("_info") {
            Some(stem) if full("") => (stem.to_owned(), "info"),
            _ => (name, "gauge"),
        },
        (Format::OpenMetrics, kind) => (name, kind.as_str()),
    }
}

fn write_name(name: &str, out: &mut String) {
    if model::labels::is_legacy_metric_name(name) {
        out.push_str(name);
    } else {
        out.push('"');
        escape_label(name, out);
        out.push('"');
    }
}

fn write_metric(family: &str, metric: &Metric, format: Format, out: &mut String) {
    let legacy = model::labels::is_legacy_metric_name(family);
    if legacy {
        out.push_str(family);
        out.push_str(metric.suffix);
    }
    if !legacy || !metric.labels.is_empty() {
        out.push('{');
        if !legacy {
            out.push('"');
            escape_label(family, out);
            out.push_str(metric.suffix);
            out.push('"');
        }
        for (i, (name, value)) in metric.labels.iter().enumerate() {
            if i > 0 || !legacy {
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
        }
        out.push('}');
    }
    out.push(' ');
    match format {
        Format::Text => write_float(metric.value, out),
        Format::OpenMetrics => put_openmetrics_float(metric.value, out),
    }
    out.push('\n');
}

/// Writes a value as OpenMetrics has it, also in `le` and `quantile`: as [`write_float`], whole numbers as `1.0`.
pub fn put_openmetrics_float(value: f64, out: &mut String) {
    let start = out.len();
    write_float(value, out);
    if out[start..].bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        out.push_str(".0");
    }
}

/// Escapes a label value or a quoted name: `\`, `"` and newline.
pub fn escape_label(text: &str, out: &mut String) {
    escape(text, true, out);
}

/// Escapes a help text: `\` and newline, in OpenMetrics `"` too.
pub fn escape_help(text: &str, format: Format, out: &mut String) {
    escape(text, format == Format::OpenMetrics, out);
}

fn escape(text: &str, quotes: bool, out: &mut String) {
    if memchr::memchr3(b'\\', b'\n', b'"', text.as_bytes()).is_none() {
        out.push_str(text);
        return;
    }
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

/// Writes a value as Go's `%g` with the fewest digits does, as every exporter of the field: `91.25`, `1e+06`, `+Inf`.
pub fn write_float(value: f64, out: &mut String) {
    /// From here on Go writes an exponent; below it a whole number is its digits.
    const EXPONENT_FROM: i32 = 6;
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        return;
    }
    let size = value.abs();
    if value == 0.0 || (1e-4..1e6).contains(&size) {
        let _ = write!(out, "{value}");
        return;
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    debug_assert!(!(-4..EXPONENT_FROM).contains(&exponent), "{value} has a plain form");
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, want: &str) {
        let mut out = String::new();
        write_float(value, &mut out);
        assert_eq!(out, want);
    }

    #[test]
    fn floats_look_as_go_writes_them() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(123_456.0, "123456");
        check(1e6, "1e+06");
        check(1_234_567.0, "1.234567e+06");
        check(91.25, "91.25");
        check(0.0001, "0.0001");
        check(0.000_049_351, "4.9351e-05");
        check(3.831_959_552e9, "3.831959552e+09");
        check(f64::NEG_INFINITY, "-Inf");
        check(f64::NAN, "NaN");
    }

    fn page(format: Format) -> String {
        let mut temperature = Family::new("DCGM_FI_DEV_GPU_TEMP", Kind::Gauge, "Temperature\n\"C\" \\");
        temperature.push(vec![("gpu", "0".into()), ("UUID", "GPU-\"1\"".into())], 34.0);
        let mut xid = Family::new("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Kind::Counter, "");
        xid.push(vec![], 2.0);
        let mut total = Family::new("node_cpu_seconds_total", Kind::Counter, "Seconds.");
        total.push(vec![("cpu", "0".into())], 1.5);
        let empty = Family::new("nothing", Kind::Gauge, "");
        write_page(&[temperature, xid, total, empty], format)
    }

    #[test]
    fn a_text_page_keeps_names_and_the_order_of_labels() {
        expect_test::expect![[r##"
            # HELP DCGM_FI_DEV_GPU_TEMP Temperature\n"C" \\
            # TYPE DCGM_FI_DEV_GPU_TEMP gauge
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-\"1\""} 34
            # TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter
            DCGM_FI_DEV_PCIE_REPLAY_COUNTER 2
            # HELP node_cpu_seconds_total Seconds.
            # TYPE node_cpu_seconds_total counter
            node_cpu_seconds_total{cpu="0"} 1.5
        "##]]
        .assert_eq(&page(Format::Text));
    }

    #[test]
    fn an_openmetrics_page_passes_the_strict_check() {
        let text = page(Format::OpenMetrics);
        expect_test::expect![[r##"
            # HELP DCGM_FI_DEV_GPU_TEMP Temperature\n\"C\" \\
            # TYPE DCGM_FI_DEV_GPU_TEMP gauge
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-\"1\""} 34.0
            # TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER unknown
            DCGM_FI_DEV_PCIE_REPLAY_COUNTER 2.0
            # HELP node_cpu_seconds Seconds.
            # TYPE node_cpu_seconds counter
            node_cpu_seconds_total{cpu="0"} 1.5
            # EOF
        "##]]
        .assert_eq(&text);
        assert_eq!(crate::check_page(text.as_bytes(), true).map(|r| r.samples), Ok(3));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut random = fastrand::Rng::with_seed(3);
        let text = |random: &mut fastrand::Rng| -> String {
            (0..random.usize(1..6))
                .map(|_| {
                    *random
                        .choice(&['a', '"', '\\', '\n', 'é', '{', ',', ' ', '#'])
                        .expect("some")
                })
                .collect()
        };
        for _ in 0..500 {
            let name = if random.bool() {
                "a_b".to_owned()
            } else {
                text(&mut random)
            };
            let mut family = Family::new(name, Kind::Gauge, text(&mut random));
            for label in 0..3 {
                family.push(vec![("n", label.to_string()), ("x", text(&mut random))], random.f64());
            }
            for format in [Format::Text, Format::OpenMetrics] {
                let page = write_page(std::slice::from_ref(&family), format);
                let mut reader = crate::Reader::new(page.as_bytes(), format);
                let mut read = Vec::new();
                while let Some(entry) = reader.next_entry().expect("our own page") {
                    match entry {
                        crate::Entry::Sample(s) => read.push((s.series.labels().expect("distinct"), s.value)),
                        crate::Entry::Help { help, .. } => assert_eq!(help, family.help),
                        _ => {}
                    }
                }
                let want: Vec<_> = family
                    .metrics
                    .iter()
                    .map(|m| (m.series(&family.name), m.value))
                    .collect();
                assert_eq!(read, want, "{page}");
            }
        }
    }
}
