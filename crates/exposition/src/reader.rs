//! Walks a page: one entry a line, nothing allocated.

use std::borrow::Cow;

use model::{Kind, Labels, Millis};

use crate::error::{Cause, Error};
use crate::format::Format;
use crate::scan::{Braces, Rules, braces_end, metric_name_end, quoted_end, series_end, skip_blanks};
use crate::series::{LABELS_MAX, Pairs, Series, unescape, unescape_with};
use crate::value::{leading_decimal, parse_value};

/// One line of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry<'a> {
    /// A value of a series.
    Sample(Sample<'a>),
    /// What a metric means.
    Help {
        /// The metric.
        name: Cow<'a, str>,
        /// The text, unescaped; may be empty.
        help: Cow<'a, str>,
    },
    /// The type of a metric.
    Type {
        /// The metric.
        name: Cow<'a, str>,
        /// Its type.
        kind: Kind,
    },
    /// The unit of a metric (OpenMetrics).
    Unit {
        /// The metric.
        name: Cow<'a, str>,
        /// Its unit; may be empty.
        unit: Cow<'a, str>,
    },
    /// A comment (text format).
    Comment,
}

/// A value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// Name and labels as written.
    pub series: Series<'a>,
    /// The value; any NaN is the plain one, never a staleness marker.
    pub value: f64,
    /// The target's own timestamp, in milliseconds; mostly absent.
    pub time: Option<Millis>,
    /// An example of what was counted (OpenMetrics).
    pub exemplar: Option<Exemplar<'a>>,
}

/// An example of what a counter or bucket counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar<'a> {
    braces: &'a [u8],
    /// The value.
    pub value: f64,
    /// When, in milliseconds; absent when the target does not say.
    pub time: Option<Millis>,
}

impl<'a> Exemplar<'a> {
    /// An example whose braces are well formed.
    pub(crate) const fn new(braces: &'a [u8], value: f64, time: Option<Millis>) -> Self {
        Self { braces, value, time }
    }

    /// The labels as written, braces included: equal texts are equal labels.
    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.braces
    }

    /// The labels, mostly `trace_id`; at most [`LABELS_MAX`].
    #[must_use]
    pub fn labels(&self) -> Labels {
        let pairs: Vec<_> = self.pairs().take(LABELS_MAX).collect();
        Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_ref(), v.as_ref())))
    }

    /// The labels in the order of the page.
    #[must_use]
    pub const fn pairs(&self) -> Pairs<'a> {
        Pairs::of_braces(self.braces)
    }
}

/// Walks the entries of a page.
///
/// A scraper that has met a line before need not read its series again: it looks at [`Reader::rest`], and
/// when the series text it expects stands there, [`Reader::known_sample`] reads only the value.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    page: &'a [u8],
    at: usize,
    line: (usize, usize),
    format: Format,
    rules: Rules,
}

impl<'a> Reader<'a> {
    /// Reads `page` as a scraper does.
    #[must_use]
    pub const fn new(page: &'a [u8], format: Format) -> Self {
        Self {
            page,
            at: 0,
            line: (0, 0),
            format,
            rules: Rules::scrape(format),
        }
    }

    /// Reads `page` as a checker does.
    pub(crate) const fn strict(page: &'a [u8], format: Format) -> Self {
        Self {
            rules: Rules::check(format),
            ..Self::new(page, format)
        }
    }

