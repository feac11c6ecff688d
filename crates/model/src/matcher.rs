//! A label matcher: `=`, `!=`, `=~`, `!~`. Regular expressions match the whole value.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use crate::labels::{Labels, is_legacy_label_name};
use crate::text::quote;

/// How a matcher compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
}

impl fmt::Display for MatchOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Regex => "=~",
            Self::NotRegex => "!~",
        })
    }
}

/// The pattern of a matcher does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{pattern}`")]
pub struct RegexError {
    /// The pattern as written.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The largest compiled pattern, in bytes.
const REGEX_SIZE_MAX: usize = 10 << 20;

/// One condition on one label.
#[derive(Debug, Clone)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    /// How to compare.
    pub op: MatchOp,
    /// The value or pattern as written.
    pub value: String,
    pattern: Option<Arc<Pattern>>,
}

#[derive(Debug)]
struct Pattern {
    /// The finite set of values the pattern accepts, where it is one (`a|b|c`): no automaton is needed then.
    set: Option<Vec<String>>,
    /// Text that every accepted value begins with.
    prefix: String,
    regex: Regex,
}

impl Matcher {
    /// A matcher; a pattern is compiled anchored at both ends, with `.` matching newlines.
    ///
    /// # Errors
    ///
    /// [`RegexError`] when `value` is not a regular expression and `op` needs one.
    pub fn new(op: MatchOp, name: impl Into<String>, value: impl Into<String>) -> Result<Self, RegexError> {
        let (name, value) = (name.into(), value.into());
        let pattern = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(Arc::new(Pattern::compile(&value)?)),
        };
        Ok(Self {
            name,
            op,
            value,
            pattern,
        })
    }

    /// `name="value"`.
    #[must_use]
    pub fn equal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            op: MatchOp::Equal,
            value: value.into(),
            pattern: None,
        }
    }

    /// Whether a label of this value passes; an absent label has the empty value.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        match (self.op, &self.pattern) {
            (MatchOp::Equal, _) => value == self.value,
            (MatchOp::NotEqual, _) => value != self.value,
            (MatchOp::Regex, Some(pattern)) => pattern.matches(value),
            (MatchOp::NotRegex, Some(pattern)) => !pattern.matches(value),
            (MatchOp::Regex | MatchOp::NotRegex, None) => false,
        }
    }

    /// Whether the set passes this matcher.
    #[must_use]
    pub fn matches_labels(&self, labels: &Labels) -> bool {
        self.matches(labels.get(&self.name).unwrap_or(""))
    }

    /// Whether a series without this label passes.
    #[must_use]
    pub fn matches_empty(&self) -> bool {
        self.matches("")
    }

    /// The finite set of values that `=` or `=~` accepts, where there is one: the index then looks up, and does not scan.
    #[must_use]
    pub fn set(&self) -> Option<&[String]> {
        match self.op {
            MatchOp::Equal => Some(std::slice::from_ref(&self.value)),
            MatchOp::Regex => self.pattern.as_ref()?.set.as_deref(),
            MatchOp::NotEqual | MatchOp::NotRegex => None,
        }
    }

    /// Text that every value accepted by the pattern begins with (possibly empty).
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.pattern.as_ref().map_or("", |p| &p.prefix)
    }

    /// The compiled pattern of `=~` and `!~`, anchored.
    #[must_use]
    pub fn regex(&self) -> Option<&Regex> {
        self.pattern.as_ref().map(|p| &p.regex)
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (self.op, &self.name, &self.value) == (other.op, &other.name, &other.value)
    }
}

impl Eq for Matcher {}

impl std::hash::Hash for Matcher {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.op, &self.name, &self.value).hash(state);
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_legacy_label_name(&self.name) {
            write!(f, "{}{}{}", self.name, self.op, quote(&self.value))
        } else {
            write!(f, "{}{}{}", quote(&self.name), self.op, quote(&self.value))
        }
    }
}

/// Compiles `pattern` so that it must match a whole text, as every regular expression of the field does.
///
/// # Errors
///
/// [`RegexError`] when it is not a regular expression or compiles to more than ten megabytes.
pub fn anchored(pattern: &str) -> Result<Regex, RegexError> {
    let error = |reason: String| RegexError {
        pattern: pattern.to_owned(),
        reason,
    };
    // Parsed alone first: `a)(b` would become valid inside the anchoring group.
    regex_syntax::Parser::new()
        .parse(pattern)
        .map_err(|e| error(reason(&e.to_string())))?;
    regex::RegexBuilder::new(&format!("^(?s:{pattern})$"))
        .size_limit(REGEX_SIZE_MAX)
        .build()
        .map_err(|e| error(reason(&e.to_string())))
}

