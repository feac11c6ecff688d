//! Experimental `info`: adds the labels of info series, such as `target_info`, to the series they are about.

use std::collections::BTreeMap;

use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp, Matcher, Millis, QueryError};

use super::Evaluator;
use super::grid::Grid;
use super::selector::Take;
use super::series::{ABSENT, Operand, Series, is_present, merge_same_labels};
use super::window::Frame;
use crate::plan::{Kind, Node, Ranged, Select};

/// The labels that say whom an info series is about.
const IDENTITY: [&str; 2] = ["instance", "job"];

/// What is asked of info series: matchers on their names, and on their other labels.
struct Wanted {
    names: Vec<Matcher>,
    data: Vec<Matcher>,
}

impl Wanted {
    fn of(selector: Option<&Node>) -> Result<Self, QueryError> {
        let mut wanted = Self {
            names: Vec::new(),
            data: Vec::new(),
        };
        if let Some(Kind::Select(select)) = selector.map(|n| &n.unwrapped().kind) {
            for matcher in select.alternatives.iter().flatten() {
                let names = matcher.name == METRIC_NAME;
                let list = if names { &mut wanted.names } else { &mut wanted.data };
                list.push(matcher.clone());
            }
        }
        let positive = |m: &Matcher| matches!(m.op, MatchOp::Equal | MatchOp::Regex);
        if wanted.names.is_empty() {
            wanted.names.push(matcher(MatchOp::Equal, METRIC_NAME, "target_info")?);
        } else if !wanted.names.iter().any(positive) {
            wanted.names.insert(0, matcher(MatchOp::Regex, METRIC_NAME, ".+_info")?);
        }
        Ok(wanted)
    }

    fn is_info(&self, labels: &Labels) -> bool {
        self.names.iter().all(|m| m.matches(labels.name()))
    }

    /// Whether a series without an info series stays.
    fn allows_none(&self) -> bool {
        self.data.iter().all(|m| m.matches(""))
    }

    fn wants(&self, label: &str) -> bool {
        self.data.is_empty() || self.data.iter().any(|m| m.name == label)
    }
}

fn matcher(op: MatchOp, name: &str, value: &str) -> Result<Matcher, QueryError> {
    Matcher::new(op, name, value).map_err(|e| QueryError::Internal(e.to_string()))
}

impl Evaluator<'_> {
    /// `info(v, {selector})`
    pub(super) fn info(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let wanted = Wanted::of(args.get(1))?;
        let (at, offset) = anchor(&args[0]).unwrap_or((None, 0));
        let base = self.vector(&args[0], grid)?;
        let infos = self.info_series(&base, &wanted, at, offset, grid)?;
        let mut by_identity: BTreeMap<(Labels, String), Vec<usize>> = BTreeMap::new();
        for (place, info) in infos.iter().enumerate() {
            let key = (info.labels.only(&IDENTITY), info.labels.name().to_owned());
            by_identity.entry(key).or_default().push(place);
        }
        let mut names: Vec<String> = by_identity.keys().map(|(_, name)| name.clone()).collect();
        names.sort();
        names.dedup();
        let mut out = Vec::new();
        for series in base {
            self.budget.check()?;
            if wanted.is_info(&series.labels) {
                out.push(series);
                continue;
            }
            let identity = series.labels.only(&IDENTITY);
            let of_name = |name: &String| by_identity.get(&(identity.clone(), name.clone()));
            let candidates: Vec<&Vec<usize>> = names.iter().filter_map(of_name).collect();
            enrich(&series, &candidates, &infos, &wanted, &mut out)?;
        }
        Ok(Operand::Vector(merge_same_labels(out)?))
    }

    /// The info series about `base`; their values are the moments of their samples.
    fn info_series(
        &self,
        base: &[Series],
        wanted: &Wanted,
        at: Option<Millis>,
        offset: Millis,
        grid: Grid,
    ) -> Result<Vec<Series>, QueryError> {
        let mut matchers = wanted.names.clone();
        matchers.extend(wanted.data.iter().cloned());
        let mut identified = false;
        for label in IDENTITY {
            let about = base.iter().filter(|s| !wanted.is_info(&s.labels));
            let mut values: Vec<&str> = about.filter_map(|s| s.labels.get(label)).collect();
            values.sort_unstable();
            values.dedup();
            if !values.is_empty() {
                identified = true;
                let quoted: Vec<String> = values.iter().map(|v| escape(v)).collect();
                matchers.push(matcher(MatchOp::Regex, label, &quoted.join("|"))?);
            }
        }
        if !identified {
            return Ok(Vec::new());
        }
        let select = Select {
            alternatives: vec![matchers],
            offset,
            at,
            extension: None,
            stats: false,
        };
        let frame = Frame::of(&select, self.lookback, grid);
        let found = self.select(&select, frame.bounds())?;
        let infos = self.instant_of(&found, &frame, Take::Millis)?;
        if infos.iter().any(|s| !s.natives.is_empty()) {
            return Err(QueryError::Execution("info sample should be float".to_owned()));
        }
        Ok(infos)
    }
}

