//! Escaping for the place where a value stands in a page: text, attribute, address, script.
//!
//! The place is known from the literal text written so far. Values never change it: they are escaped.
//! Comments are left out. What has no safe form (styles, names of attributes) becomes `ZgotmplZ`, as in Go.

use crate::escape;
use crate::print::{json, plain};
use crate::value::{Safe, Value};

/// Where in the page the next character stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Text,
    /// After `<`, in the name of an element.
    ElementName(String),
    /// Between attributes.
    Tag,
    AttributeName(String),
    /// After `=`.
    BeforeValue(Kind),
    /// In a value; without quotes it ends at a space or `>`.
    Attribute {
        kind: Kind,
        quote: Option<char>,
    },
    Comment,
    /// In an element whose content is no markup, up to its end tag.
    Raw(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Address(AddressPart),
    Script,
    Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressPart {
    Start,
    Path,
    Query,
}

/// Follows a page as it is written.
#[derive(Debug, Default)]
pub(crate) struct Html {
    place: Place,
    /// The element that the tag being read opens.
    element: String,
}

const UNSAFE: &str = "ZgotmplZ";

impl Html {
    /// Writes literal text and follows it.
    pub(crate) fn literal(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let len = self.advance(c, rest, out);
            rest = &rest[len..];
        }
    }

    /// Takes one character, or a few that belong together; gives how many bytes.
    fn advance(&mut self, c: char, rest: &str, out: &mut String) -> usize {
        let place = std::mem::take(&mut self.place);
        let mut len = c.len_utf8();
        let mut is_kept = true;
        self.place = match place {
            Place::Text if rest.starts_with("<!--") => {
                (len, is_kept) = (4, false);
                Place::Comment
            }
            Place::Text if c == '<' => Place::ElementName(String::new()),
            Place::Text => Place::Text,
            Place::Comment => {
                is_kept = false;
                if rest.starts_with("-->") {
                    len = 3;
                    Place::Text
                } else {
                    Place::Comment
                }
            }
            Place::ElementName(mut name) => match c {
                '>' => self.opened(&name),
                c if c.is_whitespace() => {
                    self.element = name;
                    Place::Tag
                }
                c => {
                    name.push(c.to_ascii_lowercase());
                    Place::ElementName(name)
                }
            },
            Place::Tag | Place::AttributeName(_) if c == '>' => self.opened(&self.element.clone()),
            Place::Tag if c.is_whitespace() || c == '/' => Place::Tag,
            Place::Tag => Place::AttributeName(c.to_ascii_lowercase().to_string()),
            Place::AttributeName(name) if c == '=' => Place::BeforeValue(kind_of(&name)),
            Place::AttributeName(_) if c.is_whitespace() => Place::Tag,
            Place::AttributeName(mut name) => {
                name.push(c.to_ascii_lowercase());
                Place::AttributeName(name)
            }
            Place::BeforeValue(_) if c == '>' => self.opened(&self.element.clone()),
            Place::BeforeValue(kind) if c.is_whitespace() => Place::BeforeValue(kind),
            Place::BeforeValue(kind) => match c {
                '"' | '\'' => Place::Attribute { kind, quote: Some(c) },
                _ => Place::Attribute {
                    kind: after(kind, c),
                    quote: None,
                },
            },
            Place::Attribute { quote: Some(quote), .. } if c == quote => Place::Tag,
            Place::Attribute { quote: None, .. } if c == '>' => self.opened(&self.element.clone()),
            Place::Attribute { quote: None, .. } if c.is_whitespace() => Place::Tag,
            Place::Attribute { kind, quote } => Place::Attribute {
                kind: after(kind, c),
                quote,
            },
            Place::Raw(kind) => {
                let end = format!("</{}", self.element);
                match rest.get(..end.len()) {
                    Some(tag) if tag.eq_ignore_ascii_case(&end) => Place::ElementName(String::new()),
                    _ => Place::Raw(kind),
                }
            }
        };
        if is_kept {
            out.push_str(&rest[..len]);
        }
        len
    }

    /// The place after the tag of `name`.
    fn opened(&mut self, name: &str) -> Place {
        name.clone_into(&mut self.element);
        match name {
            "script" => Place::Raw(Kind::Script),
            "style" => Place::Raw(Kind::Style),
            "textarea" | "title" => Place::Raw(Kind::Text),
            _ => Place::Text,
        }
    }

    /// A value, escaped for this place.
    pub(crate) fn value(&mut self, value: &Value) -> String {
        let text = match value {
            Value::Nil => String::new(),
            value => plain(value),
        };
        let kind = match &mut self.place {
            Place::Text => {
                return match value {
                    Value::Safe(Safe::Html, text) => text.to_string(),
                    _ => escape_text(&text),
                };
            }
            Place::Comment => return String::new(),
            Place::ElementName(_) | Place::Tag | Place::AttributeName(_) => return attribute_name(&text),
            Place::BeforeValue(kind) => {
                let kind = *kind;
                self.place = Place::Attribute { kind, quote: None };
                kind
            }
            Place::Attribute { kind, .. } | Place::Raw(kind) => {
                let before = *kind;
                if let (Kind::Address(AddressPart::Start), false) = (*kind, text.is_empty()) {
                    *kind = Kind::Address(AddressPart::Path);
                }
                before
            }
        };
        let is_raw = matches!(self.place, Place::Raw(_));
        let escaped = match kind {
            Kind::Text => escape_text(&text),
            Kind::Style => UNSAFE.to_owned(),
            Kind::Script if is_raw => script(value),
            Kind::Script => escape_text(&script(value)),
            Kind::Address(part) => {
                let is_safe = matches!(value, Value::Safe(Safe::Url, _));
                escape_text(&address(&text, part, is_safe))
            }
        };
        match self.place {
            Place::Attribute { quote: None, .. } => without_spaces(&escaped),
            _ => escaped,
        }
    }
}

