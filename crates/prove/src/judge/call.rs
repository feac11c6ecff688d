//! Calls of functions that take no window.

use hashbrown::HashMap;
use model::METRIC_NAME;
use model::text::Span;
use promql::ast::{BinaryOp, Expr, ExprKind};

use super::{Found, Judge, Operand};
use crate::interval::Interval;
use crate::line::{Line, Text};
use crate::verdict::Reason;

/// Moments from 2017 to 2128: what `time()` can be while anybody reads this.
const MOMENTS: Interval = Interval { lo: 1.5e9, hi: 5e9 };

impl Judge<'_> {
    /// What a call gives.
    pub(super) fn call(&self, name: &str, args: &[Expr], span: Span) -> Operand {
        let scalar = |range| Operand::Scalar(Some(range), Found::default());
        match name {
            "time" => return scalar(MOMENTS),
            "pi" => return scalar(Interval::one(std::f64::consts::PI)),
            "start" | "end" | "step" | "range" | "min_of" | "max_of" => return scalar(Interval::ALL),
            "scalar" => return self.to_scalar(args, span),
            _ => {}
        }
        Operand::Vector(self.vector_call(name, args, span))
    }

    fn vector_call(&self, name: &str, args: &[Expr], span: Span) -> Found {
        if let Some(range) = date_part(name) {
            return match args.first() {
                Some(arg) => valued(self.vector(arg), range),
                None => sure(range),
            };
        }
        let first = args.first();
        match name {
            "vector" => first.map_or_else(Found::default, |arg| match self.eval(arg) {
                Operand::Scalar(range, _) => sure(range.unwrap_or(Interval::ALL)),
                _ => sure(Interval::ALL),
            }),
            "absent" | "absent_over_time" => self.absent_call(name, args, span),
            "histogram_quantile" => self.histogram_quantile(args, span),
            "quantile_over_time" => args
                .get(1)
                .map_or_else(Found::default, |arg| self.over_window(name, arg, span)),
            "label_replace" | "label_join" => self.labelled(args),
            "sort" | "sort_desc" | "sort_by_label" | "sort_by_label_desc" | "info" => {
                first.map_or_else(Found::default, |arg| self.vector(arg))
            }
            "timestamp" => first.map_or_else(Found::default, |arg| valued(self.vector(arg), MOMENTS)),
            "histogram_count" | "histogram_sum" | "histogram_avg" | "histogram_stddev" | "histogram_stdvar" => {
                first.map_or_else(Found::default, |arg| native(self.vector(arg)))
            }
            "histogram_fraction" => args.get(2).map_or_else(Found::default, |arg| native(self.vector(arg))),
            "histogram_quantiles" => first.map_or_else(Found::default, |arg| native(self.vector(arg))),
            _ => match first {
                Some(arg) if is_windowed(arg) => self.over_window(name, arg, span),
                Some(arg) => self.mapped(name, arg, &args[1..]),
                None => Found::default(),
            },
        }
    }

    /// A number for each series: `abs`, `clamp_max` and the like.
    fn mapped(&self, name: &str, arg: &Expr, bounds: &[Expr]) -> Found {
        let bound = |at: usize| match bounds.get(at).map(|b| self.eval(b)) {
            Some(Operand::Scalar(range, _)) => range.and_then(Interval::single),
            _ => None,
        };
        let map = |r: Interval| match name {
            "abs" if r.lo >= 0.0 => r,
            "abs" if r.hi <= 0.0 => Interval::new(-r.hi, -r.lo),
            "abs" => Interval::new(0.0, r.hi.max(-r.lo)),
            "ceil" => r.rising(f64::ceil),
            "floor" => r.rising(f64::floor),
            "round" => {
                let to = bound(0).unwrap_or(1.0).abs();
                Interval::new(r.lo - to, r.hi + to)
            }
            "sgn" => r.rising(|v| if v == 0.0 { 0.0 } else { v.signum() }),
            "sqrt" if r.lo >= 0.0 => r.rising(f64::sqrt),
            "exp" => r.rising(f64::exp),
            "clamp_min" => bound(0).map_or(Interval::ALL, |lo| r.rising(|v| v.max(lo))),
            "clamp_max" => bound(0).map_or(Interval::ALL, |hi| r.rising(|v| v.min(hi))),
            "clamp" => match (bound(0), bound(1)) {
                (Some(lo), Some(hi)) if lo <= hi => r.rising(|v| v.clamp(lo, hi)),
                _ => Interval::ALL,
            },
            "sin" | "cos" => Interval::new(-1.0, 1.0),
            _ => Interval::ALL,
        };
        self.vector(arg).map(|line| {
            let (range, why) = (map(line.range), line.why.clone());
            let mut line = line.valued(range);
            line.why = why;
            line
        })
    }

    fn to_scalar(&self, args: &[Expr], span: Span) -> Operand {
        let mut found = args.first().map_or_else(Found::default, |arg| self.vector(arg));
        let range = found.lines.iter().map(|line| line.range).reduce(Interval::hull);
        if range.is_none() {
            found.blame(Reason::at(
                span,
                "scalar_of_nothing",
                "scalar() of nothing is no number, and no comparison with it holds",
                "",
            ));
        }
        // What a scalar is made of says nothing of the series it is compared with, unless it is no number.
        found.lines.clear();
        Operand::Scalar(range, found)
    }

    /// `absent(x)`: one series, with the labels that the selector fixes.
    fn absent_call(&self, name: &str, args: &[Expr], span: Span) -> Found {
        let Some(arg) = args.first() else {
            return Found::default();
        };
        let mut inner = if is_windowed(arg) {
            self.window(arg).found
        } else {
            self.vector(arg)
        };
        if inner.lines.iter().any(|line| line.sure) {
            return Found::cause(Reason::at(
                span,
                "never_absent",
                format!("{name}() of what is always there gives nothing"),
                "name the series that may go missing",
            ));
        }
        let mut line = Line {
            why: Some(format!("{name}() gives 1")),
            filtered: true,
            ..Line::bare(Interval::one(1.0))
        };
        let selector = match &arg.kind {
            ExprKind::Vector(selector) | ExprKind::Matrix { selector, .. } => Some(selector),
            _ => None,
        };
        for matcher in selector.into_iter().flat_map(|s| &s.matchers) {
            let fixed = matcher
                .set()
                .filter(|set| set.len() == 1 && matcher.name != METRIC_NAME);
            if let Some([value]) = fixed {
                line.set(&matcher.name, Some(Text::Is(value.clone())));
            }
        }
        let mut found = Found::of(vec![line]);
        if inner.lines.is_empty() || inner.lines.iter().all(|line| line.guess) {
            let why = inner
                .causes
                .first()
                .map(|cause| format!(": {}", cause.message))
                .unwrap_or_default();
            found.note(Reason::at(
                span,
                "absent_always",
                format!("{name}() of what never existed here fires all the time{why}"),
                inner.causes.first().map(|cause| cause.mend.clone()).unwrap_or_default(),
            ));
        }
        found.notes.append(&mut inner.notes);
        found
    }

    /// A quantile lies at most at the highest bucket that has an end.
    fn histogram_quantile(&self, args: &[Expr], span: Span) -> Found {
        let Some(arg) = args.get(1) else {
            return Found::default();
        };
        let found = self.vector(arg);
        let has_le = |line: &Line| line.loose || line.label("le").is_some();
        if !found.lines.is_empty() && !found.lines.iter().any(has_le) {
            let mut found = found.with(Vec::new());
            let (message, mend) = match arg.kind {
                ExprKind::Aggregate(_) => (
                    "histogram_quantile() needs the label `le`, and the aggregation takes it away",
                    "write `sum by (le, …)`",
                ),
                _ => (
                    "histogram_quantile() needs buckets with the label `le`, and these series have none",
                    "use the `_bucket` series",
                ),
            };
            found.causes.insert(0, Reason::at(span, "le_missing", message, mend));
            return found;
        }
        let mut tops: HashMap<String, (Line, f64)> = HashMap::new();
        let mut order = Vec::new();
        for line in &found.lines {
            let mut rest = line.clone().without_name();
            rest.set("le", None);
            let key = format!("{:?}", rest.labels);
            let end = match line.label("le") {
                Some(Text::Is(le)) => model::number::parse_float(le).filter(|end| end.is_finite()),
                _ => Some(f64::INFINITY),
            };
            let entry = tops.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (rest, f64::NEG_INFINITY)
            });
            entry.1 = entry.1.max(end.unwrap_or(f64::NEG_INFINITY));
        }
        let lines = order
            .iter()
            .filter_map(|key| tops.remove(key))
            .map(|(line, top)| {
                let range = if top.is_finite() {
                    Interval::new(top.min(0.0), top)
                } else {
                    Interval::ALL
                };
                let mut line = line.valued(range);
                line.filtered = true;
                line.why = top
                    .is_finite()
                    .then(|| format!("the highest bucket with an end is {top}, and no quantile is told above it"));
                line
            })
            .collect();
        found.with(lines)
    }

    fn labelled(&self, args: &[Expr]) -> Found {
        let Some(arg) = args.first() else {
            return Found::default();
        };
        let target = match args.get(1).map(|a| &a.kind) {
            Some(ExprKind::Text(target)) => target.clone(),
            _ => return self.vector(arg),
        };
        self.vector(arg).map(|mut line| {
            line.set(&target, Some(Text::Any));
            line
        })
    }
}

