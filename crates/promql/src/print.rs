//! The tree on one line, in Prometheus' normal form: what is printed parses to the same tree.

use std::fmt::{self, Display as _};

use model::number::{General, Plain};
use model::text::quote;
use model::time::DurationText;
use model::{METRIC_NAME, MatchOp, Matcher};

use crate::ast::{
    Aggregate, AggregateOp, At, Binary, BinaryOp, Cardinality, DurationExpr, DurationKind, Expr, ExprKind, Matching,
    RangeExtension, Selector, Subquery,
};

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Number { value, is_duration } => fmt_number(*value, *is_duration, f),
            ExprKind::Text(text) => f.write_str(&readable(&quote(text))),
            ExprKind::Vector(selector) => write!(f, "{}{}", Series(selector), Modifiers::of_vector(selector)),
            ExprKind::Matrix {
                selector,
                range,
                extension,
            } => {
                let modifiers = Modifiers::of_range(selector, *extension);
                write!(f, "{}[{range}]{modifiers}", Series(selector))
            }
            ExprKind::Subquery(subquery) => write!(f, "{}{}", subquery.expr, SubqueryRange(subquery)),
            ExprKind::Call { function, args } => {
                write!(f, "{}(", function.name)?;
                fmt_list(args, ", ", f)?;
                f.write_str(")")
            }
            ExprKind::Aggregate(aggregate) => {
                write!(f, "{}(", AggregateHead(aggregate))?;
                if let Some(param) = &aggregate.param {
                    write!(f, "{param}, ")?;
                }
                write!(f, "{})", aggregate.expr)
            }
            ExprKind::Binary(_) => {
                let (links, first) = self.chain();
                first.fmt(f)?;
                let mut links = links.iter().rev();
                links.try_for_each(|(link, _)| write!(f, " {} {}", Operator(link), link.rhs))
            }
            ExprKind::Unary { minus, expr } => write!(f, "{}{expr}", sign(*minus)),
            ExprKind::Paren(inner) => write!(f, "({inner})"),
        }
    }
}

pub(crate) const fn sign(minus: bool) -> &'static str {
    if minus { "-" } else { "+" }
}

fn fmt_list<T: fmt::Display>(items: &[T], separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

fn fmt_number(value: f64, is_duration: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match is_duration {
        // Reading allows no more than fits.
        true => DurationText((value * 1000.0).round() as i64).fmt(f),
        false => Plain(value).fmt(f),
    }
}

/// `sum by (job) `: everything before the parenthesis.
pub(crate) struct AggregateHead<'a>(pub(crate) &'a Aggregate);

impl fmt::Display for AggregateHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregate = self.0;
        f.write_str(aggregate.op.name())?;
        match aggregate.without {
            true => write!(f, " without ({}) ", LabelList(&aggregate.labels)),
            // Grouping by nothing is the same as no grouping.
            false if aggregate.labels.is_empty() => Ok(()),
            false => write!(f, " by ({}) ", LabelList(&aggregate.labels)),
        }
    }
}

/// Labels separated by commas, quoted where they are no plain names.
struct LabelList<'a>(&'a [String]);

impl fmt::Display for LabelList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, label) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match model::labels::is_legacy_label_name(label) {
                true => f.write_str(label)?,
                false => f.write_str(&readable(&quote(label)))?,
            }
        }
        Ok(())
    }
}

/// An operator with its modifiers: `== bool on (job)`.
pub(crate) struct Operator<'a>(pub(crate) &'a Binary);

impl fmt::Display for Operator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.op.name())?;
        if self.0.return_bool {
            f.write_str(" bool")?;
        }
        fmt_matching(&self.0.matching, f)
    }
}

fn fmt_matching(matching: &Matching, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let group = match matching.card {
        Cardinality::ManyToOne => Some("group_left"),
        Cardinality::OneToMany => Some("group_right"),
        Cardinality::OneToOne | Cardinality::ManyToMany => None,
    };
    if matching.on || !matching.labels.is_empty() || group.is_some() {
        let word = if matching.on { "on" } else { "ignoring" };
        write!(f, " {word} ({})", LabelList(&matching.labels))?;
    }
    if let Some(group) = group {
        write!(f, " {group} ({})", LabelList(&matching.include))?;
    }
    match (matching.fill_left, matching.fill_right) {
        (Some(left), Some(right)) if left == right => write!(f, " fill ({})", General(left)),
        (left, right) => {
            if let Some(value) = left {
                write!(f, " fill_left ({})", General(value))?;
            }
            if let Some(value) = right {
                write!(f, " fill_right ({})", General(value))?;
            }
            Ok(())
        }
    }
}

/// What was no UTF-8 stands as the replacement character, which the lexer refuses where it is not escaped.
fn readable(quoted: &str) -> String {
    quoted.replace('\u{fffd}', "\\ufffd")
}

/// Name and matchers, the matchers sorted by their text.
struct Series<'a>(&'a Selector);

