//! The words by which numbers are asked, as names that live as long as the program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Words beyond this are not kept: no table has as many.
const WORDS_MAX: usize = 1_024;

/// Longer than any word of a table.
const WORD_BYTES_MAX: usize = 64;

static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The word as a name for ever; `None` for one that cannot be a word of a table.
pub fn known(word: &str) -> Option<&'static str> {
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(word) {
        return Some(known);
    }
    if words.len() >= WORDS_MAX || word.len() > WORD_BYTES_MAX {
        return None;
    }
    // Each word once, and their number is bounded.
    let kept: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.insert(kept);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once() {
        let first = known("power_usage").expect("a word");
        assert!(std::ptr::eq(
            first,
            known(&String::from("power_usage")).expect("a word")
        ));
        assert_eq!(known(&"x".repeat(100)), None);
    }
}
