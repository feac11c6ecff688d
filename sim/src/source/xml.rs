//! As much XML as `nvidia-smi` writes: elements, attributes that are passed over, text.
//!
//! Bounded in depth and count; anything that does not close is an error.

use crate::error::Error;

/// An element.
#[derive(Debug, Default)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

const DEPTH_MAX: usize = 32;
const ELEMENTS_MAX: usize = 500_000;

impl Element {
    /// The first element on a path of names.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |element, name| {
            element.children.iter().find(|child| child.name == name)
        })
    }

    /// The text of the first element on a path, unless it says that there is none.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        let text = self.find(path)?.text.trim();
        let none = text.is_empty() || matches!(text.trim_matches(['[', ']']), "N/A" | "Not Supported");
        (!none).then_some(text)
    }

    /// All children of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Reads a document; gives a nameless element that has the outermost one as its child.
pub(super) fn parse(text: &str) -> Result<Element, Error> {
    let fail = |what: &str| Error::Parse {
        message: format!("XML: {what}"),
    };
    let mut open = vec![Element::default()];
    let mut elements = 0;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        if let Some(element) = open.last_mut() {
            element.text.push_str(&unescaped(&rest[..start]));
        }
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->").ok_or_else(|| fail("a comment does not end"))? + 3..];
            continue;
        }
        let end = rest.find('>').ok_or_else(|| fail("a tag does not end"))?;
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if tag.starts_with(['?', '!']) {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.pop().filter(|element| element.name == name.trim());
            match (closed, open.last_mut()) {
                (Some(element), Some(parent)) => parent.children.push(element),
                _ => return Err(fail(&format!("</{name}> closes nothing"))),
            }
            continue;
        }
        elements += 1;
        if open.len() > DEPTH_MAX || elements > ELEMENTS_MAX {
            return Err(fail("too deep or too long"));
        }
        let (tag, empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let element = Element {
            name: tag.split_whitespace().next().unwrap_or("").to_owned(),
            ..Element::default()
        };
        match open.last_mut() {
            Some(parent) if empty => parent.children.push(element),
            _ => open.push(element),
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(root),
        _ => Err(fail("it ends within an element")),
    }
}

fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
