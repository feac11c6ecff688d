//! Patterns of files: `rules/*.yml`, as Go's `filepath.Glob` reads them.

use std::fs;
use std::path::{Path, PathBuf};

/// The most files one pattern gives; a configuration with more is a mistake.
const MATCHES_MAX: usize = 100_000;

/// The existing files that a pattern names, sorted; a relative pattern counts from `folder`.
///
/// A pattern without `*`, `?` or `[` names one file, and nothing where there is none.
#[must_use]
pub fn expand(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let whole = folder.join(pattern);
    let mut found = vec![PathBuf::new()];
    for part in whole.components() {
        let name = part.as_os_str().to_string_lossy();
        let wild = name.contains(['*', '?', '[']);
        found = if wild {
            found
                .iter()
                .flat_map(|base| matching(base, &name))
                .take(MATCHES_MAX)
                .collect()
        } else {
            found.iter().map(|base| base.join(part)).collect()
        };
    }
    found.retain(|path| path.exists());
    found.sort();
    found
}

fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let Ok(entries) = fs::read_dir(place) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|e| e.file_name());
    let pattern: Vec<char> = pattern.chars().collect();
    names
        .filter(|name| {
            let name: Vec<char> = name.to_string_lossy().chars().collect();
            matches(&pattern, &name)
        })
        .map(|name| folder.join(name))
        .collect()
}

/// Whether a name fits a pattern of `*`, `?`, `[a-z]`, `[^a]` and `\` before a plain sign.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class(&pattern[p + 1..], name[n]).map(|used| p + 1 + used),
            Some('\\') => (pattern.get(p + 1) == Some(&name[n])).then_some(p + 2),
            Some(c) => (*c == name[n]).then_some(p + 1),
            None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                p = next;
                n += 1;
            }
            (None, Some((after, from))) => {
                retry = Some((after, from + 1));
                p = after;
                n = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Reads a class behind its `[`; the number of signs used when `c` is in it.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = pattern.first() == Some(&'^');
    let mut at = usize::from(negated);
    let mut hit = false;
    let mut first = true;
    while first || pattern.get(at)? != &']' {
        let low = *pattern.get(at)?;
        let ranged = pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|h| *h != ']');
        let high = if ranged { pattern[at + 2] } else { low };
        hit |= (low..=high).contains(&c);
        at += if ranged { 3 } else { 1 };
        first = false;
    }
    (hit != negated).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, want: bool) {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(matches(&chars(pattern), &chars(name)), want, "{pattern} {name}");
    }

    #[test]
    fn patterns_match_whole_names() {
        check("*.yml", "a.yml", true);
        check("*.yml", "a.yaml", false);
        check("a*b*c", "axxbyyc", true);
        check("a*b*c", "axxbyy", false);
        check("?", "é", true);
        check("[a-c]x", "bx", true);
        check("[^a-c]x", "bx", false);
        check("[", "[", false);
        check("\\*", "*", true);
        check("**", "", true);
    }

    #[test]
    fn a_pattern_gives_existing_files_in_order() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(expand(folder, "src/glo*.rs"), [folder.join("src/glob.rs")]);
        assert_eq!(expand(folder, "src/nothing.rs"), Vec::<PathBuf>::new());
    }
}