/// What an attribute holds.
fn kind_of(name: &str) -> Kind {
    match name {
        "style" => Kind::Style,
        name if name.starts_with("on") => Kind::Script,
        "href" | "src" | "action" | "formaction" | "cite" | "data" | "poster" | "background" | "manifest"
        | "longdesc" | "usemap" | "codebase" | "classid" | "profile" | "icon" => Kind::Address(AddressPart::Start),
        name if name.starts_with("xlink:href")
            || name.contains("src")
            || name.contains("uri")
            || name.contains("url") =>
        {
            Kind::Address(AddressPart::Start)
        }
        _ => Kind::Text,
    }
}

const fn after(kind: Kind, c: char) -> Kind {
    match kind {
        Kind::Address(_) if matches!(c, '?' | '#') => Kind::Address(AddressPart::Query),
        Kind::Address(AddressPart::Start) => Kind::Address(AddressPart::Path),
        kind => kind,
    }
}

fn escape_text(text: &str) -> String {
    escape::html(text).replace('+', "&#43;")
}

/// For a value without quotes around it.
fn without_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '=' | '`' => out.push_str(&format!("&#{};", c as u32)),
            c => out.push(c),
        }
    }
    out
}

fn attribute_name(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(char::is_alphanumeric);
    match is_plain && kind_of(&text.to_ascii_lowercase()) == Kind::Text {
        true => text.to_owned(),
        false => UNSAFE.to_owned(),
    }
}

/// A value as JavaScript.
fn script(value: &Value) -> String {
    json(value).unwrap_or_else(|_| "null".to_owned())
}

/// A piece of an address; in its query everything but letters and digits is encoded.
fn address(text: &str, part: AddressPart, is_safe: bool) -> String {
    if part == AddressPart::Start && !is_safe && !has_good_scheme(text) {
        return format!("#{UNSAFE}");
    }
    let keeps_marks = is_safe || part != AddressPart::Query;
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    for (at, byte) in bytes.iter().enumerate() {
        let is_kept = match byte {
            b if escape::is_unreserved(*b) => true,
            b'%' => {
                let encoded = bytes
                    .get(at + 1..at + 3)
                    .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
                keeps_marks && encoded
            }
            b => keeps_marks && b"!#$&*+,/:;=?@[]".contains(b),
        };
        match is_kept {
            true => out.push(char::from(*byte)),
            false => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn has_good_scheme(text: &str) -> bool {
    match text.split_once(':') {
        Some((scheme, _)) if !scheme.contains('/') => ["http", "https", "mailto"]
            .iter()
            .any(|good| scheme.eq_ignore_ascii_case(good)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, value: impl Into<Value>, want: &str) {
        let mut html = Html::default();
        let mut out = String::new();
        html.literal(before, &mut out);
        assert_eq!(html.value(&value.into()), want, "{before}");
    }

    #[test]
    fn values_are_escaped_for_their_place() {
        check("<p>", "<b>", "&lt;b&gt;");
        check("<p>", Value::Safe(Safe::Html, "<b>".into()), "<b>");
        check("<p title=\"", "a\"b", "a&#34;b");
        check("<a href=\"/search?", "name=gpu%203", "name%3dgpu%25203");
        check(
            "<a href=\"/search?",
            Value::Safe(Safe::Url, "name=gpu%203".into()),
            "name=gpu%203",
        );
        check("<a href=\"", "http://x/#/a?b=1&c", "http://x/#/a?b=1&amp;c");
        check("<a href='", "javascript:alert(1)", "#ZgotmplZ");
        check("<script>var x = ", "</script>", "\"\\u003c/script\\u003e\"");
        check("<style>a { color: ", "red", "ZgotmplZ");
        check("<!-- ", "x", "");
        check("<p title=", "a b", "a&#32;b");
        check("<br><b>x</b>", Value::Nil, "");
    }
}