    /// What is not read yet; it begins at a line.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.page[self.at..]
    }

    /// The last entry as written, without its newline.
    #[must_use]
    #[inline]
    pub fn line(&self) -> &'a [u8] {
        &self.page[self.line.0..self.line.1]
    }

    /// An error of the caller's at the last entry.
    #[must_use]
    pub fn error(&self, cause: Cause) -> Error {
        Error::at(self.page, self.line.0, cause)
    }

    /// Reads a sample whose series text is the first `length` bytes of [`Reader::rest`], known from before.
    ///
    /// `None`, and nothing read, when something else than a value follows: the series goes on.
    ///
    /// # Errors
    ///
    /// As [`Reader::next_entry`].
    #[inline]
    pub fn known_sample(&mut self, length: usize) -> Result<Option<Sample<'a>>, Error> {
        let end = self.at + length;
        match self.page.get(end) {
            Some(b' ') => {}
            Some(b'\t') if self.rules.blanks => {}
            _ => return Ok(None),
        }
        if self.rules.blanks && self.page.get(skip_blanks(self.page, end)) == Some(&b'{') {
            return Ok(None);
        }
        self.sample(self.at, end).map(Some)
    }

    /// Passes a line, known from before, that is the first `length` bytes of [`Reader::rest`] and no sample.
    ///
    /// `false`, and nothing passed, when the line is longer.
    #[inline]
    pub fn pass_known(&mut self, length: usize) -> bool {
        let known = self.page.get(self.at + length) == Some(&b'\n');
        if known {
            self.at += length + 1;
        }
        known
    }

    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`Error`] at the first line that the format does not allow; the page is then refused as a whole.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'a>>, Error> {
        if self.rules.blanks {
            loop {
                self.at = skip_blanks(self.page, self.at);
                match self.page.get(self.at) {
                    Some(b'\n') => self.at += 1,
                    None => return Ok(None),
                    Some(_) => break,
                }
            }
        }
        match self.page.get(self.at) {
            Some(b'#') if self.format == Format::Text => self.text_comment().map(Some),
            Some(b'#') => self.openmetrics_comment(),
            None => Err(Error::at(self.page, self.at, Cause::EofMissing)),
            Some(_) => {
                let end = series_end(self.page, self.at, self.rules)?;
                self.sample(self.at, end).map(|s| Some(Entry::Sample(s)))
            }
        }
    }

    /// The value, timestamp and exemplar behind a series, and the end of the line.
    #[inline]
    fn sample(&mut self, start: usize, series: usize) -> Result<Sample<'a>, Error> {
        let (value, mut at) = self.number(series, "value after metric")?;
        let mut sample = Sample {
            series: Series::new(&self.page[start..series]),
            value,
            time: None,
            exemplar: None,
        };
        // Nearly every line ends here.
        if self.page.get(at) != Some(&b'\n') {
            at = self.behind_value(at, &mut sample)?;
        }
        self.line = (start, at);
        self.at = self.end_line(at, "next entry after timestamp")?;
        Ok(sample)
    }

    /// A blank and a number, with the number's end.
    #[inline]
    fn number(&self, at: usize, expected: &'static str) -> Result<(f64, usize), Error> {
        let start = if self.rules.blanks {
            skip_blanks(self.page, at)
        } else if self.page.get(at) == Some(&b' ') {
            at + 1
        } else {
            return Err(Error::expected(self.page, at, expected));
        };
        if let Some((value, length)) = leading_decimal(&self.page[start..])
            && self.page.get(start + length) == Some(&b'\n')
        {
            return Ok((value, start + length));
        }
        let end = self.token_end(start);
        if end == start || self.page[start] == 0 {
            return Err(Error::expected(self.page, start, expected));
        }
        let token = &self.page[start..end];
        let value = parse_value(token).ok_or_else(|| self.not_a_number(start, end))?;
        Ok((value, end))
    }

    fn not_a_number(&self, start: usize, end: usize) -> Error {
        let token = String::from_utf8_lossy(&self.page[start..end.min(start + 40)]);
        Error::at(self.page, start, Cause::Number(model::text::quote(&token)))
    }

    /// Up to a blank, tab or brace in the text format, up to a blank in OpenMetrics.
    fn token_end(&self, start: usize) -> usize {
        let blanks = self.rules.blanks;
        let ends = |b: &u8| matches!(b, b' ' | b'\n') || (blanks && matches!(b, b'\t' | b'{'));
        self.page[start..]
            .iter()
            .position(ends)
            .map_or(self.page.len(), |i| start + i)
    }

    #[cold]
    fn behind_value(&self, at: usize, sample: &mut Sample<'a>) -> Result<usize, Error> {
        if self.format == Format::Text {
            return self.text_timestamp(at, sample);
        }
        let mut at = at;
        if self.page.get(at) == Some(&b' ') && !self.page[at..].starts_with(b" # {") {
            let (time, end) = self.seconds(at)?;
            sample.time = Some(time);
            at = end;
        }
        if self.page[at..].starts_with(b" # {") {
            let (exemplar, end) = self.exemplar(at + 3)?;
            sample.exemplar = Some(exemplar);
            at = end;
        }
        Ok(at)
    }

    fn text_timestamp(&self, at: usize, sample: &mut Sample<'a>) -> Result<usize, Error> {
        let start = skip_blanks(self.page, at);
        if matches!(self.page.get(start), Some(b'\n') | None) && !self.rules.checker {
            return Ok(start);
        }
        let sign = usize::from(self.page.get(start) == Some(&b'-'));
        let digits = self.page[start + sign..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits == 0 {
            return Err(Error::expected(self.page, start, "timestamp or new record"));
        }
        let end = start + sign + digits;
        let number = std::str::from_utf8(&self.page[start..end])
            .ok()
            .and_then(|t| t.parse().ok());
        sample.time = Some(number.ok_or_else(|| self.not_a_number(start, end))?);
        Ok(skip_blanks(self.page, end))
    }

    /// A timestamp in seconds, as milliseconds (cut off, as the field does).
    fn seconds(&self, at: usize) -> Result<(Millis, usize), Error> {
        let (seconds, end) = self.number(at, "timestamp")?;
        if !seconds.is_finite() {
            let written = String::from_utf8_lossy(&self.page[at + 1..end.min(at + 40)]).into_owned();
            return Err(Error::at(self.page, at + 1, Cause::Timestamp(written)));
        }
        // Beyond 292 million years the cast stays at the end of time; whoever stores the sample refuses it.
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        Ok(((seconds * 1000.0) as Millis, end))
    }

    /// The exemplar whose brace opens at `open`.
    fn exemplar(&self, open: usize) -> Result<(Exemplar<'a>, usize), Error> {
        let close = braces_end(self.page, open, self.rules, Braces::Exemplar)?;
        let braces = &self.page[open..close];
        if std::str::from_utf8(braces).is_err() {
            return Err(Error::at(self.page, open, Cause::Utf8));
        }
        let (value, mut end) = self.number(close, "value after exemplar labels")?;
        let mut time = None;
        if self.page.get(end) == Some(&b' ') {
            let (t, e) = self.seconds(end)?;
            time = Some(t);
            end = e;
        }
        Ok((Exemplar { braces, value, time }, end))
    }

    /// Past the newline at `at`.
    #[inline]
    fn end_line(&self, at: usize, expected: &'static str) -> Result<usize, Error> {
        match self.page.get(at) {
            Some(b'\n') => Ok(at + 1),
            None if self.rules.open_end && self.format == Format::Text => Ok(at),
            None if self.format == Format::OpenMetrics => Err(Error::at(self.page, at, Cause::EofMissing)),
            _ => Err(Error::expected(self.page, at, expected)),
        }
    }

    fn line_end(&self, at: usize) -> usize {
        memchr::memchr(b'\n', &self.page[at..]).map_or(self.page.len(), |i| at + i)
    }

    fn text_comment(&mut self) -> Result<Entry<'a>, Error> {
        let start = self.at;
        let end = self.line_end(start);
        self.line = (start, end);
        let word = skip_blanks(self.page, start + 1);
        let help = self.page[word..].starts_with(b"HELP");
        let meta = (word > start + 1 || self.rules.checker)
            && (help || self.page[word..].starts_with(b"TYPE"))
            && matches!(self.page.get(word + 4), Some(b' ' | b'\t'));
        if !meta {
            self.at = self.end_line(end, "a new line")?;
            return Ok(Entry::Comment);
        }
        let name_at = skip_blanks(self.page, word + 4);
        if name_at == end && self.rules.checker {
            self.at = self.end_line(end, "a new line")?;
            return Ok(Entry::Comment);
        }
        let (name, after) = self.meta_name(
            name_at,
            if help {
                "metric name after HELP"
            } else {
                "metric name after TYPE"
            },
        )?;
        let behind = &self.page[after.min(end)..end];
        let mut text = behind.get(1..).unwrap_or(&[]);
        if self.rules.checker {
            if !matches!(behind.first(), None | Some(b' ' | b'\t')) {
                return Err(Error::expected(self.page, after, "a blank after the metric name"));
            }
            text = &behind[skip_blanks(behind, 0)..];
            if text.is_empty() {
                self.at = self.end_line(end, "a new line")?;
                return Ok(Entry::Comment);
            }
        }
        let entry = if help {
            Entry::Help {
                name,
                help: self.help(text, after)?,
            }
        } else {
            Entry::Type {
                name,
                kind: self.kind(text, after)?,
            }
        };
        self.at = self.end_line(end, "a new line")?;
        Ok(entry)
    }

    fn openmetrics_comment(&mut self) -> Result<Option<Entry<'a>>, Error> {
        let start = self.at;
        let rest = &self.page[start..];
        let end = self.line_end(start);
        self.line = (start, end);
        if rest.starts_with(b"# EOF") {
            let after = start + b"# EOF".len();
            let last = self.page.get(after) == Some(&b'\n');
            self.at = after + usize::from(last);
            return if self.at == self.page.len() {
                // Stays before the end, so that a further call gives the end again.
                self.at = start;
                Ok(None)
            } else {
                Err(Error::at(self.page, self.at, Cause::AfterEof))
            };
        }
        const WORDS: [(&[u8], &str, &str); 3] = [
            (b"# HELP ", "metric name after HELP", "text in HELP"),
            (b"# TYPE ", "metric name after TYPE", "text in TYPE"),
            (b"# UNIT ", "metric name after UNIT", "text in UNIT"),
        ];
        let Some((word, named, text)) = WORDS.iter().find(|(word, ..)| rest.starts_with(word)) else {
            return Err(Error::expected(self.page, start, "a valid start token"));
        };
        let (name, after) = self.meta_name(start + word.len(), named)?;
        if self.page.get(after) != Some(&b' ') {
            return Err(Error::expected(self.page, after, text));
        }
        let text = &self.page[after + 1..end];
        let entry = match word[2] {
            b'H' => Entry::Help {
                name,
                help: self.help(text, after + 1)?,
            },
            b'T' => Entry::Type {
                name,
                kind: self.kind(text, after + 1)?,
            },
            _ => {
                let unit = std::str::from_utf8(text).map_err(|_| Error::at(self.page, after + 1, Cause::Utf8))?;
                let fits = name.strip_suffix(unit).is_some_and(|n| n.ends_with('_'));
                if !unit.is_empty() && !fits {
                    let (name, unit) = (name.into_owned(), unit.to_owned());
                    return Err(Error::at(self.page, after + 1, Cause::Unit { name, unit }));
                }
                Entry::Unit {
                    name,
                    unit: Cow::Borrowed(unit),
                }
            }
        };
        self.at = self.end_line(end, "a new line")?;
        Ok(Some(entry))
    }

    /// The name, plain or quoted, in a metadata line, with its end.
    fn meta_name(&self, at: usize, expected: &'static str) -> Result<(Cow<'a, str>, usize), Error> {
        let quoted = (self.page.get(at) == Some(&b'"'))
            .then(|| quoted_end(self.page, at, self.rules))
            .flatten();
        let (name, end) = match quoted {
            Some(end) => (&self.page[at + 1..end], end + 1),
            None => {
                let end = metric_name_end(self.page, at);
                (&self.page[at..end], end)
            }
        };
        if end == at {
            return Err(Error::expected(self.page, at, expected));
        }
        if std::str::from_utf8(name).is_err() {
            return Err(Error::at(self.page, at, Cause::Utf8));
        }
        Ok((unescape(name), end))
    }

    fn help(&self, text: &'a [u8], at: usize) -> Result<Cow<'a, str>, Error> {
        if self.rules.checker {
            let escapes = text.split(|b| *b == b'\\').skip(1);
            let mut behind_escaped = false;
            for after in escapes {
                if behind_escaped {
                    behind_escaped = false;
                    continue;
                }
                behind_escaped = after.is_empty();
                if !matches!(after.first(), None | Some(b'n')) {
                    return Err(Error::at(
                        self.page,
                        at,
                        Cause::Rule("invalid escape sequence in HELP".to_owned()),
                    ));
                }
            }
        } else if std::str::from_utf8(text).is_err() {
            return Err(Error::at(self.page, at, Cause::Utf8));
        }
        Ok(unescape_with(text, self.format == Format::OpenMetrics))
    }

    fn kind(&self, word: &[u8], at: usize) -> Result<Kind, Error> {
        let open_metrics = self.format == Format::OpenMetrics;
        let lower = word.to_ascii_lowercase();
        let word_read: &[u8] = if self.rules.checker { &lower } else { word };
        Ok(match word_read {
            b"counter" => Kind::Counter,
            b"gauge" => Kind::Gauge,
            b"histogram" => Kind::Histogram,
            b"summary" => Kind::Summary,
            b"untyped" if !open_metrics => Kind::Unknown,
            b"unknown" if open_metrics => Kind::Unknown,
            b"gaugehistogram" if open_metrics => Kind::GaugeHistogram,
            b"info" if open_metrics => Kind::Info,
            b"stateset" if open_metrics => Kind::StateSet,
            _ => {
                let shown = String::from_utf8_lossy(&word[..word.len().min(40)]);
                return Err(Error::at(self.page, at, Cause::Type(model::text::quote(&shown))));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of a page, one a line; an error ends them.
    #[track_caller]
    fn check(format: Format, page: &str, want: &[&str]) {
        let mut reader = Reader::new(page.as_bytes(), format);
        let mut got = Vec::new();
        loop {
            match reader.next_entry() {
                Ok(Some(Entry::Sample(s))) => {
                    let series = String::from_utf8_lossy(s.series.text()).into_owned();
                    let time = s.time.map_or_else(String::new, |t| format!(" @{t}"));
                    let exemplar = s
                        .exemplar
                        .map_or_else(String::new, |e| format!(" # {} {} {:?}", e.labels(), e.value, e.time));
                    got.push(format!("{series} = {}{time}{exemplar}", s.value));
                }
                Ok(Some(entry)) => got.push(format!("{entry:?}")),
                Ok(None) => break,
                Err(error) => {
                    got.push(format!("{error}\n{}", error.excerpt));
                    break;
                }
            }
        }
        assert_eq!(got, want);
    }

    #[test]
    fn text_is_read_with_blanks_where_they_may_be() {
        check(
            Format::Text,
            "\n# HELP a One\\nline \\\\ \\\"\n#  TYPE\ta gauge\n# else\n  a{ x = \"1\" , } 2.5\t77\na+Inf\na -3",
            &[
                "Help { name: \"a\", help: \"One\\nline \\\\ \\\\\\\"\" }",
                "Type { name: \"a\", kind: Gauge }",
                "Comment",
                "a{ x = \"1\" , } = 2.5 @77",
                "a = inf",
                "a = -3",
            ],
        );
        check(Format::Text, "{\"a.b\",x=\"1\"} 1\n", &["{\"a.b\",x=\"1\"} = 1"]);
    }

    #[test]
    fn openmetrics_is_read_with_units_exemplars_and_an_end() {
        check(
            Format::OpenMetrics,
            "# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total{x=\"1\"} 2 1.5 # {id=\"x\"} 0.5 9.25\n# EOF\n",
            &[
                "Type { name: \"a_seconds\", kind: Counter }",
                "Unit { name: \"a_seconds\", unit: \"seconds\" }",
                "a_seconds_total{x=\"1\"} = 2 @1500 # {id=\"x\"} 0.5 Some(9250)",
            ],
        );
        check(
            Format::OpenMetrics,
            "a 1\n",
            &["a = 1", "line 2, column 1: data does not end with # EOF\n  \n  ^"],
        );
        check(
            Format::OpenMetrics,
            "a 1\n# EOF\nb 1\n",
            &["a = 1", "line 3, column 1: unexpected data after # EOF\n  b 1\n  ^"],
        );
    }

    #[test]
    fn an_error_points_at_its_place() {
        check(
            Format::Text,
            "a 1\nb{x=1} 2\n",
            &[
                "a = 1",
                "line 2, column 5: expected label value, got \"1} 2\"\n  b{x=1} 2\n      ^",
            ],
        );
        check(
            Format::Text,
            "<html>\n",
            &["line 1, column 1: expected a valid start token, got \"<html>\"\n  <html>\n  ^"],
        );
    }

    #[test]
    fn a_known_series_is_taken_only_when_a_value_follows() {
        let mut reader = Reader::new(b"a 1\na{x=\"1\"} 2\na {x=\"1\"} 3\n", Format::Text);
        let value = |sample: Result<Option<Sample<'_>>, Error>| sample.map(|s| s.map(|s| s.value));
        assert_eq!(value(reader.known_sample(1)), Ok(Some(1.0)));
        assert_eq!(value(reader.known_sample(1)), Ok(None), "the series goes on");
        assert_eq!(value(reader.known_sample(8)), Ok(Some(2.0)));
        assert_eq!(
            value(reader.known_sample(1)),
            Ok(None),
            "the series goes on behind a blank"
        );
        assert!(matches!(reader.next_entry(), Ok(Some(Entry::Sample(s))) if s.value == 3.0));
        assert_eq!(reader.line(), b"a {x=\"1\"} 3");
        assert_eq!(reader.rest(), b"");
    }
}
