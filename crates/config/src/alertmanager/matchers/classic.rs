//! The older syntax: names of the old alphabet, values nearly free.

use model::{MatchOp, Matcher};

/// Reads a list of matchers in the older syntax.
///
/// # Errors
///
/// Why the text is not such a list.
pub fn parse(text: &str) -> Result<Vec<Matcher>, String> {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    split(inner).iter().map(|part| one(part)).collect()
}

/// Splits at commas outside of quotes; what is empty at the end is dropped.
fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            ',' if !quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            '"' if escaped => escaped = false,
            '"' => quoted = !quoted,
            '\\' => escaped = !escaped,
            // A comma inside quotes leaves a pending backslash as it is.
            ',' => {}
            _ => escaped = false,
        }
        part.push(c);
    }
    let last = part.trim();
    if !last.is_empty() {
        parts.push(last.to_owned());
    }
    parts
}

fn one(text: &str) -> Result<Matcher, String> {
    let bad = || format!("bad matcher format: {text}");
    let rest = text.trim_start_matches(is_space);
    let is_name = |c: char| c == '_' || c == ':' || c.is_ascii_alphanumeric();
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(bad());
    }
    let rest = rest.trim_start_matches(is_space);
    let operators = [
        ("=~", MatchOp::Regex),
        ("=", MatchOp::Equal),
        ("!=", MatchOp::NotEqual),
        ("!~", MatchOp::NotRegex),
    ];
    let found = operators
        .iter()
        .find_map(|(sign, op)| rest.strip_prefix(sign).map(|r| (*op, r)));
    let (op, rest) = found.ok_or_else(bad)?;
    let raw = rest.trim_matches(is_space);
    let value = unescape(raw).ok_or_else(|| format!("matcher value contains unescaped double quote: {raw}"))?;
    Matcher::new(op, name, value).map_err(|e| e.to_string())
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// Takes quotes and escapes away; `None` where a quote stands alone.
fn unescape(raw: &str) -> Option<String> {
    let (inner, mut wants_quote) = match raw.strip_prefix('"') {
        Some(inner) => (inner, true),
        None => (raw, false),
    };
    let mut out = String::new();
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        let last = at + 1 >= inner.len();
        match c {
            'n' if escaped => out.push('\n'),
            '"' | '\\' if escaped => out.push(c),
            // An escape of nothing special is two plain signs.
            _ if escaped => out.extend(['\\', c]),
            '\\' if !last => {
                escaped = true;
                continue;
            }
            '"' if wants_quote && last => wants_quote = false,
            '"' => return None,
            _ => out.push(c),
        }
        escaped = false;
    }
    (!wants_quote).then_some(out)
}
