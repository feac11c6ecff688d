//! A series as it is written on the page; a label set is made of it only when asked.

use std::borrow::Cow;

use model::{Labels, METRIC_NAME};

use crate::error::Cause;
use crate::scan::{Rules, metric_name_end, quoted_end, skip_blanks};

/// The most labels of a series, its name among them. Far beyond any exporter's; without a bound one line could
/// hold millions, and label sets are made for a handful.
pub const LABELS_MAX: usize = 512;

/// A label's name and value, unescaped.
pub type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Name and labels as written, already known to be well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series<'a> {
    text: &'a [u8],
}

impl<'a> Series<'a> {
    /// A series of text that [`crate::Reader`] has accepted once before.
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        Self { text }
    }

    /// The bytes on the page: two equal texts are the same series; one series may be written in many ways.
    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The metric's name.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        let name = self.pairs().find(|(name, _)| name == METRIC_NAME);
        name.map_or(Cow::Borrowed(""), |(_, value)| value)
    }

    /// The labels in the order of the page, unescaped, those with an empty value too; the name is among them
    /// as `__name__`.
    #[must_use]
    pub const fn pairs(&self) -> Pairs<'a> {
        Pairs { text: self.text, at: 0 }
    }

    /// The label set.
    ///
    /// # Errors
    ///
    /// [`Cause::LabelTwice`] when a label is written twice: such a series has no meaning;
    /// [`Cause::LabelsTooMany`] beyond [`LABELS_MAX`].
    pub fn labels(&self) -> Result<Labels, Cause> {
        let pairs = self.distinct_pairs()?;
        Ok(Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_ref(), v.as_ref()))))
    }

    /// The labels in the order of the page, as [`Series::pairs`] gives them.
    ///
    /// # Errors
    ///
    /// [`Cause::LabelTwice`] when a label is written twice, [`Cause::LabelsTooMany`] beyond [`LABELS_MAX`].
    pub fn distinct_pairs(&self) -> Result<Vec<Pair<'a>>, Cause> {
        let pairs: Vec<Pair<'a>> = self.pairs().take(LABELS_MAX + 1).collect();
        if pairs.len() > LABELS_MAX {
            return Err(Cause::LabelsTooMany);
        }
        match twice(&pairs) {
            Some(name) => Err(Cause::LabelTwice(name.to_owned())),
            None => Ok(pairs),
        }
    }
}

/// The first name that stands twice among `pairs`.
pub(crate) fn twice<'p>(pairs: &'p [Pair<'_>]) -> Option<&'p str> {
    // A handful of labels is the rule; hundreds must not cost their square.
    if pairs.len() <= 32 {
        let seen_before = |i: usize| pairs[..i].iter().any(|(n, _)| *n == pairs[i].0);
        return (1..pairs.len()).find(|&i| seen_before(i)).map(|i| pairs[i].0.as_ref());
    }
    let mut names: Vec<&str> = pairs.iter().map(|(n, _)| n.as_ref()).collect();
    names.sort_unstable();
    names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

/// Walks the labels of a [`Series`] or of an exemplar.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Pairs<'a> {
    /// The pairs of braces alone, an exemplar's.
    pub(crate) const fn of_braces(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let rules = Rules::scrape(crate::Format::Text);
        if self.at == 0 {
            let end = metric_name_end(self.text, 0);
            self.at = (skip_blanks(self.text, end) + 1).min(self.text.len() + 1);
            if end > 0 {
                return Some((Cow::Borrowed(METRIC_NAME), String::from_utf8_lossy(&self.text[..end])));
            }
        }
        // Commas and blanks alike only part the labels; the grammar was checked when the page was read.
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b',')) {
            self.at += 1;
        }
        let start = self.at;
        let (name, end) = match self.text.get(start)? {
            b'}' => return None,
            b'"' => {
                let end = quoted_end(self.text, start, rules)?;
                (unescape(&self.text[start + 1..end]), end + 1)
            }
            _ => {
                let end = metric_name_end(self.text, start);
                (String::from_utf8_lossy(&self.text[start..end]), end)
            }
        };
        let equal = skip_blanks(self.text, end);
        if self.text.get(equal) != Some(&b'=') {
            self.at = equal;
            return (end > start).then_some((Cow::Borrowed(METRIC_NAME), name));
        }
        let open = skip_blanks(self.text, equal + 1);
        let close = quoted_end(self.text, open, rules)?;
        self.at = close + 1;
        Some((name, unescape(&self.text[open + 1..close])))
    }
}

/// Takes `\\`, `\"` and `\n` back; any other escape stands for itself.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, str> {
    unescape_with(text, true)
}

/// As [`unescape`], where `\"` is an escape or is not (help in the text format).
pub(crate) fn unescape_with(text: &[u8], quotes: bool) -> Cow<'_, str> {
    if memchr::memchr(b'\\', text).is_none() {
        return String::from_utf8_lossy(text);
    }
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('\\') => out.push('\\'),
            Some('"') if quotes => out.push('"'),
            Some(c) => out.extend(['\\', c]),
            None => out.push('\\'),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let labels = Series::new(text.as_bytes()).labels();
        assert_eq!(labels.map_or_else(|cause| cause.to_string(), |l| l.to_string()), want);
    }

    #[test]
    fn every_way_to_write_a_series_gives_its_labels() {
        check("up", r#"{__name__="up"}"#);
        check("up{}", r#"{__name__="up"}"#);
        check(r#"up {b = "2" , a="1",}"#, r#"{__name__="up", a="1", b="2"}"#);
        check(r#"up{a="1"b="2"}"#, r#"{__name__="up", a="1", b="2"}"#);
        check(r#"{"http.status",q="0.9"}"#, r#"{__name__="http.status", q="0.9"}"#);
        check(r#"{q="0.9","http.status"}"#, r#"{__name__="http.status", q="0.9"}"#);
        check(
            r#"up{"a.b"="c"}"#,
            r#"{"__name__"="up"}"#.replace(r#""__name__"="#, "__name__=").replace('}', r#", "a.b"="c"}"#).as_str(),
        );
    }

    #[test]
    fn escapes_are_taken_back_and_unknown_ones_stay() {
        check(r#"up{a="x\ny\\z\"\q"}"#, r#"{__name__="up", a="x\ny\\z\"\\q"}"#);
    }

    #[test]
    fn a_label_twice_is_refused_and_an_empty_one_is_none() {
        check(r#"up{a="1",a="1"}"#, r#"label "a" is there twice"#);
        check(r#"up{__name__="other"}"#, r#"label "__name__" is there twice"#);
        check(r#"up{a=""}"#, r#"{__name__="up"}"#);
        assert_eq!(Series::new(br#"up{a=""}"#).pairs().count(), 2);
        let many: String = (0..LABELS_MAX).map(|i| format!("l{i}=\"1\",")).collect();
        check(&format!("up{{{many}}}"), "a series has more than 512 labels");
    }
}
