//! Label names and values of a shard, each text once.

use hashbrown::HashTable;

/// Texts by number and number by text.
#[derive(Debug, Default)]
pub struct Symbols {
    text: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

fn hash(text: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

impl Symbols {
    /// The text of a number that [`Symbols::intern`] gave.
    #[must_use]
    pub fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.text[start..self.ends[id] as usize]
    }

    /// The number of a text; `None` when it is not here.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<u32> {
        self.table.find(hash(text), |&id| self.get(id) == text).copied()
    }

    /// The number of a text, a new one if need be. `None` when four gigabytes of text are full.
    pub fn intern(&mut self, text: &str) -> Option<u32> {
        if let Some(id) = self.find(text) {
            return Some(id);
        }
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        let id = u32::try_from(self.ends.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        let Self { text: all, ends, table } = self;
        let get = |id: u32| {
            let start = if id == 0 { 0 } else { ends[id as usize - 1] as usize };
            &all[start..ends[id as usize] as usize]
        };
        table.insert_unique(hash(text), id, |&id| hash(get(id)));
        Some(id)
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
