//! Types, matching rules and numbers of arguments, after the tree is whole.
//!
//! It also completes the tree where the rules imply something: set operators match many to many, and
//! a scalar side leaves nothing to match.

use model::METRIC_NAME;
use model::text::{Span, quote};

use crate::ast::{Aggregate, AggregateOp, Binary, BinaryOp, Cardinality, Expr, ExprKind, Matching, Selector};
use crate::error::Problem;
use crate::function::{Function, ValueType};

/// Notes in `problems` everything wrong below `expr` and gives its type.
pub(crate) fn check(expr: &mut Expr, text: &str, problems: &mut Vec<Problem>) -> ValueType {
    Checker { text, problems }.check(expr)
}

impl Expr {
    /// The type of its value.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match &self.kind {
            ExprKind::Number { .. } => ValueType::Scalar,
            ExprKind::Text(_) => ValueType::Text,
            ExprKind::Vector(_) | ExprKind::Aggregate(_) => ValueType::Vector,
            ExprKind::Matrix { .. } | ExprKind::Subquery(_) => ValueType::Matrix,
            ExprKind::Call { function, .. } => function.returns,
            ExprKind::Binary(_) => {
                let (links, first) = self.chain();
                let scalar = |expr: &Self| expr.value_type() == ValueType::Scalar;
                match scalar(first) && links.iter().all(|(link, _)| scalar(&link.rhs)) {
                    true => ValueType::Scalar,
                    false => ValueType::Vector,
                }
            }
            ExprKind::Unary { expr, .. } | ExprKind::Paren(expr) => expr.value_type(),
        }
    }
}

