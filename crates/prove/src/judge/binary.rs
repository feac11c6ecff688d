//! Operators: arithmetic, comparisons, sets.

use model::METRIC_NAME;
use model::text::Span;
use promql::ast::{Binary, BinaryOp};

use super::call::is_strict;
use super::{Found, Judge, Operand, mirrored};
use crate::interval::Interval;
use crate::line::{Core, Line};
use crate::verdict::Reason;

impl Judge<'_> {
    /// What `left op right` gives.
    pub(super) fn binary(&self, binary: &Binary, left: Operand, right: Operand, span: Span) -> Operand {
        match (left, right) {
            (Operand::Scalar(a, mut found), Operand::Scalar(b, mut more)) => {
                found.hear(&mut more);
                let range = match (a, b) {
                    (Some(_), Some(_)) if binary.op.is_comparison() => Some(Interval::new(0.0, 1.0)),
                    (Some(a), Some(b)) => Some(a.arithmetic(binary.op, b)),
                    _ => None,
                };
                Operand::Scalar(range, found)
            }
            (Operand::Vector(found), Operand::Scalar(range, mut more)) => {
                Operand::Vector(self.with_number(binary, binary.op, found, range, &mut more, span))
            }
            (Operand::Scalar(range, mut more), Operand::Vector(found)) if binary.op.is_comparison() => {
                Operand::Vector(self.with_number(binary, mirrored(binary.op), found, range, &mut more, span))
            }
            (Operand::Scalar(range, mut more), Operand::Vector(mut found)) => {
                found.hear(&mut more);
                Operand::Vector(found.map(|line| number_first(binary.op, line, range)))
            }
            (Operand::Vector(left), Operand::Vector(right)) => Operand::Vector(match binary.op {
                BinaryOp::Or => or(left, right),
                BinaryOp::Unless => self.unless(binary, left, right, span),
                BinaryOp::And => self.and(binary, left, right, span),
                _ => self.join(binary, left, right, span),
            }),
            (Operand::Text, _) | (_, Operand::Text) => Operand::Text,
        }
    }

    /// A vector and a number; `op` has the vector on its left.
    fn with_number(
        &self,
        binary: &Binary,
        op: BinaryOp,
        mut found: Found,
        number: Option<Interval>,
        more: &mut Found,
        span: Span,
    ) -> Found {
        found.hear(more);
        let Some(number) = number else {
            // Nothing compares with what is no number.
            if op.is_comparison() && !binary.return_bool {
                found.lines.clear();
            }
            return found;
        };
        if !op.is_comparison() {
            return found.map(|line| scaled(op, line, number));
        }
        if binary.return_bool {
            return found.map(|line| as_bool(op, line, number));
        }
        let all = std::mem::take(&mut found.lines);
        let is_always = !all.is_empty()
            && all
                .iter()
                .all(|line| line.range.always(op, number) && line.constant.is_none());
        if is_always && !all.iter().all(|line| line.sure || line.range.single().is_some()) {
            let why = all[0].why.clone().unwrap_or_else(|| words(all[0].range));
            found.note(Reason::at(
                span,
                "always_true",
                format!("{} holds for every value: {why}", self.quoted(span)),
                "set a threshold that not every value meets",
            ));
        }
        for line in &all {
            match line.range.narrowed(op, number, line.whole) {
                Some(range) => found.lines.push(Line {
                    range,
                    filtered: true,
                    labels: line.labels.clone(),
                    why: line.why.clone(),
                    constant: line.constant.clone(),
                    core: line.core.clone(),
                    bound: line.bound.clone(),
                    ..*line
                }),
                None => found.blame(self.impossible(op, line, number, span)),
            }
        }
        found
    }

    /// Why no value meets a comparison.
    fn impossible(&self, op: BinaryOp, line: &Line, number: Interval, span: Span) -> Reason {
        let why = line.why.clone().unwrap_or_else(|| words(line.range));
        let of_counting = why.starts_with("count()");
        let (code, mend) = match () {
            () if line.constant.is_some() && line.range.single().is_some() => {
                ("constant_series", "compare something that changes")
            }
            () if why.starts_with("the highest bucket") => (
                "above_top_bucket",
                "set the threshold below the highest bucket, or give the histogram higher buckets",
            ),
            () if why.starts_with("limited by the device") => {
                ("beyond_device_limit", "compare with the device's own limit")
            }
            () if of_counting => ("count_of_nothing", "use absent(…), or `… or vector(0)`"),
            () if line.filtered && line.core.is_some() => {
                ("contradiction", "the conditions exclude each other; mend one of them")
            }
            () => ("impossible_value", "set a threshold in the unit of the metric"),
        };
        let number = number
            .single()
            .map_or_else(|| words(number), |n| format!("{}", model::number::General(n)));
        let whole = if line.whole && line.range.holds(number.parse().unwrap_or(f64::NAN)) && !is_strict(op) {
            ", whole numbers only"
        } else {
            ""
        };
        Reason::at(
            span,
            code,
            format!(
                "{}: no value is ever {} {number}: {why}{whole}",
                self.quoted(span),
                op.name()
            ),
            mend,
        )
    }

    /// Two vectors joined by an arithmetic operator or a comparison.
    fn join(&self, binary: &Binary, mut left: Found, mut right: Found, span: Span) -> Found {
        let mut found = Found::default();
        let (a, b) = (std::mem::take(&mut left.lines), std::mem::take(&mut right.lines));
        found.hear(&mut left);
        found.hear(&mut right);
        if a.is_empty() || b.is_empty() {
            return found;
        }
        let pairs = self.pairs(binary, &a, &b);
        if pairs.pairs.is_empty() {
            found.causes.insert(0, self.never_meet(binary, &a, &b, span));
            return found;
        }
        if let Some(reason) = self.ambiguous(binary, &a, &b, span) {
            found.causes.insert(0, reason);
            return found;
        }
        if pairs.only_guesses {
            found.blame(self.values_differ(binary, span));
        }
        for (at, to) in pairs.pairs {
            let (l, r) = (&a[at], &b[to]);
            let guess = l.guess || r.guess || pairs.only_guesses;
            match self.joined(binary, l, r, span) {
                Ok(line) => found.lines.push(Line { guess, ..line }),
                Err(reason) => found.blame(reason),
            }
        }
        found
    }

    /// One pair.
    fn joined(&self, binary: &Binary, l: &Line, r: &Line, span: Span) -> Result<Line, Reason> {
        let op = binary.op;
        let mut line = self.matched_labels(binary, l, r);
        line.filtered = l.filtered || r.filtered;
        line.sure = l.sure && r.sure;
        if op.is_comparison() {
            let never = match (&l.bound, &r.core, &l.core, &r.bound) {
                // A part against its whole.
                (Some((whole, f)), Some(core), ..)
                    if *whole == core.metric && *f <= core.factor && op == BinaryOp::Gt =>
                {
                    true
                }
                (_, _, Some(core), Some((whole, f)))
                    if *whole == core.metric && *f <= core.factor && op == BinaryOp::Lt =>
                {
                    true
                }
                _ => matches!((&l.core, &r.core), (Some(a), Some(b)) if a == b && is_strict(op)),
            };
            if never && !binary.return_bool {
                return Err(Reason::at(
                    span,
                    "impossible_value",
                    format!("{}: one side is never more than the other", self.quoted(span)),
                    "turn the comparison round, or compare with a part of it",
                ));
            }
            if binary.return_bool {
                return Ok(as_bool(
                    op,
                    Line {
                        core: None,
                        bound: None,
                        ..line
                    },
                    r.range,
                ));
            }
            let Some(range) = l.range.narrowed(op, r.range, l.whole && r.whole) else {
                return Err(self.impossible(op, l, r.range, span));
            };
            return Ok(Line {
                range,
                filtered: true,
                why: l.why.clone(),
                whole: l.whole,
                core: l.core.clone(),
                bound: l.bound.clone(),
                constant: l.constant.clone(),
                ..line
            });
        }
        let mut range = l.range.arithmetic(op, r.range);
        let mut bound = None;
        let mut why = None;
        if let (Some((whole, f)), Some(core)) = (&l.bound, &r.core)
            && *whole == core.metric
            && core.factor > 0.0
        {
            match op {
                BinaryOp::Div => {
                    let top = f / core.factor;
                    range = Interval::new(0.0, top);
                    why = Some(format!("a part of its whole, 0 to {}", model::number::General(top)));
                }
                BinaryOp::Sub if *f <= core.factor => range = Interval::new(f64::NEG_INFINITY, 0.0),
                _ => {}
            }
        }
        if let (Some(core), Some((whole, f))) = (&l.core, &r.bound)
            && *whole == core.metric
            && op == BinaryOp::Sub
            && *f <= core.factor
            && l.core != r.core
        {
            range = Interval::POSITIVE;
            bound = Some((whole.clone(), core.factor));
        }
        Ok(Line {
            range,
            why,
            bound,
            whole: l.whole && r.whole && matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
            core: None,
            constant: None,
            ..line.without_name()
        })
    }

    fn and(&self, binary: &Binary, mut left: Found, mut right: Found, span: Span) -> Found {
        let mut found = Found::default();
        let (a, b) = (std::mem::take(&mut left.lines), std::mem::take(&mut right.lines));
        found.hear(&mut left);
        found.hear(&mut right);
        if a.is_empty() || b.is_empty() {
            return found;
        }
        let pairs = self.pairs(binary, &a, &b);
        if pairs.pairs.is_empty() {
            found.causes.insert(0, self.never_meet(binary, &a, &b, span));
            return found;
        }
        if pairs.only_guesses {
            found.blame(self.values_differ(binary, span));
        }
        let is_plain = !binary.matching.on && binary.matching.labels.is_empty();
        let mut kept: Vec<Option<Line>> = vec![None; a.len()];
        for (at, to) in pairs.pairs {
            let (l, r) = (&a[at], &b[to]);
            let mut line = l.clone();
            line.filtered |= !r.sure;
            line.guess = l.guess || r.guess || pairs.only_guesses;
            // The same series on both sides: both conditions hold for one value.
            if is_plain
                && let (Some(x), Some(y)) = (&l.core, &r.core)
                && x == y
            {
                match l.range.meet(r.range) {
                    Some(range) => line.range = range,
                    None => {
                        found.blame(Reason::at(
                            span,
                            "contradiction",
                            format!("{}: no value meets both conditions", self.quoted(span)),
                            "the conditions exclude each other; `or` may be meant",
                        ));
                        continue;
                    }
                }
            }
            let slot = &mut kept[at];
            match slot {
                Some(have) if !have.guess => {}
                _ => *slot = Some(line),
            }
        }
        found.lines = kept.into_iter().flatten().collect();
        found
    }

    fn unless(&self, binary: &Binary, mut left: Found, mut right: Found, span: Span) -> Found {
        left.notes.append(&mut right.notes);
        let excluded = |line: &Line| {
            right.lines.iter().any(|r| {
                // The same series is there on both sides, or one that never goes away.
                let is_same = !line.filtered && !r.filtered && !r.guess && line.core.is_some() && line.core == r.core;
                (r.sure && (binary.matching.on && binary.matching.labels.is_empty()))
                    || (is_same && line.labels == r.labels)
            })
        };
        let before = left.lines.len();
        left.lines.retain(|line| !excluded(line));
        if left.lines.is_empty() && before > 0 {
            left.causes.insert(
                0,
                Reason::at(
                    span,
                    "contradiction",
                    format!(
                        "{}: what stands after `unless` takes everything away",
                        self.quoted(span)
                    ),
                    "narrow the right side",
                ),
            );
        }
        for line in &mut left.lines {
            line.filtered = true;
        }
        left
    }
}

