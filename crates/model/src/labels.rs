//! A label set: sorted pairs of name and value in one shared text.
//!
//! ```text
//! len name len value  len name len value …      sorted by name, names distinct, values not empty
//! ```
//!
//! A length is written in base 64, low digits first, each digit one ASCII byte, bit 6 saying "more
//! follows". So the whole is one valid UTF-8 string: cloning is a reference count, equality and hashing
//! are those of bytes, and a set costs one allocation.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::text::quote;

/// The label that holds the metric's name.
pub const METRIC_NAME: &str = "__name__";

/// A set of labels, sorted by name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Labels(Arc<str>);

impl Labels {
    /// The set without labels.
    #[must_use]
    pub fn empty() -> Self {
        Self(Arc::from(""))
    }

    /// A set of pairs in any order; a later pair of the same name wins, an empty value leaves the label out.
    #[must_use]
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut builder = LabelsBuilder::new();
        for (name, value) in pairs {
            builder.set(name, value);
        }
        builder.build()
    }

    /// A set of pairs that are sorted already, as a store keeps them: quicker than [`Labels::from_pairs`].
    /// `None` when names are not ascending and distinct, or a value is empty.
    #[must_use]
    pub fn from_sorted<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut out = String::with_capacity(256);
        let mut last: Option<&str> = None;
        for (name, value) in pairs {
            if last.is_some_and(|l| l >= name) || value.is_empty() {
                return None;
            }
            last = Some(name);
            put_text(&mut out, name);
            put_text(&mut out, value);
        }
        Some(Self(Arc::from(out)))
    }

    /// The value of `name`, or `None`: an absent label and an empty one are the same.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        for (have, value) in self {
            match have.cmp(name) {
                Ordering::Less => {}
                Ordering::Equal => return Some(value),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// The metric's name, or the empty text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.get(METRIC_NAME).unwrap_or("")
    }

    /// Pairs in order of name.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.0 }
    }

    /// Number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether the set has no label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A stable 64-bit hash (xxh3) of the encoded set; the same on every machine and run.
    #[must_use]
    pub fn hash64(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.0.as_bytes())
    }

    /// A stable 128-bit hash (xxh3) of the encoded set.
    #[must_use]
    pub fn hash128(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(self.0.as_bytes())
    }

    /// The encoded form; [`Labels::from_encoded`] takes it back.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.0
    }

    /// Takes what [`Labels::encoded`] gave; `None` when the text is not such a form.
    #[must_use]
    pub fn from_encoded(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut last: Option<&str> = None;
        while !rest.is_empty() {
            let name = take_text(&mut rest)?;
            let value = take_text(&mut rest)?;
            if last.is_some_and(|l| l >= name) || value.is_empty() {
                return None;
            }
            last = Some(name);
        }
        Some(Self(Arc::from(text)))
    }

    /// The labels whose names `keep` accepts.
    #[must_use]
    pub fn retain(&self, mut keep: impl FnMut(&str) -> bool) -> Self {
        let mut out = String::with_capacity(self.0.len());
        for (name, value) in self {
            if keep(name) {
                put_text(&mut out, name);
                put_text(&mut out, value);
            }
        }
        if out.len() == self.0.len() {
            self.clone()
        } else {
            Self(Arc::from(out))
        }
    }

    /// The labels named in `names` (which need not be sorted).
    #[must_use]
    pub fn only<S: AsRef<str>>(&self, names: &[S]) -> Self {
        self.retain(|name| names.iter().any(|n| n.as_ref() == name))
    }

    /// The labels not named in `names`; the metric name stays unless it is named.
    #[must_use]
    pub fn without<S: AsRef<str>>(&self, names: &[S]) -> Self {
        self.retain(|name| !names.iter().any(|n| n.as_ref() == name))
    }

    /// The set without the metric's name.
    #[must_use]
    pub fn drop_name(&self) -> Self {
        self.retain(|name| name != METRIC_NAME)
    }

    /// The set with `name` set to `value` (removed when the value is empty).
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut builder = LabelsBuilder::from(self);
        builder.set(name, value);
        builder.build()
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::empty()
    }
}

impl Ord for Labels {
    /// Label by label, names before values, as Prometheus sorts series.
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = (&'a str, &'a str);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Display for Labels {
    /// `{__name__="up", job="node"}`, as Prometheus prints a label set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            if is_legacy_label_name(name) {
                write!(f, "{comma}{name}={}", quote(value))?;
            } else {
                write!(f, "{comma}{}={}", quote(name), quote(value))?;
            }
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Shows a set the way a series is written: `up{job="node"}`.
#[derive(Debug, Clone, Copy)]
pub struct SeriesText<'a>(pub &'a Labels);

impl fmt::Display for SeriesText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.name();
        if !name.is_empty() && !is_legacy_metric_name(name) {
            return write!(f, "{}", self.0);
        }
        let rest = self.0.drop_name();
        f.write_str(name)?;
        if !rest.is_empty() || name.is_empty() {
            write!(f, "{rest}")?;
        }
        Ok(())
    }
}

