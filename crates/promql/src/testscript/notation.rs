//! The short notation of series: `up{job="node"} 1 1+2x3 _ stale`.
//!
//! `a` a sample, `_` none, `stale` the staleness marker, `_xN` N times none, `axN` N + 1 times a,
//! `a+bxN` and `a-bxN` N + 1 samples that grow or fall by b, `{{…}}` a native histogram in place of a or b.

mod histogram;

use std::sync::Arc;

use model::{Histogram, Labels, LabelsBuilder, MatchOp, number::parse_float};

pub use histogram::parse_histogram;

/// The most points that one line may stand for.
const POINTS_MAX: usize = 1_000_000;

/// One point of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Point {
    /// No sample.
    Absent,
    /// A sample; the staleness marker among them.
    Float(f64),
    /// A native histogram.
    Histogram {
        /// The histogram.
        histogram: Arc<Histogram>,
        /// Whether `counter_reset_hint` was written: what is expected of it counts only then.
        names_hint: bool,
    },
}

/// A series with its points, the first at the start of time and each one step after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesLine {
    /// The labels, metric name included.
    pub labels: Labels,
    /// The points.
    pub points: Vec<Point>,
}

/// A text is not a series in this notation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotationError {
    /// The labels cannot be read.
    #[error("series labels {text:?}: {reason}")]
    Labels {
        /// What stands for the labels.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A point cannot be read.
    #[error("series value {0:?} is none of 1, _, stale, 1x2, _x2, 1+2x3, {{{{…}}}}")]
    Point(String),
    /// A line stands for more than a million points.
    #[error("series value {0:?} stands for too many points")]
    TooMany(String),
}

/// Reads a series: labels, then points.
///
/// # Errors
///
/// [`NotationError`] with the part that cannot be read.
pub fn parse_series(text: &str) -> Result<SeriesLine, NotationError> {
    let (metric, points) = split_metric(text.trim());
    Ok(SeriesLine {
        labels: parse_metric(metric)?,
        points: parse_points(points)?,
    })
}

/// Reads labels: `up{job="node"}`, `{__name__="up"}`, `{"with.dots", a="b"}`, `{}`.
///
/// # Errors
///
/// [`NotationError::Labels`]
pub fn parse_metric(text: &str) -> Result<Labels, NotationError> {
    let error = |reason: String| NotationError::Labels {
        text: text.to_owned(),
        reason,
    };
    let matchers = crate::parse_selector(text.trim()).map_err(|e| error(e.to_string()))?;
    let mut builder = LabelsBuilder::new();
    for matcher in matchers {
        if matcher.op != MatchOp::Equal {
            return Err(error(format!("{} is not a label", matcher.op)));
        }
        builder.set(&matcher.name, &matcher.value);
    }
    Ok(builder.build())
}

/// Reads points separated by blanks.
///
/// # Errors
///
/// [`NotationError::Point`] and [`NotationError::TooMany`]
pub fn parse_points(text: &str) -> Result<Vec<Point>, NotationError> {
    let mut points = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (item, after) = rest.split_at(item_end(rest));
        add_points(item, &mut points)?;
        rest = after.trim_start();
    }
    Ok(points)
}

/// Where the labels of a line end.
fn split_metric(text: &str) -> (&str, &str) {
    let name_end = text.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(text.len());
    let after_name = text[name_end..].trim_start();
    let has_labels = after_name.starts_with('{') && !after_name.starts_with("{{");
    if !has_labels {
        return text.split_at(name_end);
    }
    let open = text.len() - after_name.len();
    let mut quote = None;
    let mut escaped = false;
    for (i, c) in text[open..].char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some(q) if c == '\\' && q != '`' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if c == '}' => return text.split_at(open + i + 1),
            None => {}
        }
    }
    (text, "")
}

/// The end of the first item: a blank outside `{{…}}`.
fn item_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if c.is_whitespace() && depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