/// A literal as a regular expression.
fn escape(text: &str) -> String {
    regex::escape(text)
}

/// The first selector's fixed moment and offset, those of subqueries around it included.
fn anchor(node: &Node) -> Option<(Option<Millis>, Millis)> {
    match &node.kind {
        Kind::Select(select) => Some((select.at, select.offset)),
        Kind::Ranged(ranged) => anchor_ranged(ranged),
        Kind::Range(call) => anchor_ranged(&call.arg).or_else(|| call.params.iter().find_map(anchor)),
        Kind::Call(_, args) => args.iter().find_map(anchor),
        Kind::Aggregate(aggregate) => anchor(&aggregate.arg).or_else(|| aggregate.param.as_ref().and_then(anchor)),
        Kind::Binary(_) => {
            let (links, first) = node.chain();
            anchor(first).or_else(|| links.iter().rev().find_map(|link| anchor(&link.rhs)))
        }
        Kind::Negate(inner) | Kind::Invariant(inner) => anchor(inner),
        Kind::Number(_) | Kind::Text(_) => None,
    }
}

fn anchor_ranged(ranged: &Ranged) -> Option<(Option<Millis>, Millis)> {
    match ranged {
        Ranged::Select { select, .. } => Some((select.at, select.offset)),
        Ranged::Subquery(subquery) => {
            let (at, offset) = anchor(&subquery.inner)?;
            Some(match at {
                Some(_) => (at, offset),
                None => (subquery.at, offset.saturating_add(subquery.offset)),
            })
        }
    }
}

/// The series under the labels that its info series give it at each step.
fn enrich(
    series: &Series,
    candidates: &[&Vec<usize>],
    infos: &[Series],
    wanted: &Wanted,
    out: &mut Vec<Series>,
) -> Result<(), QueryError> {
    let steps = series.values.len();
    // Labels change when info series take turns; mostly they do not.
    let mut last: Option<(Vec<usize>, usize)> = None;
    for step in (0..steps).filter(|i| series.has(*i)) {
        let mut found = Vec::with_capacity(candidates.len());
        for places in candidates {
            found.extend(newest(places, infos, step)?);
        }
        if found.is_empty() && !wanted.allows_none() {
            continue;
        }
        let place = match &last {
            Some((same, place)) if *same == found => *place,
            _ => {
                let labels = enriched(series, &found, infos, wanted)?;
                out.push(Series {
                    labels,
                    drop_name: series.drop_name,
                    values: vec![ABSENT; steps],
                    natives: Vec::new(),
                });
                out.len() - 1
            }
        };
        out[place].copy_step(step, series);
        last = Some((found, place));
    }
    Ok(())
}

/// Of info series with one identity and name, the one with the newest sample.
fn newest(places: &[usize], infos: &[Series], step: usize) -> Result<Option<usize>, QueryError> {
    let mut best: Option<usize> = None;
    for place in places.iter().copied().filter(|p| is_present(infos[*p].values[step])) {
        let moment = infos[place].values[step];
        match best.map(|b| infos[b].values[step]) {
            Some(had) if had > moment => {}
            Some(had) if had == moment => {
                let (a, b) = (&infos[best.unwrap_or(place)].labels, &infos[place].labels);
                return Err(QueryError::Execution(format!(
                    "found duplicate series for info metric: existing {a} @ {had}, new {b} @ {moment}"
                )));
            }
            _ => best = Some(place),
        }
    }
    Ok(best)
}

fn enriched(series: &Series, found: &[usize], infos: &[Series], wanted: &Wanted) -> Result<Labels, QueryError> {
    let mut added = LabelsBuilder::new();
    for place in found {
        for (name, value) in &infos[*place].labels {
            if name == METRIC_NAME || !wanted.wants(name) {
                continue;
            }
            if added.get(name).is_some_and(|had| had != value) {
                return Err(QueryError::Execution(format!("conflicting label: {name}")));
            }
            if series.labels.get(name).is_none() {
                added.set(name, value);
            }
        }
    }
    let mut builder = LabelsBuilder::from(&series.labels);
    added.iter().for_each(|(name, value)| {
        builder.set(name, value);
    });
    Ok(builder.build())
}
