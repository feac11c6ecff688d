//! From parser events to nodes, within bounds.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use model::text::Span;

use super::{Fault, Key, Node, Result, Scalar, Value};

/// The most nodes of a file, expanded aliases included: a bomb stops here.
const NODES_MAX: usize = 5_000_000;
/// The most bytes of text of a file, expanded aliases included.
const TEXT_BYTES_MAX: usize = 512 << 20;
/// The deepest nesting, expanded aliases included.
const DEPTH_MAX: usize = 200;

/// Reads the first document of a text. An empty text is a null.
///
/// # Errors
///
/// A fault where the text is not YAML, a key stands twice in one mapping, or a bound is passed.
pub fn parse(text: &str) -> Result<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    Composer {
        parser,
        text,
        anchors: HashMap::new(),
        nodes: 0,
        bytes: 0,
    }
    .document()
}

struct Composer<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
}

impl<'t> Composer<'t> {
    fn document(mut self) -> Result<Node> {
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => {
                    return Ok(Node { at, value: Value::Null });
                }
                event => return self.node(event, at, 0),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span)> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, Span::new(self.text.len(), self.text.len()))),
            Some(Ok((event, span))) => {
                let start = span.start.byte_offset().unwrap_or(0);
                let end = span.end.byte_offset().unwrap_or(start);
                Ok((event, Span::new(start, end.max(start))))
            }
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or(0).min(self.text.len());
                Err(Fault::new(
                    Span::new(at, at),
                    format!("not valid YAML: {}", error.info()),
                ))
            }
        }
    }

    fn node(&mut self, event: Event<'t>, at: Span, depth: usize) -> Result<Node> {
        if depth > DEPTH_MAX {
            return Err(Fault::new(at, "nested too deeply"));
        }
        let (anchor, node) = match event {
            Event::Alias(id) => return self.alias(id, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref()).map_err(|m| Fault::new(at, m))?;
                (anchor, Node { at, value })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(at, depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.mapping(at, depth)?),
            _ => return Err(Fault::new(at, "not valid YAML: a value is missing")),
        };
        self.charge(&node, false)?;
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, at: Span, depth: usize) -> Result<Node> {
        let mut nodes = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let value = Value::List(nodes);
                return Ok(Node { at, value });
            }
            nodes.push(self.node(event, place, depth + 1)?);
        }
    }

    fn mapping(&mut self, at: Span, depth: usize) -> Result<Node> {
        let mut pairs: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashSet::new();
        let mut merged = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = key_of(self.node(event, place, depth + 1)?)?;
            let (event, place) = self.next()?;
            let value = self.node(event, place, depth + 1)?;
            if key.text == "<<" {
                merged.push(value);
                continue;
            }
            if !seen.insert(key.text.clone()) {
                return Err(Fault::new(
                    key.at,
                    format!("field {} already set in this mapping", key.text),
                ));
            }
            pairs.push((key, value));
        }
        for node in merged {
            merge(node, &mut pairs, &mut seen)?;
        }
        let value = Value::Map(pairs);
        Ok(Node { at, value })
    }

    fn alias(&mut self, id: usize, at: Span, depth: usize) -> Result<Node> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(Fault::new(at, "an alias stands inside its own anchor"));
        };
        if depth + height(node) > DEPTH_MAX {
            return Err(Fault::new(at, "nested too deeply"));
        }
        let node = node.clone();
        self.charge(&node, true).map_err(|fault| Fault { at, ..fault })?;
        Ok(node)
    }

    /// Counts a node, and where `whole` all below it, against the file's bounds.
    fn charge(&mut self, node: &Node, whole: bool) -> Result<()> {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            self.nodes += 1;
            match &node.value {
                Value::Scalar(scalar) => self.bytes += scalar.text.len(),
                Value::List(nodes) if whole => open.extend(nodes),
                Value::Map(pairs) if whole => open.extend(pairs.iter().map(|(_, n)| n)),
                _ => {}
            }
            if self.nodes > NODES_MAX || self.bytes > TEXT_BYTES_MAX {
                return Err(node.fault("too large: the file has too many values once its aliases are expanded"));
            }
        }
        Ok(())
    }
}

fn height(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(nodes) => nodes.iter().map(height).max().unwrap_or(0),
        Value::Map(pairs) => pairs.iter().map(|(_, n)| height(n)).max().unwrap_or(0),
        Value::Null | Value::Scalar(_) => 0,
    }
}

