//! Texts with `$1`, `${1}` and `${name}`, filled from a match as Go's `Regexp.Expand` does.

use regex::{Captures, Regex};

/// A text split at its references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl Template {
    /// Splits a text; a name the pattern does not have fills in nothing.
    pub(super) fn new(text: &str, regex: &Regex) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                plain.push('$');
                rest = after;
            } else if let Some((name, after)) = reference(rest) {
                parts.push(Part::Text(std::mem::take(&mut plain)));
                if let Some(group) = group(name, regex) {
                    parts.push(Part::Group(group));
                }
                rest = after;
            } else {
                plain.push('$');
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Self(parts)
    }

    /// The text for a match; a group that took no part is empty.
    pub(super) fn fill(&self, found: &Captures<'_>) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => out.push_str(found.get(*group).map_or("", |m| m.as_str())),
            }
        }
        out
    }
}

/// The name behind a `$` and what follows it. An unbraced name is as long as it can be: `$1x` is `${1x}`.
fn reference(rest: &str) -> Option<(&str, &str)> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    if let Some(braced) = rest.strip_prefix('{') {
        let (name, after) = braced.split_once('}')?;
        return (!name.is_empty() && name.chars().all(is_word)).then_some((name, after));
    }
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    (end > 0).then(|| rest.split_at(end))
}

fn group(name: &str, regex: &Regex) -> Option<usize> {
    if name.bytes().all(|b| b.is_ascii_digit()) {
        return name.parse().ok().filter(|n| *n < regex.captures_len());
    }
    regex.capture_names().position(|n| n == Some(name))
}

/// Whether a text is a name of the old alphabet, references allowed:
/// `^(?:(?:[a-zA-Z_]|\$(?:\{\w+\}|\w+))+\w*)+$` in Prometheus.
pub(super) fn is_legacy_target(text: &str) -> bool {
    let mut rest = text;
    let mut first = true;
    while let Some(c) = rest.chars().next() {
        if c == '$' {
            match reference(&rest[1..]) {
                Some((name, after)) if name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) => rest = after,
                _ => return false,
            }
        } else if c == '_' || c.is_ascii_alphabetic() || (!first && c.is_ascii_digit()) {
            rest = &rest[1..];
        } else {
            return false;
        }
        first = false;
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, want: &str) {
        let regex = Regex::new("(?P<first>a)(b)?(c)").expect("valid");
        let found = regex.captures("ac").expect("matches");
        assert_eq!(Template::new(template, &regex).fill(&found), want, "{template}");
    }

    #[test]
    fn references_fill_in_as_in_go() {
        check("$1-$3", "a-c");
        check("${first}${2}${3}", "ac");
        check("$1x", "");
        check("${1}x", "ax");
        check("$$1 $", "$1 $");
        check("${9}${nope}.", ".");
        check("${", "${");
        check("$0", "ac");
    }

    #[test]
    fn old_names_may_hold_references() {
        for good in ["a", "${1}", "$1_x", "a${1}b", "_9"] {
            assert!(is_legacy_target(good), "{good}");
        }
        for bad in ["", "9a", "a-b", "${", "a.b", "$"] {
            assert!(!is_legacy_target(bad), "{bad}");
        }
    }
}
