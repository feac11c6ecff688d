//! Variables in external labels: `$NAME` and `${NAME}` from the environment, `$$` for a dollar.

use std::env;

use model::labels::Labels;

/// The labels with variables filled in from this process' environment; one that is not set is empty.
pub(super) fn external_labels(labels: &Labels) -> Labels {
    let lookup = |name: &str| env::var(name).unwrap_or_default();
    let pairs: Vec<(&str, String)> = labels.iter().map(|(n, v)| (n, fill(v, lookup))).collect();
    Labels::from_pairs(pairs.iter().map(|(n, v)| (*n, v.as_str())))
}

/// Fills in as Go's `os.Expand` does.
fn fill(text: &str, lookup: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, used) = name(rest);
        match name {
            Some("$") => out.push('$'),
            Some(name) => out.push_str(&lookup(name)),
            // A dollar before nothing that could be a name stays; `${}` is swallowed.
            None if used == 0 => out.push('$'),
            None => {}
        }
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

/// The name behind a dollar and how many bytes it takes.
fn name(rest: &str) -> (Option<&str>, usize) {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let is_special = |c: char| "*#$@!?-".contains(c) || c.is_ascii_digit();
    if let Some(braced) = rest.strip_prefix('{') {
        return match braced.find('}') {
            Some(0) => (None, 2),
            Some(end) => (Some(&braced[..end]), end + 2),
            None => (None, 1),
        };
    }
    match rest.chars().next() {
        Some(c) if is_special(c) => (Some(&rest[..1]), 1),
        _ => {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            ((end > 0).then(|| &rest[..end]), end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let lookup = |name: &str| {
            if name == "TEST" {
                "value".to_owned()
            } else {
                String::new()
            }
        };
        assert_eq!(fill(text, lookup), want, "{text}");
    }

    #[test]
    fn variables_are_filled_in_as_in_go() {
        check("foo", "foo");
        check("foo${TEST}bar", "foovaluebar");
        check("foo$TEST", "foovalue");
        check("foo$$bar", "foo$bar");
        check("foo${NONE}", "foo");
        check("a$ b", "a$ b");
        check("${}", "");
        check("${TEST", "TEST");
        check("é$1", "é");
    }
}
