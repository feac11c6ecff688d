//! The layer: selects under every name, and shows all of it under the one that was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::store::{Selection, StoredSeries};
use model::{Column, Labels, LabelsBuilder, METRIC_NAME, MatchOp, Matcher, Millis, Queryable, StoreError, is_stale};

use crate::table::{Alias, Table};

/// A store whose metrics answer to all their names.
pub struct Aliased {
    store: Arc<dyn Queryable>,
    table: Arc<Table>,
}

impl Aliased {
    /// The layer over `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Queryable>, table: Arc<Table>) -> Self {
        Self { store, table }
    }

    /// The aliases that a selection concerns: where its only matcher of the name is one of equality.
    fn aliases(&self, matchers: &[Matcher]) -> Option<(&str, &[Alias])> {
        let mut names = matchers.iter().filter(|m| m.name == METRIC_NAME);
        let name = names.next().filter(|m| m.op == MatchOp::Equal)?;
        if names.next().is_some() {
            return None;
        }
        let aliases = self.table.of(&name.value)?;
        Some((self.table.key(&name.value)?, aliases))
    }
}

/// The matchers as they apply to what is stored under the alias; `None` when that cannot be said.
fn translated(matchers: &[Matcher], alias: &Alias) -> Option<Vec<Matcher>> {
    let one = |matcher: &Matcher| {
        if matcher.name == METRIC_NAME {
            return Some(Matcher::equal(METRIC_NAME, alias.name.clone()));
        }
        let Some(pair) = alias.labels.iter().find(|p| p.asked == matcher.name) else {
            return Some(matcher.clone());
        };
        let is_plain = pair.asked_prefix == pair.stored_prefix || matcher.value.is_empty();
        let value = if is_plain {
            matcher.value.clone()
        } else if matches!(matcher.op, MatchOp::Equal | MatchOp::NotEqual) {
            let bare = matcher.value.strip_prefix(&pair.asked_prefix)?;
            format!("{}{bare}", pair.stored_prefix)
        } else {
            // A pattern over the value as asked for says nothing about the stored one.
            return None;
        };
        Matcher::new(matcher.op, pair.stored.clone(), value).ok()
    };
    matchers.iter().map(one).collect()
}

/// Labels as they are stored, as they were asked for.
fn renamed(stored: &Labels, name: &str, alias: &Alias) -> Labels {
    let mut out = LabelsBuilder::new();
    for (label, value) in stored {
        match alias.labels.iter().find(|p| p.stored == label) {
            Some(pair) => {
                let bare = value.strip_prefix(&pair.stored_prefix).unwrap_or(value);
                out.set(&pair.asked, &format!("{}{bare}", pair.asked_prefix));
            }
            None => {
                out.set(label, value);
            }
        }
    }
    out.set(METRIC_NAME, name);
    out.build()
}

/// A series with all that is stored of it: under its own name first.
struct Joined {
    labels: Labels,
    native: Option<Arc<dyn StoredSeries>>,
    others: Vec<(Arc<dyn StoredSeries>, f64)>,
}

impl StoredSeries for Joined {
    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn read(&self, mint: Millis, maxt: Millis, into: &mut Column) -> Result<(), StoreError> {
        let mut column = Column::default();
        if let Some(native) = &self.native {
            native.read(mint, maxt, &mut column)?;
        }
        for (series, factor) in &self.others {
            let mut other = Column::default();
            series.read(mint, maxt, &mut other)?;
            for value in other.values.iter_mut().filter(|v| !is_stale(**v)) {
                *value *= factor;
            }
            column = merged(column, other);
        }
        append(column, into);
        Ok(())
    }
}

