//! Aggregations: which groups there are, and what their values can be.

use hashbrown::HashMap;
use model::METRIC_NAME;
use model::text::Span;
use promql::ast::{Aggregate, AggregateOp, ExprKind};

use super::{Found, Judge};
use crate::interval::Interval;
use crate::line::{Core, Line, Text, is_added_by_scrapes};
use crate::verdict::Reason;

impl Judge<'_> {
    /// The series that an aggregation can give.
    pub(super) fn aggregate(&self, aggregate: &Aggregate, span: Span) -> Found {
        let mut found = self.vector(&aggregate.expr);
        self.check_grouping(aggregate, &mut found, span);
        let keep = |name: &str| {
            let is_listed = aggregate.labels.iter().any(|label| label == name);
            if aggregate.without {
                !is_listed && name != METRIC_NAME
            } else {
                is_listed
            }
        };
        if matches!(
            aggregate.op,
            AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk | AggregateOp::LimitRatio
        ) {
            return found.map(|line| Line { filtered: true, ..line });
        }
        let mut groups: HashMap<String, Line> = HashMap::new();
        let mut order = Vec::new();
        for line in std::mem::take(&mut found.lines) {
            let mut line = self.grouped(aggregate, line);
            line.retain(keep);
            let key = format!("{:?}", line.labels);
            match groups.get_mut(&key) {
                Some(group) => join(group, &line),
                None => {
                    order.push(key.clone());
                    groups.insert(key, line);
                }
            }
        }
        found.lines = order.iter().filter_map(|key| groups.remove(key)).collect();
        if let (AggregateOp::CountValues, Some(param)) = (aggregate.op, &aggregate.param)
            && let ExprKind::Text(label) = &param.kind
        {
            for line in &mut found.lines {
                line.set(label, Some(Text::Any));
            }
        }
        found
    }

    /// One series as the aggregation of a group in which it stands.
    fn grouped(&self, aggregate: &Aggregate, line: Line) -> Line {
        let range = line.range;
        let grows = |range: Interval| {
            let lo = if range.lo < 0.0 { f64::NEG_INFINITY } else { range.lo };
            let hi = if range.hi > 0.0 { f64::INFINITY } else { range.hi };
            Interval::new(lo, hi)
        };
        let new = match aggregate.op {
            AggregateOp::Sum => grows(range),
            AggregateOp::Count | AggregateOp::CountValues => Interval::new(1.0, f64::INFINITY),
            AggregateOp::Group => Interval::one(1.0),
            AggregateOp::Stddev => Interval::new(0.0, range.width()),
            AggregateOp::Stdvar => Interval::POSITIVE,
            _ => range,
        };
        let (core, bound, whole, why, constant) = (
            line.core.clone(),
            line.bound.clone(),
            line.whole,
            line.why.clone(),
            line.constant.clone(),
        );
        let labels = line.labels.clone();
        let mut out = line.valued(new);
        out.labels = labels;
        out.whole = match aggregate.op {
            AggregateOp::Count | AggregateOp::CountValues | AggregateOp::Group => true,
            AggregateOp::Sum | AggregateOp::Min | AggregateOp::Max => whole,
            _ => false,
        };
        out.why = match aggregate.op {
            AggregateOp::Count => {
                Some("count() of nothing gives nothing, not 0; of something it is 1 or more".to_owned())
            }
            AggregateOp::Sum if range.single() == Some(0.0) => Some("a sum of zeros is 0".to_owned()),
            AggregateOp::Sum | AggregateOp::Group | AggregateOp::CountValues => None,
            _ => why,
        };
        if matches!(aggregate.op, AggregateOp::Min | AggregateOp::Max) {
            out.constant = constant;
        }
        let name = match aggregate.op {
            AggregateOp::Sum => "sum",
            AggregateOp::Avg => "avg",
            AggregateOp::Min => "min",
            AggregateOp::Max => "max",
            _ => return out,
        };
        // Part and whole stay so when both are put together in the same way.
        out.bound = bound.map(|(metric, factor)| (format!("{name}:{metric}"), factor));
        out.core = core.map(|core| Core {
            metric: format!("{name}:{}", core.metric),
            text: format!("{name} {:?} {} ({})", aggregate.labels, aggregate.without, core.text),
            factor: core.factor,
        });
        out
    }

    /// A label to group by that no series has gives one group.
    fn check_grouping(&self, aggregate: &Aggregate, found: &mut Found, span: Span) {
        if aggregate.without || found.lines.is_empty() {
            return;
        }
        for label in &aggregate.labels {
            let is_known = found.lines.iter().any(|line| line.loose || line.label(label).is_some());
            if !is_known && !is_added_by_scrapes(label) {
                found.note(Reason::at(
                    span,
                    "grouping_label_absent",
                    format!("no series here has the label `{label}`: grouping by it makes one group"),
                    "",
                ));
            }
        }
    }
}

/// Adds a series to its group.
fn join(group: &mut Line, line: &Line) {
    group.range = group.range.hull(line.range);
    group.whole &= line.whole;
    group.guess &= line.guess;
    group.sure |= line.sure;
    group.filtered &= line.filtered;
    group.loose |= line.loose;
    if group.core != line.core {
        group.core = None;
    }
    if group.bound != line.bound {
        group.bound = None;
    }
    if group.why != line.why {
        group.why = None;
    }
    if line.constant.is_none() {
        group.constant = None;
    }
}