fn valued(found: Found, range: Interval) -> Found {
    found.map(|line| line.valued(range))
}

/// Functions of native histograms: nothing here tells whether the series are some.
fn native(found: Found) -> Found {
    found.map(|line| Line {
        guess: true,
        ..line.valued(Interval::ALL)
    })
}

fn sure(range: Interval) -> Found {
    Found::of(vec![Line {
        sure: true,
        ..Line::bare(range)
    }])
}

fn is_windowed(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Matrix { .. } | ExprKind::Subquery(_) => true,
        ExprKind::Paren(inner) => is_windowed(inner),
        _ => false,
    }
}

/// The values of a part of the date.
fn date_part(name: &str) -> Option<Interval> {
    let (lo, hi) = match name {
        "minute" => (0.0, 59.0),
        "hour" => (0.0, 23.0),
        "day_of_week" => (0.0, 6.0),
        "day_of_month" => (1.0, 31.0),
        "day_of_year" => (1.0, 366.0),
        "days_in_month" => (28.0, 31.0),
        "month" => (1.0, 12.0),
        "year" => (1970.0, 9999.0),
        _ => return None,
    };
    Some(Interval::new(lo, hi))
}

/// Whether an operator compares a value with itself in an order.
pub(super) const fn is_strict(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Gt | BinaryOp::Lt | BinaryOp::Ne)
}
