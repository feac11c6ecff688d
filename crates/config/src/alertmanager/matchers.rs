//! Matchers as people write them: `severity="page"`, `{a=b, "c d"=~"e.*"}`.
//!
//! There are two syntaxes. The present one (`utf8`) takes any text as a name and wants quotes around
//! reserved signs; the older one (`classic`) is looser. [`parse_list`] accepts what either accepts, and
//! where they read a text differently the older reading holds, as in Alertmanager's default mode.

use std::fmt::Write as _;

use model::text::quote;
use model::{MatchOp, Matcher};

use crate::relabel::NameScheme;
use crate::yaml::{Decode, Fault, Fields, Node, Result};

mod classic;
mod utf8;

pub use classic::parse as parse_classic;
pub use utf8::parse as parse_utf8;

/// Reads a list of matchers, braces optional.
///
/// # Errors
///
/// Why neither syntax accepts it, in the words of the present one.
pub fn parse_list(text: &str) -> std::result::Result<Vec<Matcher>, String> {
    match (parse_utf8(text), parse_classic(text)) {
        (Ok(new), Ok(old)) if new != old => Ok(old),
        (Ok(new), _) => Ok(new),
        (Err(_), Ok(old)) => Ok(old),
        (Err(new), Err(_)) => Err(new),
    }
}

/// Which syntax is read, as Alertmanager's feature flags choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Both, the older reading going first where they differ: Alertmanager's own default.
    #[default]
    Fallback,
    /// The older one alone, and label names without signs: `classic-mode`.
    Classic,
    /// The present one alone: `utf8-strict-mode`.
    Utf8,
}

impl Mode {
    /// Reads a list of matchers, braces optional.
    ///
    /// # Errors
    ///
    /// Why the text is none in this mode.
    pub fn parse(self, text: &str) -> std::result::Result<Vec<Matcher>, String> {
        match self {
            Self::Fallback => parse_list(text),
            Self::Classic => parse_classic(text),
            Self::Utf8 => parse_utf8(text),
        }
    }

    /// Whether a text is the name of a label in this mode.
    #[must_use]
    pub fn label_name(self, name: &str) -> bool {
        match self {
            Self::Classic => model::labels::is_legacy_label_name(name),
            Self::Fallback | Self::Utf8 => NameScheme::Utf8.label_name(name),
        }
    }
}

impl Decode for Mode {
    fn decode(node: &Node) -> Result<Self> {
        let word: String = node.read()?;
        match word.as_str() {
            "fallback" => Ok(Self::Fallback),
            "classic" => Ok(Self::Classic),
            "utf8" => Ok(Self::Utf8),
            _ => Err(node.fault(format!("{word:?} is none of fallback, classic and utf8"))),
        }
    }
}

/// Reads exactly one matcher.
///
/// # Errors
///
/// Why the text is not one.
pub fn parse_one(text: &str) -> std::result::Result<Matcher, String> {
    let mut all = parse_list(text)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err("no matchers".to_owned()),
        (Some(_), more) => Err(format!("expected 1 matcher, found {}", more + 1)),
    }
}

/// Shows matchers as Alertmanager does, in keys of groups too: `{a="b",c=~"d"}`.
#[must_use]
pub fn show(matchers: &[Matcher]) -> String {
    let mut out = String::from("{");
    for (i, matcher) in matchers.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{}", show_one(matcher));
    }
    out.push('}');
    out
}

/// Shows one matcher: `a="b"`.
#[must_use]
pub fn show_one(matcher: &Matcher) -> String {
    if matcher.name.chars().any(is_reserved) {
        return format!("{}{}{}", quote(&matcher.name), matcher.op, quote(&matcher.value));
    }
    let value = matcher
        .value
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"");
    format!("{}{}\"{value}\"", matcher.name, matcher.op)
}

/// Sorts by name, value and operator.
pub fn sort(matchers: &mut [Matcher]) {
    let rank = |op: MatchOp| match op {
        MatchOp::Equal => 0,
        MatchOp::NotEqual => 1,
        MatchOp::Regex => 2,
        MatchOp::NotRegex => 3,
    };
    matchers.sort_by(|a, b| (&a.name, &a.value, rank(a.op)).cmp(&(&b.name, &b.value, rank(b.op))));
}

/// Signs that need quotes in the present syntax.
fn is_reserved(c: char) -> bool {
    c.is_whitespace() || "{}!=~,\\\"'`".contains(c)
}

/// Takes the three ways to write matchers (equal pairs, patterns, texts) and sorts what they give.
pub(super) fn take(fields: &mut Fields<'_>, keys: [&'static str; 3], mode: Mode) -> Result<Vec<Matcher>> {
    let mut all = Vec::new();
    for (name, value) in fields.node_of(keys[0]).map_or(Ok(&[][..]), Node::map)? {
        check_name(name.at, &name.text)?;
        all.push(Matcher::equal(name.text.clone(), value.read::<String>()?));
    }
    for (name, value) in fields.node_of(keys[1]).map_or(Ok(&[][..]), Node::map)? {
        check_name(name.at, &name.text)?;
        if value.is_null() {
            return Err(Fault::new(name.at, format!("invalid regexp value for {:?}", name.text)));
        }
        let pattern = format!("^(?:{})$", value.read::<String>()?);
        let matcher = Matcher::new(MatchOp::Regex, name.text.clone(), pattern);
        all.push(matcher.map_err(|e| value.fault(e.to_string()))?);
    }
    for node in fields.list_of(keys[2])? {
        let text: String = node.read()?;
        all.extend(mode.parse(&text).map_err(|message| node.fault(message))?);
    }
    sort(&mut all);
    Ok(all)
}

fn check_name(at: model::text::Span, name: &str) -> Result<()> {
    if model::labels::is_legacy_label_name(name) {
        return Ok(());
    }
    Err(Fault::new(at, format!("invalid label name {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_reads_its_own_syntax() {
        for (text, fallback, classic, utf8) in [
            ("a=b", true, true, true),
            ("\"a b\"=c", true, false, true),
            ("a=b=c", true, true, false),
        ] {
            let read = [Mode::Fallback, Mode::Classic, Mode::Utf8].map(|mode| mode.parse(text).is_ok());
            assert_eq!(read, [fallback, classic, utf8], "{text}");
        }
        assert!(Mode::Fallback.label_name("a b") && !Mode::Classic.label_name("a b"));
    }
}