/// Whether `name` needs no quotes as a label name: `[a-zA-Z_][a-zA-Z0-9_]*`.
#[must_use]
pub fn is_legacy_label_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether `name` needs no quotes as a metric name: as a label name, colons allowed.
#[must_use]
pub fn is_legacy_metric_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b':')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}

/// Walks the pairs of a [`Labels`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let name = take_text(&mut self.rest)?;
        let value = take_text(&mut self.rest)?;
        Some((name, value))
    }
}

/// Collects labels and builds a [`Labels`]; reusable through [`LabelsBuilder::reset`].
#[derive(Debug, Clone, Default)]
pub struct LabelsBuilder {
    pairs: Vec<(String, String)>,
}

impl LabelsBuilder {
    /// A builder without labels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets every label.
    pub fn reset(&mut self) {
        self.pairs.clear();
    }

    /// Sets a label; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        match self.pairs.iter_mut().find(|(n, _)| n == name) {
            Some(pair) if !value.is_empty() => value.clone_into(&mut pair.1),
            Some(_) => self.pairs.retain(|(n, _)| n != name),
            None if value.is_empty() => {}
            None => self.pairs.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    /// Removes a label.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.set(name, "")
    }

    /// The value set for `name`, or `None`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The pairs set so far, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// The label set built so far.
    #[must_use]
    pub fn build(&self) -> Labels {
        let mut order: Vec<&(String, String)> = self.pairs.iter().collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut out = String::with_capacity(order.iter().map(|(n, v)| n.len() + v.len() + 4).sum());
        for (name, value) in order {
            put_text(&mut out, name);
            put_text(&mut out, value);
        }
        Labels(Arc::from(out))
    }
}

impl From<&Labels> for LabelsBuilder {
    fn from(labels: &Labels) -> Self {
        Self {
            pairs: labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        }
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self::from_pairs(pairs)
    }
}

/// Set in a length digit when another follows.
const MORE: u8 = 0x40;

fn put_text(out: &mut String, text: &str) {
    let mut length = text.len();
    loop {
        // Six bits each, so always below 0x40.
        let digit = (length & 0x3f) as u8;
        length >>= 6;
        if length == 0 {
            out.push(char::from(digit));
            break;
        }
        out.push(char::from(digit | MORE));
    }
    out.push_str(text);
}

fn take_text<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let mut length = 0_usize;
    let mut shift = 0_u32;
    let mut used = 0;
    for byte in rest.bytes() {
        used += 1;
        if byte >= 0x80 || shift > 30 {
            return None;
        }
        length |= usize::from(byte & 0x3f) << shift;
        shift += 6;
        if byte & MORE == 0 {
            let text = rest.get(used..used + length)?;
            *rest = rest.get(used + length..)?;
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_sort_and_an_empty_value_is_no_label() {
        let labels = Labels::from_pairs([("job", "node"), ("__name__", "up"), ("x", ""), ("job", "gpu")]);
        assert_eq!(labels.to_string(), r#"{__name__="up", job="gpu"}"#);
        assert_eq!(SeriesText(&labels).to_string(), r#"up{job="gpu"}"#);
        assert_eq!(labels.get("x"), None);
        assert_eq!(labels.name(), "up");
        assert_eq!(labels.len(), 2);
    }

    #[test]
    fn long_values_and_other_scripts_survive_the_encoding() {
        for n in [0, 1, 62, 63, 64, 65, 4095, 4096, 300_000] {
            let value = "é".repeat(n);
            let labels = Labels::from_pairs([("a", value.as_str()), ("b", "2")]);
            assert_eq!(labels.get("a").unwrap_or(""), value);
            assert_eq!(labels.get("b"), Some("2"));
            assert_eq!(Labels::from_encoded(labels.encoded()), Some(labels));
        }
    }

    #[test]
    fn sorted_pairs_are_taken_as_they_are() {
        let labels = Labels::from_pairs([("b", "2"), ("a", "1")]);
        assert_eq!(Labels::from_sorted(&labels), Some(labels));
        for wrong in [
            [("b", "1"), ("a", "1")],
            [("a", "1"), ("a", "1")],
            [("a", "1"), ("b", "")],
        ] {
            assert_eq!(Labels::from_sorted(wrong), None);
        }
    }

    #[test]
    fn a_wrong_encoding_is_refused() {
        for text in [
            "\u{1}",
            "\u{1}a",
            "\u{1}a\u{0}",
            "\u{1}b\u{1}x\u{1}a\u{1}x",
            "\u{40}",
            "é",
        ] {
            assert_eq!(Labels::from_encoded(text), None, "{text:?}");
        }
    }

    #[test]
    fn sets_order_label_by_label() {
        let a = Labels::from_pairs([("a", "1")]);
        let long_value = Labels::from_pairs([("a", "10")]);
        let b = Labels::from_pairs([("b", "0")]);
        assert!(a < long_value && long_value < b && Labels::empty() < a);
    }

    #[test]
    fn names_outside_the_old_alphabet_are_quoted() {
        let labels = Labels::from_pairs([("__name__", "a.b"), ("c d", "e")]);
        assert_eq!(SeriesText(&labels).to_string(), r#"{__name__="a.b", "c d"="e"}"#);
    }
}
