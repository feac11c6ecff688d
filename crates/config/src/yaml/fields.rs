//! Reading a mapping key by key: what nobody asked for is an unknown field.

use super::{Decode, Fault, Key, Node, Result};

/// The entries of a mapping, with the memory of which keys were asked for.
#[derive(Debug)]
pub struct Fields<'n> {
    node: &'n Node,
    pairs: &'n [(Key, Node)],
    used: Vec<bool>,
    known: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    pub(super) fn of(node: &'n Node) -> Result<Self> {
        let pairs = node.map()?;
        Ok(Self {
            node,
            pairs,
            used: vec![false; pairs.len()],
            known: Vec::new(),
        })
    }

    /// The mapping itself, for faults about the whole.
    #[must_use]
    pub const fn node(&self) -> &'n Node {
        self.node
    }

    /// A fault about the whole mapping.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        self.node.fault(message)
    }

    /// A fault at a key's value, or at the mapping when the key is not there.
    pub fn fault_at(&self, key: &str, message: impl Into<String>) -> Fault {
        let place = self.pairs.iter().find(|(k, _)| k.text == key);
        let at = place.map_or(self.node.at, |(k, v)| if v.is_null() { k.at } else { v.at });
        Fault::new(at, message)
    }

    /// Whether the key was written, be it with a null.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(k, _)| k.text == key)
    }

    /// The value of a key, nulls included; `None` when it was not written.
    pub fn node_of(&mut self, key: &'static str) -> Option<&'n Node> {
        self.known.push(key);
        let at = self.pairs.iter().position(|(k, _)| k.text == key)?;
        self.used[at] = true;
        Some(&self.pairs[at].1)
    }

    /// The value of a key that is not null: for parts of which an empty one is as good as none.
    pub fn part(&mut self, key: &'static str) -> Option<&'n Node> {
        self.node_of(key).filter(|node| !node.is_null())
    }

    /// Reads a key; `None` when it was not written. A null is the type's empty value.
    ///
    /// # Errors
    ///
    /// A fault where the value is not of the type.
    pub fn get<T: Decode>(&mut self, key: &'static str) -> Result<Option<T>> {
        self.node_of(key).map(T::decode).transpose()
    }

    /// Reads a key or takes the default.
    ///
    /// # Errors
    ///
    /// A fault where the value is not of the type.
    pub fn or<T: Decode>(&mut self, key: &'static str, default: T) -> Result<T> {
        Ok(self.get(key)?.unwrap_or(default))
    }

    /// Reads a key or takes the type's empty value.
    ///
    /// # Errors
    ///
    /// A fault where the value is not of the type.
    pub fn or_empty<T: Decode + Default>(&mut self, key: &'static str) -> Result<T> {
        Ok(self.get(key)?.unwrap_or_default())
    }

    /// The nodes of a list under a key; empty when not written.
    ///
    /// # Errors
    ///
    /// A fault where the value is not a list.
    pub fn list_of(&mut self, key: &'static str) -> Result<&'n [Node]> {
        self.node_of(key).map_or(Ok(&[]), Node::list)
    }

    /// Keys written and not asked for so far.
    pub fn rest(&self) -> impl Iterator<Item = &'n (Key, Node)> + '_ {
        self.pairs
            .iter()
            .zip(&self.used)
            .filter(|(_, used)| !**used)
            .map(|(p, _)| p)
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// A fault at the first key nobody asked for, with the nearest known one.
    pub fn finish(&self) -> Result<()> {
        match self.rest().next() {
            None => Ok(()),
            Some((key, _)) => Err(Fault::new(key.at, unknown(&key.text, &self.known))),
        }
    }
}

fn unknown(key: &str, known: &[&'static str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(near) => format!("field {key} not found here; did you mean {near}?"),
        None => format!("field {key} not found here"),
    }
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 2).clamp(1, 5);
    candidates
        .into_iter()
        .map(|c| (distance(word, c), c))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, _)| *d <= allowed)
        .map(|(_, c)| c)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().take(64).flat_map(char::to_lowercase).collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[test]
    fn an_unknown_field_names_the_nearest_known_one() {
        let node = parse("scrape_intervall: 5s\n").expect("valid");
        let mut fields = node.fields().expect("a mapping");
        for key in ["scrape_timeout", "scrape_interval"] {
            let _ = fields.node_of(key);
        }
        let fault = fields.finish().expect_err("an unknown field");
        assert_eq!(
            fault.message,
            "field scrape_intervall not found here; did you mean scrape_interval?"
        );
    }

    #[test]
    fn far_words_are_not_suggested() {
        assert_eq!(nearest("xyz", ["scrape_interval"]), None);
        assert_eq!(nearest("annotation", ["labels", "annotations"]), Some("annotations"));
        assert_eq!(nearest("lables", ["labels", "annotations"]), Some("labels"));
    }
}
