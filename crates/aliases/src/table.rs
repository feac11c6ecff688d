//! Which names mean the same.

use std::collections::HashMap;

use config::yaml::{Fault, Node, parse};

/// A table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Another name of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alias {
    /// The name under which it may be stored.
    pub name: String,
    /// What its values are multiplied with to give those of the name asked for.
    pub factor: f64,
    /// Labels: as asked for, as stored, and what stands before the value as asked for.
    pub labels: Vec<LabelPair>,
}

/// A label under its two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelPair {
    pub asked: String,
    pub stored: String,
    /// What stands before the value there and is no part of it here.
    pub asked_prefix: String,
    pub stored_prefix: String,
}

/// All names with their aliases.
#[derive(Debug, Clone, Default)]
pub struct Table(HashMap<String, Vec<Alias>>);

/// A name within a group: how large its numbers are, and how it calls its labels.
struct Member {
    name: String,
    /// Its numbers divided by those of the group's first name.
    scale: f64,
    labels: Vec<(String, String, String)>,
}

/// Suffixes of the series of a histogram.
const HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

impl Table {
    /// Adds the groups of a table of aliases (`data/aliases.yml`).
    ///
    /// # Errors
    ///
    /// [`Error`] with line and caret.
    pub fn add_aliases(&mut self, path: &str, text: &str) -> Result<(), Error> {
        let fail = |fault: Fault| Error(config::Error::at(path, text, &fault).to_string());
        let root = parse(text).map_err(fail)?;
        let groups = groups(&root).map_err(fail)?;
        for group in groups {
            self.add(&group);
        }
        Ok(())
    }

    /// Adds the names of a table of GPU fields (`data/gpu_fields.yml`): each with its later name and the factor.
    ///
    /// # Errors
    ///
    /// [`Error`] with line and caret.
    pub fn add_gpu_fields(&mut self, path: &str, text: &str) -> Result<(), Error> {
        let fail = |fault: Fault| Error(config::Error::at(path, text, &fault).to_string());
        let root = parse(text).map_err(fail)?;
        for group in gpu_fields(&root).map_err(fail)? {
            self.add(&group);
        }
        Ok(())
    }

    /// The aliases of a name.
    pub(crate) fn of(&self, name: &str) -> Option<&[Alias]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The name as the table holds it.
    pub(crate) fn key(&self, name: &str) -> Option<&str> {
        self.0.get_key_value(name).map(|(key, _)| key.as_str())
    }

    /// How many names have aliases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no name has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, group: &[Member]) {
        for asked in group {
            let aliases = self.0.entry(asked.name.clone()).or_default();
            for stored in group.iter().filter(|m| m.name != asked.name) {
                if aliases.iter().all(|a| a.name != stored.name) {
                    aliases.push(Alias {
                        name: stored.name.clone(),
                        factor: asked.scale / stored.scale,
                        labels: pairs(asked, stored),
                    });
                }
            }
        }
    }
}

/// The labels that the two call differently. `labels` of a member: the group's word, its own, and its values' prefix.
fn pairs(asked: &Member, stored: &Member) -> Vec<LabelPair> {
    let mut words: Vec<&str> = asked
        .labels
        .iter()
        .chain(&stored.labels)
        .map(|(w, ..)| w.as_str())
        .collect();
    words.sort_unstable();
    words.dedup();
    let of = |member: &Member, word: &str| {
        let own = member.labels.iter().find(|(w, ..)| w == word);
        own.map_or((word.to_owned(), String::new()), |(_, name, prefix)| {
            (name.clone(), prefix.clone())
        })
    };
    let pair = |word: &str| {
        let ((asked, asked_prefix), (stored, stored_prefix)) = (of(asked, word), of(stored, word));
        LabelPair {
            asked,
            stored,
            asked_prefix,
            stored_prefix,
        }
    };
    words
        .into_iter()
        .map(pair)
        .filter(|p| p.asked != p.stored || p.asked_prefix != p.stored_prefix)
        .collect()
}