fn key_of(node: Node) -> Result<Key> {
    let at = node.at;
    match node.value {
        Value::Scalar(scalar) => Ok(Key {
            at,
            text: scalar.text,
            binary: scalar.binary,
        }),
        Value::Null => Ok(Key {
            at,
            text: String::new(),
            binary: false,
        }),
        Value::List(_) | Value::Map(_) => Err(Fault::new(at, "a key must be a single value")),
    }
}

/// Adds the pairs of a `<<` value whose keys are not there yet.
fn merge(node: Node, pairs: &mut Vec<(Key, Node)>, seen: &mut HashSet<String>) -> Result<()> {
    let at = node.at;
    match node.value {
        Value::Map(more) => {
            for (key, value) in more {
                if seen.insert(key.text.clone()) {
                    pairs.push((key, value));
                }
            }
            Ok(())
        }
        Value::List(nodes) => nodes.into_iter().try_for_each(|node| match node.value {
            Value::Map(_) => merge(node, pairs, seen),
            _ => Err(node.fault("map merge requires map or sequence of maps as the value")),
        }),
        Value::Null | Value::Scalar(_) => Err(Fault::new(
            at,
            "map merge requires map or sequence of maps as the value",
        )),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> std::result::Result<Value, String> {
    let plain = matches!(style, ScalarStyle::Plain);
    let tag = tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
    let tag = tag.as_deref();
    if tag == Some("binary") {
        return binary(text);
    }
    if plain && tag != Some("str") && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(Value::Null);
    }
    Ok(Value::Scalar(Scalar {
        text: text.to_owned(),
        plain: plain && tag != Some("str"),
        binary: false,
    }))
}

fn binary(text: &str) -> std::result::Result<Value, String> {
    let bytes = base64(text).ok_or("!!binary value contains invalid base64 data")?;
    let (text, binary) = match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (error.as_bytes().escape_ascii().to_string(), true),
    };
    Ok(Value::Scalar(Scalar {
        text,
        plain: false,
        binary,
    }))
}

/// Standard base64 with padding; line breaks are allowed between the digits.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    let groups = digits.len() / 4;
    for (i, group) in digits.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 != groups) {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &group[..4 - padding] {
            bits = bits << 6 | u32::from(base64_digit(*byte)?);
        }
        bits <<= 6 * padding;
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, want: &str) {
        let fault = parse(text).expect_err("a text of the table is refused");
        assert!(fault.message.contains(want), "{text:?}: {}", fault.message);
    }

    #[test]
    fn a_text_becomes_nodes_with_places() {
        let node = parse("a: 1\nb: [x, ~]\n").expect("valid");
        let pairs = node.map().expect("a mapping");
        assert_eq!(pairs[1].0.at, Span::new(5, 6));
        assert!(pairs[1].1.list().expect("a list")[1].is_null());
        assert!(parse("").expect("valid").is_null());
        assert!(parse("# only a comment\n").expect("valid").is_null());
    }

    #[test]
    fn merges_fill_in_and_do_not_overwrite() {
        let node = parse("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n").expect("valid");
        let used = &node.map().expect("a mapping")[1].1;
        let texts: Vec<_> = used
            .map()
            .expect("a mapping")
            .iter()
            .map(|(k, v)| format!("{}={}", k.text, v.scalar().expect("a scalar").text))
            .collect();
        assert_eq!(texts, ["y=3", "x=1"]);
    }

    #[test]
    fn broken_texts_are_refused_with_their_reason() {
        refused("a: 1\na: 2", "already set");
        refused("a: [", "not valid YAML");
        refused("a: *x", "not valid YAML");
        refused("a: !!binary \"/w==$1\"", "invalid base64");
        refused("<<: 5", "map merge requires");
        refused("{[a]: b}", "single value");
    }

    #[test]
    fn an_alias_bomb_and_a_deep_nest_stop_early() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let previous = format!("*a{}, ", i - 1).repeat(10);
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", previous.trim_end_matches(", ")));
        }
        refused(&bomb, "too large");
        refused(&"[".repeat(10_000), "");
        refused(&"- ".repeat(10_000), "");
        let mut deep = String::from("a0: &a0 [x]\n");
        for i in 1..400 {
            deep.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
        }
        refused(&deep, "deep");
    }
}