fn add_points(item: &str, points: &mut Vec<Point>) -> Result<(), NotationError> {
    let wrong = || NotationError::Point(item.to_owned());
    if let Some(rest) = item.strip_prefix('_') {
        let count = if rest.is_empty() {
            1
        } else {
            repeat(rest).ok_or_else(wrong)?
        };
        return fill(item, points, count, |_| Point::Absent);
    }
    if item == "stale" {
        points.push(Point::Float(model::stale_nan()));
        return Ok(());
    }
    if item.starts_with("{{") {
        return histogram::add_points(item, points);
    }
    let (start, rest) = take_number(item).ok_or_else(wrong)?;
    if rest.is_empty() {
        points.push(Point::Float(start));
        return Ok(());
    }
    if let Some(count) = repeat(rest) {
        return fill(item, points, count.saturating_add(1), |_| Point::Float(start));
    }
    if !rest.starts_with(['+', '-']) {
        return Err(wrong());
    }
    let (delta, rest) = take_number(rest).ok_or_else(wrong)?;
    let count = repeat(rest).ok_or_else(wrong)?;
    let mut value = start;
    fill(item, points, count.saturating_add(1), |i| {
        // Added up step by step, as the notation is defined, not multiplied.
        if i > 0 {
            value += delta;
        }
        Point::Float(value)
    })
}

fn fill(
    item: &str,
    points: &mut Vec<Point>,
    count: usize,
    point: impl FnMut(usize) -> Point,
) -> Result<(), NotationError> {
    if points.len().saturating_add(count) > POINTS_MAX {
        return Err(NotationError::TooMany(item.to_owned()));
    }
    points.extend((0..count).map(point));
    Ok(())
}

/// The number of `xN`.
fn repeat(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('x')?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(usize::MAX))
}

/// A number at the start of the text, and the rest. There is no hexadecimal one: `0x3` is four zeros.
fn take_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let word = unsigned.bytes().take_while(u8::is_ascii_alphabetic).count();
    let length = if word > 0 {
        let names = ["inf", "nan"];
        names
            .iter()
            .find(|n| unsigned.get(..3).is_some_and(|w| w.eq_ignore_ascii_case(n)))?;
        3
    } else {
        decimal_length(unsigned.as_bytes())
    };
    let (number, rest) = text.split_at_checked(sign + length)?;
    Some((parse_float(number)?, rest))
}

fn decimal_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(end + 1 + sign..).map_or(0, |_| digits(end + 1 + sign));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match parse_series(text) {
            Err(error) => error.to_string(),
            Ok(line) => {
                let points = line.points.iter().map(|p| match p {
                    Point::Absent => " _".to_owned(),
                    Point::Histogram { .. } => " H".to_owned(),
                    Point::Float(v) if model::is_stale(*v) => " stale".to_owned(),
                    Point::Float(v) => format!(" {v}"),
                });
                format!("{}{}", line.labels, points.collect::<String>())
            }
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn points_repeat_and_grow() {
        check("{} 1 2 3", "{} 1 2 3");
        check(
            "m{a=\"b\"} 1 2 3-10x4",
            "{__name__=\"m\", a=\"b\"} 1 2 3 -7 -17 -27 -37",
        );
        check("m 1x0 1+1x0", "{__name__=\"m\"} 1 1");
        check("m 1 _ _x2 stale", "{__name__=\"m\"} 1 _ _ _ stale");
        check("m 0x3 1e2x1 -Inf NaN +5", "{__name__=\"m\"} 0 0 0 0 100 100 -inf NaN 5");
        check(
            "m {{schema:0 sum:1}} 1 {{sum:1}}+{{sum:2}}x1",
            "{__name__=\"m\"} H 1 H H",
        );
    }

    #[test]
    fn labels_may_hold_blanks_and_braces() {
        check("m{a=\"} 1\"} 2", "{__name__=\"m\", a=\"} 1\"} 2");
        check("m {a=\"b\"} 2", "{__name__=\"m\", a=\"b\"} 2");
        check("{\"x.y\", a='\\''} 2", "{__name__=\"x.y\", a=\"'\"} 2");
    }

    #[test]
    fn what_is_no_point_is_named() {
        for text in ["1+1", "_a4", "-3-3", "_-2", "3+3x4-4", "1y2", "stalex2", "x"] {
            let error = parse_points(text);
            assert_eq!(error, Err(NotationError::Point(text.to_owned())));
        }
        assert!(matches!(
            parse_points("1x9999999999999999999999"),
            Err(NotationError::TooMany(_))
        ));
        assert!(matches!(parse_metric("m{a!=\"b\"}"), Err(NotationError::Labels { .. })));
    }
}
