//! Builds the plan, and refuses what the options do not allow.

use std::cell::Cell;

use model::Millis;
use model::text::Span;

use super::duration::{Context, length, resolve};
use super::{
    Aggregate, Binary, Grouping, HistogramFunction, InstantFunction, Kind, Node, RangeCall, RangeFunction, Ranged,
    Select, Subquery,
};
use crate::ast::{self, AggregateOp, At, DurationExpr, Expr, ExprKind, RangeExtension};
use crate::engine::EngineOptions;

/// The moments a query is asked for, before they are a grid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    /// The first moment.
    pub(crate) start: Millis,
    /// The last moment.
    pub(crate) end: Millis,
    /// The step; zero for an instant query.
    pub(crate) step: Millis,
}

/// Plans `expr` as the whole of a query.
///
/// # Errors
///
/// [`Refusal`] when a duration cannot be or an experimental feature is not on.
pub(crate) fn build(expr: &Expr, query: Query, options: &EngineOptions) -> Result<Node, Refusal> {
    let builder = Builder {
        query,
        options,
        stats: Cell::new(false),
    };
    let planned = builder.node(expr)?;
    Ok(planned.settle())
}

/// Why an expression is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is wrong.
    pub(crate) message: String,
    /// Where.
    pub(crate) span: Span,
    /// Whether Prometheus' parser would have refused it.
    pub(crate) is_syntax: bool,
}

impl Refusal {
    fn new(message: impl Into<String>, span: Span) -> Self {
        Self {
            message: message.into(),
            span,
            is_syntax: false,
        }
    }
}

type Built<T> = Result<T, Refusal>;

/// Prometheus' flag; ours is the option `experimental`.
const NOT_ENABLED: &str = "is experimental and must be enabled with --enable-feature=promql-experimental-functions";

struct Builder<'a> {
    query: Query,
    options: &'a EngineOptions,
    /// Whether the nearest function around that looks into native histograms looks at counts and sums alone.
    stats: Cell<bool>,
}

/// A node that knows whether it changes from step to step.
struct Planned {
    node: Node,
    invariant: bool,
    /// Whether it is worth evaluating once; a number, a text and a range are not.
    wrap: bool,
}

impl Planned {
    fn settle(self) -> Node {
        if self.invariant && self.wrap {
            invariant(self.node)
        } else {
            self.node
        }
    }
}

fn invariant(node: Node) -> Node {
    let span = node.span;
    Node {
        kind: Kind::Invariant(Box::new(node)),
        span,
    }
}