struct Checker<'a> {
    text: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn problem(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push(Problem::new(self.text, span, message.into()));
    }

    fn check(&mut self, expr: &mut Expr) -> ValueType {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Number { .. } => ValueType::Scalar,
            ExprKind::Text(_) => ValueType::Text,
            ExprKind::Vector(selector) => {
                self.selector(selector, span, false);
                ValueType::Vector
            }
            ExprKind::Matrix { selector, .. } => {
                self.selector(selector, span, false);
                ValueType::Matrix
            }
            ExprKind::Subquery(subquery) => {
                let found = self.check(&mut subquery.expr);
                if found != ValueType::Vector {
                    let found = found.name();
                    self.problem(
                        span,
                        format!("subquery is only allowed on instant vector, got {found} instead"),
                    );
                }
                ValueType::Matrix
            }
            ExprKind::Call { function, args } => self.call(function, args, span),
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate),
            ExprKind::Binary(_) => self.chain(expr),
            ExprKind::Paren(inner) => self.check(inner),
            ExprKind::Unary { expr, .. } => {
                let found = self.check(expr);
                if !matches!(found, ValueType::Scalar | ValueType::Vector) {
                    let found = quote(found.documented());
                    self.problem(
                        span,
                        format!(
                            "unary expression only allowed on expressions of type scalar or instant vector, got {found}"
                        ),
                    );
                }
                found
            }
        }
    }

    fn selector(&mut self, selector: &Selector, span: Span, may_be_empty: bool) {
        if let Some((_, inner)) = selector.matchers.split_last().filter(|_| !selector.name.is_empty()) {
            for matcher in inner.iter().filter(|m| m.name == METRIC_NAME) {
                let (name, other) = (quote(&selector.name), quote(&matcher.value));
                self.problem(span, format!("metric name must not be set twice: {name} or {other}"));
            }
        } else if !may_be_empty && selector.matchers.iter().all(model::Matcher::matches_empty) {
            self.problem(span, "vector selector must contain at least one non-empty matcher");
        }
    }

    fn aggregate(&mut self, aggregate: &mut Aggregate) -> ValueType {
        self.expect(&mut aggregate.expr, ValueType::Vector, "aggregation expression");
        if let Some(param) = &mut aggregate.param {
            let wanted = match aggregate.op {
                AggregateOp::CountValues => ValueType::Text,
                _ => ValueType::Scalar,
            };
            self.expect(param, wanted, "aggregation parameter");
        }
        ValueType::Vector
    }

    fn expect(&mut self, expr: &mut Expr, wanted: ValueType, place: &str) {
        let found = self.check(expr);
        self.compare(expr.span, wanted, found, place);
    }

    fn compare(&mut self, span: Span, wanted: ValueType, found: ValueType, place: &str) {
        if found != wanted {
            let (wanted, found) = (wanted.documented(), found.documented());
            self.problem(span, format!("expected type {wanted} in {place}, got {found}"));
        }
    }

    fn call(&mut self, function: &'static Function, args: &mut [Expr], span: Span) -> ValueType {
        self.arity(function, args.len(), span);
        let place = format!("call to function {}", quote(function.name));
        if function.name == "info"
            && let Some(second) = args.get_mut(1)
        {
            self.info_selector(second, span, &place);
        }
        for (at, arg) in args.iter_mut().enumerate() {
            let wanted = match function.args.get(at) {
                Some(wanted) => *wanted,
                None if function.variadic == 0 => break,
                None => function.args.last().copied().unwrap_or(ValueType::Vector),
            };
            // The second argument of `info` lists labels and may well match every series.
            let found = match &arg.kind {
                ExprKind::Vector(selector) if function.name == "info" && at == 1 => {
                    self.selector(selector, arg.span, true);
                    ValueType::Vector
                }
                _ => self.check(arg),
            };
            self.compare(arg.span, wanted, found, &place);
        }
        function.returns
    }

    fn arity(&mut self, function: &Function, got: usize, span: Span) {
        let (listed, name) = (function.args.len(), quote(function.name));
        let message = if function.variadic == 0 {
            (got != listed).then(|| format!("expected {listed} argument(s) in call to {name}, got {got}"))
        } else {
            let least = listed - 1;
            let most = usize::try_from(function.variadic).map(|more| least + more);
            match most {
                _ if got < least => Some(format!(
                    "expected at least {least} argument(s) in call to {name}, got {got}"
                )),
                Ok(most) if got > most => Some(format!(
                    "expected at most {most} argument(s) in call to {name}, got {got}"
                )),
                _ => None,
            }
        };
        if let Some(message) = message {
            self.problem(span, message);
        }
    }

    fn info_selector(&mut self, second: &Expr, call: Span, place: &str) {
        self.compare(call, ValueType::Vector, second.value_type(), place);
        match &second.kind {
            ExprKind::Vector(selector) if selector.name.is_empty() => {}
            ExprKind::Vector(_) => self.problem(
                second.span,
                "expected label selectors only, got vector selector instead",
            ),
            _ => self.problem(second.span, "expected label selectors only"),
        }
    }

    /// Checks a chain of operations, innermost first; the tree is taken apart meanwhile.
    fn chain(&mut self, expr: &mut Expr) -> ValueType {
        let hole = |span| Expr {
            kind: ExprKind::HOLE,
            span,
        };
        let mut links = Vec::new();
        let mut at = std::mem::replace(expr, hole(expr.span));
        while let ExprKind::Binary(binary) = &mut at.kind {
            let span = binary.lhs.span;
            let lhs = std::mem::replace(&mut binary.lhs, hole(span));
            links.push(std::mem::replace(&mut at, lhs));
        }
        let mut found = self.check(&mut at);
        for mut link in links.into_iter().rev() {
            if let ExprKind::Binary(binary) = &mut link.kind {
                binary.lhs = at;
                found = self.binary(binary, found, link.span);
            }
            at = link;
        }
        *expr = at;
        found
    }

    fn binary(&mut self, binary: &mut Binary, lhs: ValueType, span: Span) -> ValueType {
        let rhs = self.check(&mut binary.rhs);
        let both_scalar = lhs == ValueType::Scalar && rhs == ValueType::Scalar;
        let op = binary.op;
        if binary.return_bool && !op.is_comparison() {
            let at = self.between(binary);
            self.problem(at, "bool modifier can only be used on comparison operators");
        }
        if op.is_comparison() && !binary.return_bool && both_scalar {
            let at = self.between(binary);
            self.problem(at, "comparisons between scalars must use BOOL modifier");
        }
        if op.is_set() && binary.matching.card == Cardinality::OneToOne {
            binary.matching.card = Cardinality::ManyToMany;
        }
        self.grouping_labels(binary);
        for (found, side) in [(lhs, &binary.lhs), (rhs, &binary.rhs)] {
            if !matches!(found, ValueType::Scalar | ValueType::Vector) {
                self.problem(
                    side.span,
                    "binary expression must contain only scalar and instant vector types",
                );
            }
        }
        if lhs == ValueType::Vector && rhs == ValueType::Vector {
            if op.is_set() {
                self.set_matching(op, &binary.matching, span);
            }
        } else {
            self.no_matching(&binary.matching, span);
            binary.matching = Matching::default();
        }
        if op.is_set() && (lhs == ValueType::Scalar || rhs == ValueType::Scalar) {
            let op = quote(op.name());
            self.problem(
                span,
                format!("set operator {op} not allowed in binary scalar expression"),
            );
        }
        match both_scalar {
            true => ValueType::Scalar,
            false => ValueType::Vector,
        }
    }

    fn grouping_labels(&mut self, binary: &Binary) {
        let matching = &binary.matching;
        for label in matching.labels.iter().filter(|_| matching.on) {
            if matching.include.contains(label) {
                let (at, label) = (self.between(binary), quote(label));
                self.problem(
                    at,
                    format!("label {label} must not occur in ON and GROUP clause at once"),
                );
            }
        }
    }

    fn set_matching(&mut self, op: BinaryOp, matching: &Matching, span: Span) {
        if matching.card != Cardinality::ManyToMany {
            let op = quote(op.name());
            self.problem(span, format!("no grouping allowed for {op} operation"));
            self.problem(span, "set operations must always be many-to-many");
        }
        if matching.fills() {
            self.problem(span, "filling in missing series not allowed for set operators");
        }
    }

    fn no_matching(&mut self, matching: &Matching, span: Span) {
        if !matching.labels.is_empty() {
            self.problem(span, "vector matching only allowed between instant vectors");
        }
        if matching.fills() {
            self.problem(span, "filling in missing series only allowed between instant vectors");
        }
    }

    /// The operator with its modifiers, spaces around it left out.
    fn between(&self, binary: &Binary) -> Span {
        let (start, end) = (binary.lhs.span.end, binary.rhs.span.start);
        let gap = self.text.get(start..end).unwrap_or("");
        let start = start + (gap.len() - gap.trim_start().len());
        Span::new(start, start + gap.trim().len())
    }
}

impl Matching {
    /// Whether a missing side is filled in.
    #[must_use]
    pub const fn fills(&self) -> bool {
        self.fill_left.is_some() || self.fill_right.is_some()
    }
}

impl BinaryOp {
    /// Whether it compares: `==`, `<` and the like.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }

    /// Whether it joins sets of series: `and`, `or`, `unless`.
    #[must_use]
    pub const fn is_set(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Unless)
    }
}