/// The last line of the library's drawn message, which says what is wrong.
fn reason(message: &str) -> String {
    let last = message
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .unwrap_or(message)
        .trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The largest finite set kept beside a pattern.
const SET_MAX: usize = 1000;

impl Pattern {
    fn compile(text: &str) -> Result<Self, RegexError> {
        let regex = anchored(text)?;
        let hir = regex_syntax::parse(text).ok();
        let set = hir.as_ref().and_then(finite_set);
        let prefix = hir.as_ref().map(literal_prefix).unwrap_or_default();
        Ok(Self { set, prefix, regex })
    }

    fn matches(&self, value: &str) -> bool {
        match &self.set {
            Some(set) if set.len() <= 16 => set.iter().any(|s| s == value),
            Some(set) => set.binary_search_by(|s| s.as_str().cmp(value)).is_ok(),
            None => value.starts_with(&self.prefix) && self.regex.is_match(value),
        }
    }
}

/// All texts a pattern accepts, sorted, if they are few and the pattern is case-sensitive literals and alternations.
fn finite_set(hir: &regex_syntax::hir::Hir) -> Option<Vec<String>> {
    let mut extractor = regex_syntax::hir::literal::Extractor::new();
    extractor
        .kind(regex_syntax::hir::literal::ExtractKind::Prefix)
        .limit_total(SET_MAX)
        .limit_class(10)
        .limit_repeat(4);
    if hir.properties().look_set().is_empty() {
        let seq = extractor.extract(hir);
        if !seq.is_exact() {
            return None;
        }
        let mut set = Vec::new();
        for literal in seq.literals()? {
            set.push(String::from_utf8(literal.as_bytes().to_vec()).ok()?);
        }
        set.sort_unstable();
        set.dedup();
        return Some(set);
    }
    None
}

fn literal_prefix(hir: &regex_syntax::hir::Hir) -> String {
    use regex_syntax::hir::HirKind;
    let bytes: &[u8] = match hir.kind() {
        HirKind::Literal(literal) => &literal.0,
        HirKind::Concat(parts) => match parts.first().map(regex_syntax::hir::Hir::kind) {
            Some(HirKind::Literal(literal)) => &literal.0,
            _ => return String::new(),
        },
        _ => return String::new(),
    };
    std::str::from_utf8(bytes).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let matcher = Matcher::new(MatchOp::Regex, "l", pattern).expect("a pattern of the table");
        let not = Matcher::new(MatchOp::NotRegex, "l", pattern).expect("a pattern of the table");
        for value in yes {
            assert!(
                matcher.matches(value) && !not.matches(value),
                "{pattern} should match {value}"
            );
        }
        for value in no {
            assert!(
                !matcher.matches(value) && not.matches(value),
                "{pattern} should not match {value}"
            );
        }
    }

    #[test]
    fn patterns_match_the_whole_value() {
        check("a|b", &["a", "b"], &["", "ab", "c"]);
        check("DCGM_.*", &["DCGM_", "DCGM_X", "DCGM_\n"], &["XDCGM_", ""]);
        check(".+", &["x", "\n"], &[""]);
        check("", &[""], &["x"]);
        check("(?i)up", &["UP", "up", "Up"], &["u"]);
        check("a?", &["", "a"], &["aa"]);
        check("foo(bar|baz)", &["foobar", "foobaz"], &["foo", "bar"]);
        check("[0-9]{2}", &["42"], &["4", "423"]);
        check("^a$", &["a"], &["b"]);
    }

    #[test]
    fn finite_patterns_are_sets() {
        let set = |p: &str| {
            Matcher::new(MatchOp::Regex, "l", p)
                .expect("valid")
                .set()
                .map(<[String]>::to_vec)
        };
        assert_eq!(set("b|a|b"), Some(vec!["a".into(), "b".into()]));
        assert_eq!(set("foo(bar|baz)"), Some(vec!["foobar".into(), "foobaz".into()]));
        assert_eq!(set("a.*"), None);
        assert_eq!(set("^a$"), None);
        assert_eq!(
            Matcher::new(MatchOp::Regex, "l", "ab.*c").expect("valid").prefix(),
            "ab"
        );
    }

    #[test]
    fn a_broken_pattern_says_why() {
        for pattern in ["(", "a)(b", "*", "[a"] {
            let error = Matcher::new(MatchOp::Regex, "l", pattern).expect_err("broken");
            assert_eq!(error.pattern, pattern);
            assert!(!error.reason.is_empty());
        }
    }
}