impl fmt::Display for Series<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selector = self.0;
        f.write_str(&selector.name)?;
        let is_name = |m: &&Matcher| {
            !selector.name.is_empty() && m.name == METRIC_NAME && m.op == MatchOp::Equal && m.value == selector.name
        };
        let shown = selector.matchers.iter().filter(|m| !is_name(m));
        let mut texts: Vec<String> = shown.map(|m| readable(&m.to_string())).collect();
        if texts.is_empty() {
            // Nothing at all would not be read back.
            return f.write_str(if selector.name.is_empty() { "{}" } else { "" });
        }
        texts.sort_unstable();
        f.write_str("{")?;
        fmt_list(&texts, ",", f)?;
        f.write_str("}")
    }
}

/// `[1h:5m] @ end() offset 1m`
pub(crate) struct SubqueryRange<'a>(pub(crate) &'a Subquery);

impl fmt::Display for SubqueryRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subquery {
            range,
            step,
            offset,
            at,
            ..
        } = self.0;
        write!(f, "[{range}:")?;
        if let Some(step) = step {
            step.fmt(f)?;
        }
        f.write_str("]")?;
        fmt_at(*at, f)?;
        fmt_offset(offset.as_ref(), f)
    }
}

/// ` @ 10.000 anchored offset 1m`: a range puts the extension first, a plain selector the moment.
struct Modifiers<'a> {
    selector: &'a Selector,
    before: Option<RangeExtension>,
    after: Option<RangeExtension>,
}

impl<'a> Modifiers<'a> {
    const fn of_vector(selector: &'a Selector) -> Self {
        Self {
            selector,
            before: None,
            after: selector.extension,
        }
    }

    const fn of_range(selector: &'a Selector, extension: Option<RangeExtension>) -> Self {
        Self {
            selector,
            before: extension,
            after: None,
        }
    }
}

impl fmt::Display for Modifiers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_extension(self.before, f)?;
        fmt_at(self.selector.at, f)?;
        fmt_extension(self.after, f)?;
        fmt_offset(self.selector.offset.as_ref(), f)
    }
}

fn fmt_extension(extension: Option<RangeExtension>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match extension {
        None => Ok(()),
        Some(RangeExtension::Anchored) => f.write_str(" anchored"),
        Some(RangeExtension::Smoothed) => f.write_str(" smoothed"),
    }
}

fn fmt_at(at: Option<At>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match at {
        None => Ok(()),
        Some(At::Start) => f.write_str(" @ start()"),
        Some(At::End) => f.write_str(" @ end()"),
        Some(At::Time(millis)) => write!(f, " @ {:.3}", millis as f64 / 1000.0),
    }
}

fn fmt_offset(offset: Option<&DurationExpr>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match offset.map(|offset| (&offset.kind, offset)) {
        None | Some((DurationKind::Literal { millis: 0, .. }, _)) => Ok(()),
        Some((DurationKind::Literal { millis, .. }, _)) => write!(f, " offset {}", DurationText(*millis)),
        Some((_, offset)) => write!(f, " offset {}", Part(offset)),
    }
}

/// Alone, a number of seconds is shown as the duration it is.
impl fmt::Display for DurationExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DurationKind::Literal { millis, .. } => DurationText(millis).fmt(f),
            _ => Part(self).fmt(f),
        }
    }
}

/// A duration within an expression, where a number stays a number.
struct Part<'a>(&'a DurationExpr);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            DurationKind::Literal { millis, is_number } => fmt_number(*millis as f64 / 1000.0, !is_number, f),
            DurationKind::Step => f.write_str("step()"),
            DurationKind::Range => f.write_str("range()"),
            DurationKind::Unary { minus, expr } => {
                write!(f, "{}{}", if *minus { "-" } else { "" }, Part(expr))
            }
            DurationKind::Binary { op, lhs, rhs } => write!(f, "{} {} {}", Part(lhs), op.name(), Part(rhs)),
            DurationKind::Extreme { max, lhs, rhs } => {
                let name = if *max { "max_of" } else { "min_of" };
                write!(f, "{name}({}, {})", Part(lhs), Part(rhs))
            }
            DurationKind::Paren(inner) => write!(f, "({})", Part(inner)),
        }
    }
}

impl BinaryOp {
    /// The operator as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
            Self::Atan2 => "atan2",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::And => "and",
            Self::Or => "or",
            Self::Unless => "unless",
            Self::TrimUpper => "</",
            Self::TrimLower => ">/",
        }
    }
}

impl AggregateOp {
    /// The operator as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Count => "count",
            Self::Min => "min",
            Self::Max => "max",
            Self::Group => "group",
            Self::Stddev => "stddev",
            Self::Stdvar => "stdvar",
            Self::Topk => "topk",
            Self::Bottomk => "bottomk",
            Self::CountValues => "count_values",
            Self::Quantile => "quantile",
            Self::Limitk => "limitk",
            Self::LimitRatio => "limit_ratio",
        }
    }
}
