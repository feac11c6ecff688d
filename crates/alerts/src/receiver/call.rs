//! One message being told: its data, its texts, and what went wrong with them.
//!
//! A template that fails does not keep a message from people: the receiver's default text stands in for it, and
//! where that fails too (it was redefined), ours. What failed is a remark: it stands in the message's body, in the
//! delivery and in a metric.

use std::sync::{Mutex, PoisonError};

use config::alertmanager::Found;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use template::function::Env;
use template::notification::Data;

use super::client;
use super::failure::Failure;
use super::line::Line;
use crate::engine::Notification;
use crate::payload;

/// The most bytes of a remark.
const REMARK_BYTES_MAX: usize = 300;

/// One message on its way through a receiver.
#[derive(Debug)]
pub struct Call<'a> {
    /// The line to the receiver.
    pub line: &'a Line,
    /// Its settings.
    pub settings: &'a Found,
    /// What is told.
    pub notification: &'a Notification,
    /// The same for templates.
    pub data: Data,
    remarks: Mutex<Vec<String>>,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Text,
    /// As HTML, values escaped.
    Html,
}

impl<'a> Call<'a> {
    /// A message for a receiver.
    pub fn new(line: &'a Line, settings: &'a Found, notification: &'a Notification) -> Self {
        Self {
            line,
            settings,
            notification,
            data: payload::data(notification, &line.external_url),
            remarks: Mutex::default(),
        }
    }

    /// Whether nothing in it fires any more.
    pub fn is_resolved(&self) -> bool {
        self.data.status == "resolved"
    }

    /// The group's key as a name that is short, the same each time, and tells nothing.
    pub fn group_hash(&self) -> String {
        hex(&Sha256::digest(self.notification.group_key.as_bytes()))
    }

    /// The text of a setting, filled in; `default` where it is not written.
    pub fn text(&self, key: &str, default: &str) -> String {
        self.fill(Form::Text, key, self.settings.text_or(key, default), default)
    }

    /// The same for the part of a message in which most is told: what went wrong before stands below it.
    pub fn body(&self, form: Form, key: &str, default: &str) -> String {
        let mut text = self.fill(form, key, self.settings.text_or(key, default), default);
        let remarks = self.remarks();
        if !remarks.is_empty() {
            let note = format!("(Watchfire: {remarks})");
            let (gap, note) = match form {
                Form::Text => ("\n\n", note),
                Form::Html => ("\n", escape(&note)),
            };
            text = text.trim_end().to_owned() + gap + &note;
        }
        text
    }

    /// A template filled in; one that fails is remarked, and `default` stands in for it.
    pub fn fill(&self, form: Form, what: &str, template: &str, default: &str) -> String {
        match self.expand(form, template) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("the template of {what} failed: {error}");
                self.remark(message);
                let stand_in = if template == default {
                    Err(String::new())
                } else {
                    self.expand(form, default)
                };
                // Ours alone cannot fail: a test fills each of them in.
                stand_in.unwrap_or_else(|_| self.own(form, default))
            }
        }
    }

    /// A template filled in, where no other text can stand in for it: an address, a key.
    pub fn needed(&self, what: &str, template: &str) -> Result<String, Failure> {
        let failed = |e| Failure::last(format!("the template of {what} failed: {e}"));
        self.expand(Form::Text, template).map_err(failed)
    }

    fn expand(&self, form: Form, template: &str) -> Result<String, String> {
        if !template.contains("{{") {
            return Ok(template.to_owned());
        }
        let templates = &self.line.templates.all;
        self.write(templates, form, template).map_err(|e| e.to_string())
    }

    fn own(&self, form: Form, template: &str) -> String {
        self.write(&self.line.templates.own, form, template).unwrap_or_default()
    }

    fn write(&self, templates: &template::Notification, form: Form, template: &str) -> Result<String, template::Error> {
        let env = Env {
            external_url: &self.line.external_url,
            ..Env::at(self.notification.at)
        };
        match form {
            Form::Text => templates.text(template, &self.data, &env),
            Form::Html => templates.html(template, &self.data, &env),
        }
    }

    /// A value of any shape whose texts are templates; `""` where one fails. A text that fills in as JSON or as a
    /// number becomes what it reads as.
    pub fn tree(&self, what: &str, node: &config::yaml::Node) -> Value {
        use config::yaml::Value as Yaml;
        match &node.value {
            Yaml::Null => Value::Null,
            Yaml::List(items) => items.iter().map(|item| self.tree(what, item)).collect(),
            Yaml::Map(pairs) => {
                let pair = |(key, value): &(config::yaml::Key, _)| {
                    let name = self.fill(Form::Text, what, &key.text, "");
                    (name, self.tree(what, value))
                };
                Value::Object(pairs.iter().map(pair).collect::<Map<_, _>>())
            }
            Yaml::Scalar(scalar) => {
                let text = self.fill(Form::Text, what, &scalar.text, "");
                let written = !scalar.plain && text == scalar.text;
                if written { Value::String(text) } else { plain(&text) }
            }
        }
    }

    /// A secret, in place or from a file read now; it may be a template.
    pub async fn secret(&self, key: &str, file_key: &str) -> Result<String, Failure> {
        let file = self.settings.text(file_key);
        let read = client::secret(self.settings.text(key), file).await;
        let text = read.map_err(Failure::passing)?;
        if text.is_empty() {
            let place = if file.is_empty() { key } else { file };
            return Err(Failure::last(format!("{place} is empty")));
        }
        self.needed(key, &text)
    }

    /// Remembers what went wrong although the message goes.
    pub fn remark(&self, message: String) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if !remarks.contains(&message) {
            remarks.push(message);
        }
    }

    /// What went wrong although the message goes, in one line; empty when nothing.
    pub fn remarks(&self) -> String {
        let remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = remarks.join("; ");
        text.truncate(text.floor_char_boundary(REMARK_BYTES_MAX));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// What a filled-in text reads as: a number, a truth value, a list or a map; else it is the text.
fn plain(text: &str) -> Value {
    match serde_json::from_str(text.trim()) {
        Ok(Value::String(_)) | Err(_) => Value::String(text.to_owned()),
        Ok(value) => value,
    }
}

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// At most so many characters; what is cut ends in `…`.
pub fn cut_chars(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// At most so many bytes; what is cut ends in `…`.
pub fn cut_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// A list without the members that say nothing.
pub fn split(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// An object of the pairs that say something.
pub fn object<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    let says =
        |value: &Value| !(value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty));
    let pairs = pairs.into_iter().filter(|(_, value)| says(value));
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut_chars("äöü", 3), "äöü");
        assert_eq!(cut_chars("äöüß", 3), "äö…");
        assert_eq!(cut_bytes("äöüß", 8), "äöüß");
        assert_eq!(cut_bytes("äöüß", 7), "äö…");
        assert_eq!(cut_bytes("abcdef", 5), "ab…");
    }

    #[test]
    fn a_filled_in_text_becomes_what_it_reads_as() {
        for (text, want) in [
            ("5", Value::from(5)),
            ("true", Value::from(true)),
            ("[1]", serde_json::json!([1])),
            ("a: b", Value::from("a: b")),
            ("", Value::from("")),
            ("\"x\"", Value::from("\"x\"")),
        ] {
            assert_eq!(plain(text), want);
        }
    }
}