fn or(mut left: Found, mut right: Found) -> Found {
    let mut lines = std::mem::take(&mut right.lines);
    left.hear(&mut right);
    if !left.lines.is_empty() {
        // A series of the right side gives way to one of the left with the same labels.
        for line in &mut lines {
            line.filtered = true;
        }
    }
    left.lines.extend(lines);
    left
}

/// `line op number`, arithmetic.
fn scaled(op: BinaryOp, line: Line, number: Interval) -> Line {
    let factor = match (op, number.single()) {
        (BinaryOp::Mul, Some(n)) if n > 0.0 => Some(n),
        (BinaryOp::Div, Some(n)) if n > 0.0 => Some(1.0 / n),
        _ => None,
    };
    let range = line.range.arithmetic(op, number);
    // What keeps its order keeps its reason.
    let (core, bound, why, constant) = (
        line.core.clone(),
        line.bound.clone(),
        line.why.clone(),
        line.constant.clone(),
    );
    let mut out = line.valued(range);
    out.why = why;
    if range.single().is_some() {
        out.constant = constant;
    }
    if let Some(factor) = factor {
        out.core = core.map(|core| Core {
            factor: core.factor * factor,
            ..core
        });
        out.bound = bound.map(|(metric, f)| (metric, f * factor));
    }
    out
}