fn groups(root: &Node) -> Result<Vec<Vec<Member>>, Fault> {
    let mut fields = root.fields()?;
    let mut schemes: HashMap<String, Vec<(String, String, String)>> = HashMap::new();
    for (name, node) in fields.node_of("labels").map_or(Ok(&[][..]), Node::map)? {
        let mut labels = Vec::new();
        for (word, own) in node.map()? {
            let own: String = own.read()?;
            // `name` or `name, prefix`.
            let (own, prefix) = own.split_once(", ").unwrap_or((own.as_str(), ""));
            labels.push((word.text.clone(), own.to_owned(), prefix.to_owned()));
        }
        schemes.insert(name.text.clone(), labels);
    }
    let mut out = Vec::new();
    for node in fields.list_of("groups")? {
        let mut group = node.fields()?;
        let is_histogram: bool = group.or_empty("histogram")?;
        let mut members = Vec::new();
        for name in group.list_of("names")? {
            if name.scalar().is_some() {
                members.push((name.read::<String>()?, 1.0, String::new()));
                continue;
            }
            let mut own = name.fields()?;
            let scale: String = own.or("scale", "1".to_owned())?;
            let scale = number(&scale).ok_or_else(|| name.fault(format!("{scale:?} is no factor")))?;
            members.push((own.or_empty("name")?, scale, own.or_empty("labels")?));
            own.finish()?;
        }
        group.finish()?;
        let suffixes: &[&str] = if is_histogram { &HISTOGRAM } else { &[""] };
        for suffix in suffixes {
            let member = |(name, scale, scheme): &(String, f64, String)| {
                let labels = match scheme.as_str() {
                    "" => Vec::new(),
                    scheme => schemes
                        .get(scheme)
                        .cloned()
                        .ok_or_else(|| node.fault(format!("no labels {scheme:?} in this table")))?,
                };
                Ok(Member {
                    name: format!("{name}{suffix}"),
                    scale: *scale,
                    labels,
                })
            };
            out.push(members.iter().map(member).collect::<Result<_, Fault>>()?);
        }
    }
    fields.finish()?;
    Ok(out)
}

/// A factor: a number, or a quotient such as `1/100`.
fn number(text: &str) -> Option<f64> {
    let parse = |t: &str| t.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v != 0.0);
    match text.split_once('/') {
        None => parse(text),
        Some((above, below)) => Some(parse(above)? / parse(below)?),
    }
}

/// The host's label, which dcgm-exporter calls otherwise since 2026; the fields it may add stand in the table.
const HOST: (&str, &str) = ("Hostname", "hostname");

fn gpu_fields(root: &Node) -> Result<Vec<Vec<Member>>, Fault> {
    let mut out = Vec::new();
    let mut fields = root.fields()?;
    let find = |node: &Node, key: &str| -> Result<Option<String>, Fault> {
        let found = node.map()?.iter().find(|(k, _)| k.text == key);
        found.map(|(_, v)| v.read::<String>()).transpose()
    };
    let mut labels = vec![(HOST.0.to_owned(), HOST.1.to_owned(), String::new())];
    for node in fields.list_of("labels")? {
        if let (Some(name), Some(new)) = (find(node, "name")?, find(node, "new")?) {
            labels.push((name, new, String::new()));
        }
    }
    for node in fields.list_of("fields")? {
        let (Some(name), Some(new)) = (find(node, "name")?, find(node, "new")?) else {
            continue;
        };
        let factor = find(node, "factor")?.unwrap_or_else(|| "1".to_owned());
        let scale = number(&factor).ok_or_else(|| node.fault(format!("{factor:?} is no factor")))?;
        out.push(vec![
            Member {
                name,
                scale: 1.0,
                labels: Vec::new(),
            },
            Member {
                name: new,
                scale,
                labels: labels.clone(),
            },
        ]);
    }
    Ok(out)
}
