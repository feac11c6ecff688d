//! Regular expressions in templates.

use regex::{Regex, RegexBuilder};

/// The largest compiled pattern, in bytes.
const SIZE_MAX: usize = 1 << 20;

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(SIZE_MAX)
        .build()
        .map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or("").trim();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            format!("error parsing regexp: {reason}: `{pattern}`")
        })
}

/// Whether the pattern is found anywhere in the text.
pub(crate) fn is_match(pattern: &str, text: &str) -> Result<bool, String> {
    Ok(compile(pattern)?.is_match(text))
}

/// The text with every match replaced; `$1` and `${name}` stand for groups.
pub(crate) fn replace_all(pattern: &str, with: &str, text: &str) -> Result<String, String> {
    Ok(compile(pattern)?.replace_all(text, with).into_owned())
}