/// `number op line`, arithmetic.
fn number_first(op: BinaryOp, line: Line, number: Option<Interval>) -> Line {
    let range = number.map_or(Interval::ALL, |number| number.arithmetic(op, line.range));
    // 100 times a series is the series, 100 times as large.
    if op == BinaryOp::Mul
        && let Some(number) = number
    {
        return scaled(op, line, number);
    }
    let why = line.why.clone();
    let mut out = line.valued(range);
    out.why = why;
    out
}

fn as_bool(op: BinaryOp, line: Line, number: Interval) -> Line {
    let range = if line.range.narrowed(op, number, line.whole).is_none() {
        Interval::one(0.0)
    } else if line.range.always(op, number) {
        Interval::one(1.0)
    } else {
        Interval::new(0.0, 1.0)
    };
    let mut out = line.valued(range);
    out.whole = true;
    out.why = Some("`bool` gives 0 or 1".to_owned());
    out.retain(|name| name != METRIC_NAME);
    out
}

/// A range in words.
fn words(range: Interval) -> String {
    let general = model::number::General;
    match (range.lo.is_finite(), range.hi.is_finite()) {
        _ if range.single().is_some() => format!("it is always {}", general(range.lo)),
        (true, true) => format!("values lie between {} and {}", general(range.lo), general(range.hi)),
        (true, false) => format!("values are {} or more", general(range.lo)),
        (false, true) => format!("values are {} or less", general(range.hi)),
        (false, false) => "values can be anything".to_owned(),
    }
}
