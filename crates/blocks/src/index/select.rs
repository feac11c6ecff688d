//! Matchers to rows by set algebra on postings: values are tested, series are not.

use std::borrow::Cow;

use model::Matcher;
use roaring::RoaringBitmap;

/// What has postings: an index file, a shard of the head.
pub trait Terms {
    /// All rows.
    fn all(&self) -> Cow<'_, RoaringBitmap>;

    /// Rows whose label `name` has this value (not empty); `None` when there is none.
    fn rows(&self, name: &str, value: &str) -> Option<Cow<'_, RoaringBitmap>>;

    /// Gives each value of label `name` that begins with `prefix`, with its rows.
    fn scan(&self, name: &str, prefix: &str, visit: &mut dyn FnMut(&str, Cow<'_, RoaringBitmap>));
}

/// The rows that pass all matchers.
#[must_use]
pub fn resolve(terms: &dyn Terms, matchers: &[Matcher]) -> RoaringBitmap {
    // Matchers that need the label narrow the set; the others then take from it.
    let (needing, allowing): (Vec<_>, Vec<_>) = matchers.iter().partition(|m| !m.matches_empty());
    let mut found: Option<RoaringBitmap> = None;
    for matcher in needing {
        let rows = accepted(terms, matcher);
        let narrowed = match found {
            None => rows,
            Some(have) => have & rows,
        };
        if narrowed.is_empty() {
            return narrowed;
        }
        found = Some(narrowed);
    }
    let mut found = found.unwrap_or_else(|| terms.all().into_owned());
    for matcher in allowing {
        if found.is_empty() {
            break;
        }
        found -= refused(terms, matcher);
    }
    found
}

/// Rows with a value that the matcher accepts.
fn accepted(terms: &dyn Terms, matcher: &Matcher) -> RoaringBitmap {
    let mut union = RoaringBitmap::new();
    if let Some(set) = matcher.set() {
        if let [value] = set {
            return terms
                .rows(&matcher.name, value)
                .map(Cow::into_owned)
                .unwrap_or_default();
        }
        for value in set {
            if let Some(rows) = terms.rows(&matcher.name, value) {
                union |= &*rows;
            }
        }
        return union;
    }
    // A negated pattern's prefix says nothing of what it accepts.
    let prefix = if matcher.op == model::MatchOp::Regex {
        matcher.prefix()
    } else {
        ""
    };
    terms.scan(&matcher.name, prefix, &mut |value, rows| {
        if matcher.matches(value) {
            union |= &*rows;
        }
    });
    union
}

/// Rows with a value that the matcher does not accept; rows without the label pass.
fn refused(terms: &dyn Terms, matcher: &Matcher) -> RoaringBitmap {
    if matcher.op == model::MatchOp::NotEqual {
        let rows = terms.rows(&matcher.name, &matcher.value);
        return rows.map(Cow::into_owned).unwrap_or_default();
    }
    let mut union = RoaringBitmap::new();
    terms.scan(&matcher.name, "", &mut |value, rows| {
        if !matcher.matches(value) {
            union |= &*rows;
        }
    });
    union
}