impl Builder<'_> {
    fn node(&self, expr: &Expr) -> Built<Planned> {
        let span = expr.span;
        let planned = |kind: Kind, invariant: bool, wrap: bool| {
            Ok(Planned {
                node: Node { kind, span },
                invariant,
                wrap,
            })
        };
        match &expr.kind {
            ExprKind::Paren(inner) => self.node(inner),
            ExprKind::Unary { minus: false, expr } => self.node(expr),
            ExprKind::Number { value, .. } => planned(Kind::Number(*value), true, false),
            ExprKind::Text(text) => planned(Kind::Text(text.clone()), true, false),
            ExprKind::Vector(selector) => {
                let select = self.select(selector, None, span)?;
                let fixed = select.at.is_some();
                planned(Kind::Select(select), fixed, fixed)
            }
            ExprKind::Matrix { .. } | ExprKind::Subquery(_) => {
                let (ranged, fixed) = self.ranged(expr)?;
                planned(Kind::Ranged(ranged), fixed, false)
            }
            ExprKind::Unary { minus: true, expr } => {
                let inner = self.node(expr)?;
                if let Kind::Number(value) = inner.node.kind {
                    return planned(Kind::Number(-value), true, false);
                }
                planned(Kind::Negate(Box::new(inner.node)), inner.invariant, inner.wrap)
            }
            ExprKind::Binary(_) => self.chain(expr),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate, span),
            ExprKind::Call { function, args } => self.call(function, args, span),
        }
    }

    fn chain(&self, expr: &Expr) -> Built<Planned> {
        // An operation looks at whole histograms, whatever is made of its result.
        let outer = self.stats.replace(false);
        let planned = self.chain_within(expr);
        self.stats.set(outer);
        planned
    }

    fn chain_within(&self, expr: &Expr) -> Built<Planned> {
        let (links, first) = expr.chain();
        for (link, span) in &links {
            if link.matching.fills() {
                self.experimental("binop fill modifiers are experimental and not enabled", *span)?;
            }
        }
        let mut links = links.into_iter().rev();
        links.try_fold(self.node(first)?, |lhs, (link, span)| self.binary(lhs, link, span))
    }

    fn binary(&self, lhs: Planned, binary: &ast::Binary, span: Span) -> Built<Planned> {
        let rhs = self.node(&binary.rhs)?;
        let both = lhs.invariant && rhs.invariant;
        let (lhs, rhs) = if both {
            (lhs.node, rhs.node)
        } else {
            (lhs.settle(), rhs.settle())
        };
        let kind = Kind::Binary(Box::new(Binary {
            op: binary.op,
            lhs,
            rhs,
            return_bool: binary.return_bool,
            matching: binary.matching.clone(),
            span,
        }));
        Ok(Planned {
            node: Node { kind, span },
            invariant: both,
            wrap: both,
        })
    }

    fn aggregate(&self, aggregate: &ast::Aggregate, span: Span) -> Built<Planned> {
        match aggregate.op {
            AggregateOp::Limitk => self.experimental(&format!("limitk() {NOT_ENABLED}"), span)?,
            AggregateOp::LimitRatio => self.experimental(&format!("limit_ratio() {NOT_ENABLED}"), span)?,
            _ => {}
        }
        let arg = self.node(&aggregate.expr)?;
        let param = aggregate.param.as_ref().map(|p| self.node(p)).transpose()?;
        let all = arg.invariant && param.as_ref().is_none_or(|p| p.invariant);
        let wrap = all && arg.wrap;
        let keep = |p: Planned| if all { p.node } else { p.settle() };
        let kind = Kind::Aggregate(Box::new(Aggregate {
            op: aggregate.op,
            arg: keep(arg),
            param: param.map(keep),
            grouping: Grouping {
                labels: aggregate.labels.clone(),
                without: aggregate.without,
            },
        }));
        Ok(Planned {
            node: Node { kind, span },
            invariant: all,
            wrap,
        })
    }

    fn call(&self, function: &'static crate::function::Function, args: &[Expr], span: Span) -> Built<Planned> {
        if function.experimental {
            self.experimental(&format!("function {:?} is not enabled", function.name), span)?;
        }
        // The parser sees to this; a tree may come from elsewhere.
        let required = function.args.len() - usize::from(function.variadic != 0);
        if args.len() < required {
            let name = function.name;
            return Err(Refusal::new(
                format!(
                    "expected {required} argument(s) in call to {name:?}, got {}",
                    args.len()
                ),
                span,
            ));
        }
        if let Some(value) = self.context(function.name) {
            return Ok(Planned {
                node: Node {
                    kind: Kind::Number(value),
                    span,
                },
                invariant: true,
                wrap: false,
            });
        }
        if let Some(range) = RangeFunction::named(function.name) {
            return self.range_call(range, function.name, args, span);
        }
        let Some(function) = InstantFunction::named(function.name) else {
            return Err(Refusal::new(
                format!("function {:?} is not known to the evaluator", function.name),
                span,
            ));
        };
        let outer = self.stats.get();
        if let InstantFunction::Histogram(histogram) = function {
            use HistogramFunction::{Avg, Count, Sum};
            self.stats.set(matches!(histogram, Avg | Count | Sum));
        }
        let planned = args.iter().map(|a| self.node(a)).collect::<Built<Vec<_>>>();
        self.stats.set(outer);
        let planned = planned?;
        let same_args = planned.iter().all(|p| p.invariant);
        // `timestamp(x @ 1)` is fixed, `timestamp(abs(x @ 1))` tells the time of the step.
        let selectors = planned.iter().all(|p| matches!(p.node.kind, Kind::Select(_)));
        let fixed = same_args && (!function.depends_on_time() || (function == InstantFunction::Timestamp && selectors));
        let args = planned
            .into_iter()
            .map(|p| if fixed { p.node } else { p.settle() })
            .collect();
        Ok(Planned {
            node: Node {
                kind: Kind::Call(function, args),
                span,
            },
            invariant: fixed,
            wrap: fixed,
        })
    }

    fn range_call(&self, function: RangeFunction, name: &'static str, args: &[Expr], span: Span) -> Built<Planned> {
        let mut params = Vec::new();
        let mut ranged = None;
        for arg in args {
            let inner = unwrap_parens(arg);
            match inner.kind {
                ExprKind::Matrix { .. } | ExprKind::Subquery(_) => {
                    ranged = Some((self.ranged(inner)?, inner.span));
                }
                _ => params.push(self.node(arg)?),
            }
        }
        let Some(((arg, fixed_arg), arg_span)) = ranged else {
            return Err(Refusal::new(
                format!("expected type range vector in call to function {name:?}"),
                span,
            ));
        };
        let fixed = fixed_arg && function != RangeFunction::PredictLinear && params.iter().all(|p| p.invariant);
        let params = params
            .into_iter()
            .map(|p| if fixed { p.node } else { p.settle() })
            .collect();
        let kind = Kind::Range(Box::new(RangeCall {
            function,
            name,
            arg,
            arg_span,
            params,
        }));
        Ok(Planned {
            node: Node { kind, span },
            invariant: fixed,
            wrap: fixed,
        })
    }

    /// A range selector or subquery, and whether it is fixed in time.
    fn ranged(&self, expr: &Expr) -> Built<(Ranged, bool)> {
        match &expr.kind {
            ExprKind::Matrix {
                selector,
                range,
                extension,
            } => {
                let select = self.select(selector, *extension, expr.span)?;
                let fixed = select.at.is_some();
                let range = self.length(range)?;
                Ok((Ranged::Select { select, range }, fixed))
            }
            ExprKind::Subquery(subquery) => {
                let inner = self.node(&subquery.expr)?;
                let range = self.length(&subquery.range)?;
                let step = subquery.step.as_ref().map(|s| self.length(s)).transpose()?;
                let at = subquery.at.map(|at| self.at(at));
                let ranged = Ranged::Subquery(Box::new(Subquery {
                    inner: if inner.invariant {
                        invariant(inner.node)
                    } else {
                        inner.node
                    },
                    range,
                    step: step.unwrap_or(self.options.subquery_step).max(1),
                    offset: self.offset(subquery.offset.as_ref())?,
                    at,
                }));
                Ok((ranged, at.is_some()))
            }
            _ => Err(Refusal::new("expected a range vector", expr.span)),
        }
    }

    fn select(&self, selector: &ast::Selector, outer: Option<RangeExtension>, span: Span) -> Built<Select> {
        let extension = outer.or(selector.extension);
        match extension {
            Some(RangeExtension::Anchored) => {
                self.experimental("anchored modifier is experimental and not enabled", span)?;
            }
            Some(RangeExtension::Smoothed) => {
                self.experimental("smoothed modifier is experimental and not enabled", span)?;
            }
            None => {}
        }
        let mut alternatives = vec![selector.matchers.clone()];
        alternatives.extend(selector.or_matchers.iter().cloned());
        Ok(Select {
            alternatives,
            offset: self.offset(selector.offset.as_ref())?,
            at: selector.at.map(|at| self.at(at)),
            extension,
            stats: self.stats.get(),
        })
    }

    fn at(&self, at: At) -> Millis {
        match at {
            At::Time(time) => time,
            At::Start => self.query.start,
            At::End => self.query.end,
        }
    }

    fn offset(&self, offset: Option<&DurationExpr>) -> Built<Millis> {
        offset.map_or(Ok(0), |expr| {
            resolve(expr, self.durations()).map_err(|e| Refusal::new(e, expr.span))
        })
    }

    fn length(&self, expr: &DurationExpr) -> Built<Millis> {
        length(expr, self.durations()).map_err(|e| Refusal::new(e, expr.span))
    }

    const fn durations(&self) -> Context {
        Context {
            step: self.query.step,
            range: self.query.end.saturating_sub(self.query.start),
        }
    }

    /// The number that `start()`, `end()`, `range()` or `step()` stands for, in seconds.
    fn context(&self, name: &str) -> Option<f64> {
        let Query { start, end, step } = self.query;
        let millis = match name {
            "start" => start,
            "end" => end,
            "range" => end.saturating_sub(start),
            "step" if start == end => 0,
            "step" => step,
            "pi" => return Some(std::f64::consts::PI),
            _ => return None,
        };
        Some(millis as f64 / 1000.0)
    }

    fn experimental(&self, message: &str, span: Span) -> Built<()> {
        if self.options.experimental {
            Ok(())
        } else {
            Err(Refusal {
                is_syntax: true,
                ..Refusal::new(message, span)
            })
        }
    }
}

fn unwrap_parens(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Paren(inner) => unwrap_parens(inner),
        _ => expr,
    }
}