/// Both in order of time. At the same moment the first wins, unless it only says that its series has ended.
fn merged(first: Column, second: Column) -> Column {
    if second.is_empty() {
        return first;
    }
    if first.is_empty() {
        return second;
    }
    let mut out = Column::default();
    let (mut a, mut b) = (0, 0);
    while a < first.len() || b < second.len() {
        let (ta, tb) = (first.times.get(a), second.times.get(b));
        let take_first = match (ta, tb) {
            (Some(ta), Some(tb)) if ta == tb => {
                let ends = is_stale(first.values[a]);
                if ends {
                    a += 1;
                } else {
                    b += 1;
                }
                !ends
            }
            (Some(ta), Some(tb)) => ta < tb,
            (first, _) => first.is_some(),
        };
        if take_first {
            push(&first, a, &mut out);
            a += 1;
        } else {
            push(&second, b, &mut out);
            b += 1;
        }
    }
    out
}

fn push(from: &Column, at: usize, into: &mut Column) {
    match from.histograms.get(at) {
        Some(Some(histogram)) => into.push_histogram(from.times[at], Arc::clone(histogram)),
        _ => into.push(from.times[at], from.values[at]),
    }
}

fn append(from: Column, into: &mut Column) {
    if into.is_empty() {
        *into = from;
        return;
    }
    for at in 0..from.len() {
        push(&from, at, into);
    }
}

impl Queryable for Aliased {
    fn select(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Selection, StoreError> {
        let mut found = self.store.select(matchers, mint, maxt)?;
        let Some((name, aliases)) = self.aliases(matchers) else {
            return Ok(found);
        };
        let mut others = Vec::new();
        for alias in aliases {
            let Some(matchers) = translated(matchers, alias) else {
                continue;
            };
            let selected = self.store.select(&matchers, mint, maxt)?;
            found.warnings.extend(selected.warnings);
            let one = |series: Arc<dyn StoredSeries>| (renamed(series.labels(), name, alias), series, alias.factor);
            others.extend(selected.series.into_iter().map(one));
        }
        if others.is_empty() {
            return Ok(found);
        }
        let mut joined: BTreeMap<Labels, Joined> = BTreeMap::new();
        let empty = |labels: &Labels| Joined {
            labels: labels.clone(),
            native: None,
            others: Vec::new(),
        };
        for native in found.series {
            let labels = native.labels().clone();
            joined.entry(labels.clone()).or_insert_with(|| empty(&labels)).native = Some(native);
        }
        for (labels, series, factor) in others {
            let entry = joined.entry(labels.clone()).or_insert_with(|| empty(&labels));
            entry.others.push((series, factor));
        }
        let series = joined.into_values().map(|joined| match joined.native {
            Some(native) if joined.others.is_empty() => native,
            _ => Arc::new(joined) as Arc<dyn StoredSeries>,
        });
        Ok(Selection {
            series: series.collect(),
            warnings: found.warnings,
        })
    }

    fn label_names(&self, matchers: &[Matcher], mint: Millis, maxt: Millis) -> Result<Vec<String>, StoreError> {
        if self.aliases(matchers).is_none() {
            return self.store.label_names(matchers, mint, maxt);
        }
        let mut names = BTreeSet::new();
        for series in self.select(matchers, mint, maxt)?.series {
            names.extend(series.labels().iter().map(|(name, _)| name.to_owned()));
        }
        Ok(names.into_iter().collect())
    }

    fn label_values(
        &self,
        name: &str,
        matchers: &[Matcher],
        mint: Millis,
        maxt: Millis,
    ) -> Result<Vec<String>, StoreError> {
        if self.aliases(matchers).is_none() {
            return self.store.label_values(name, matchers, mint, maxt);
        }
        let mut values = BTreeSet::new();
        for series in self.select(matchers, mint, maxt)?.series {
            values.extend(series.labels().get(name).map(str::to_owned));
        }
        Ok(values.into_iter().collect())
    }

    fn settled(&self) -> Millis {
        self.store.settled()
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn changed_since(&self, revision: u64) -> Option<Millis> {
        self.store.changed_since(revision)
    }
}
