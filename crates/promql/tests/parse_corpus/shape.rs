//! The tree as the table of parsed expressions writes it.

use promql::ast::{At, BinaryOp, Cardinality, DurationExpr, DurationKind, Expr, ExprKind, RangeExtension, Selector};
use serde_json::{Map, Value, json};

/// Without the fields that say nothing, and with durations in words turned into milliseconds.
pub fn normal(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let value = match (name.as_str(), value) {
                    ("BypassEmptyMatcherCheck", _) => continue,
                    ("Card", Value::String(card)) if card == "CardOneToOne" => continue,
                    ("Range" | "Step", Value::String(words)) => json!(millis(words)),
                    (_, Value::Number(number)) => json!(number.as_f64()),
                    _ => normal(value),
                };
                let says_nothing = value.is_null()
                    || value == false
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value == json!({"node": "VectorMatching"});
                if !says_nothing {
                    kept.insert(name.clone(), value);
                }
            }
            // The table may leave out the matching of a set operator's plain form.
            Value::Object(kept.into_iter().collect())
        }
        _ => value.clone(),
    }
}

/// `4*time.Second + 180*time.Millisecond`
fn millis(words: &str) -> f64 {
    let factor = |word: &str| match word.trim() {
        "time.Millisecond" => 1.0,
        "time.Second" => 1_000.0,
        "time.Minute" => 60_000.0,
        "time.Hour" => 3_600_000.0,
        number => number.parse().expect("a factor is a number or a unit"),
    };
    words
        .split('+')
        .map(|term| term.split('*').map(factor).product::<f64>())
        .sum()
}

pub fn of(expr: &Expr) -> Value {
    match &expr.kind {
        ExprKind::Number { value, is_duration } => {
            json!({"node": "NumberLiteral", "Val": number(*value), "Duration": is_duration})
        }
        ExprKind::Text(text) => json!({"node": "StringLiteral", "Val": text}),
        ExprKind::Vector(selector) => vector(selector, selector.extension),
        ExprKind::Matrix {
            selector,
            range,
            extension,
        } => {
            let mut shape = json!({"node": "MatrixSelector", "VectorSelector": vector(selector, *extension)});
            put_duration(&mut shape, "Range", "RangeExpr", range);
            shape
        }
        ExprKind::Subquery(subquery) => {
            let mut shape = json!({"node": "SubqueryExpr", "Expr": of(&subquery.expr)});
            put_duration(&mut shape, "Range", "RangeExpr", &subquery.range);
            if let Some(step) = &subquery.step {
                put_duration(&mut shape, "Step", "StepExpr", step);
            }
            put_modifiers(&mut shape, subquery.offset.as_ref(), subquery.at);
            shape
        }
        ExprKind::Call { function, args } => {
            let args: Vec<Value> = args.iter().map(of).collect();
            json!({"node": "Call", "Func": format!("MustGetFunction({})", function.name), "Args": {"node": "Expressions", "v": args}})
        }
        ExprKind::Aggregate(aggregate) => json!({
            "node": "AggregateExpr",
            "Op": aggregate.op.name().to_uppercase(),
            "Expr": of(&aggregate.expr),
            "Param": aggregate.param.as_ref().map(of),
            "Grouping": aggregate.labels,
            "Without": aggregate.without,
        }),
        ExprKind::Binary(binary) => {
            let matching = &binary.matching;
            let card = match matching.card {
                Cardinality::OneToOne => "CardOneToOne",
                Cardinality::ManyToOne => "CardManyToOne",
                Cardinality::OneToMany => "CardOneToMany",
                Cardinality::ManyToMany => "CardManyToMany",
            };
            json!({
                "node": "BinaryExpr",
                "Op": op_name(binary.op),
                "LHS": of(&binary.lhs),
                "RHS": of(&binary.rhs),
                "ReturnBool": binary.return_bool,
                "VectorMatching": {
                    "node": "VectorMatching", "Card": card, "MatchingLabels": matching.labels,
                    "On": matching.on, "Include": matching.include,
                },
            })
        }
        ExprKind::Unary { minus, expr } => {
            json!({"node": "UnaryExpr", "Op": if *minus { "SUB" } else { "ADD" }, "Expr": of(expr)})
        }
        ExprKind::Paren(inner) => json!({"node": "ParenExpr", "Expr": of(inner)}),
    }
}

fn number(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!(model::number::Plain(value).to_string())
    }
}

fn vector(selector: &Selector, extension: Option<RangeExtension>) -> Value {
    let matchers: Vec<String> = selector
        .matchers
        .iter()
        .map(|m| format!("{}{}{}", m.name, m.op, model::text::quote(&m.value)))
        .collect();
    let mut shape = json!({
        "node": "VectorSelector",
        "LabelMatchers": matchers,
        "Anchored": extension == Some(RangeExtension::Anchored),
        "Smoothed": extension == Some(RangeExtension::Smoothed),
    });
    if !selector.name.is_empty() {
        shape["Name"] = json!(selector.name);
    }
    put_modifiers(&mut shape, selector.offset.as_ref(), selector.at);
    shape
}

fn put_modifiers(shape: &mut Value, offset: Option<&DurationExpr>, at: Option<At>) {
    match at {
        None => {}
        Some(At::Time(millis)) => shape["Timestamp"] = json!(format!("makeInt64Pointer({millis})")),
        Some(At::Start) => shape["StartOrEnd"] = json!("START"),
        Some(At::End) => shape["StartOrEnd"] = json!("END"),
    }
    // The table leaves out offsets that are literals.
    if let Some(offset) = offset.filter(|o| !matches!(o.kind, DurationKind::Literal { .. })) {
        shape["OriginalOffsetExpr"] = duration(offset);
    }
}

fn put_duration(shape: &mut Value, literal: &str, computed: &str, value: &DurationExpr) {
    match value.kind {
        DurationKind::Literal { millis, .. } => shape[literal] = json!(millis as f64),
        _ => shape[computed] = duration(value),
    }
}

fn duration(value: &DurationExpr) -> Value {
    match &value.kind {
        DurationKind::Literal { millis, is_number } => {
            json!({"node": "NumberLiteral", "Val": *millis as f64 / 1000.0, "Duration": !is_number})
        }
        DurationKind::Step => json!({"node": "DurationExpr", "Op": "STEP"}),
        DurationKind::Range => json!({"node": "DurationExpr", "Op": "RANGE"}),
        DurationKind::Unary { minus, expr } => {
            json!({"node": "DurationExpr", "Op": if *minus { "SUB" } else { "ADD" }, "RHS": duration(expr)})
        }
        DurationKind::Binary { op, lhs, rhs } => {
            json!({"node": "DurationExpr", "Op": op_name(*op), "LHS": duration(lhs), "RHS": duration(rhs)})
        }
        DurationKind::Extreme { max, lhs, rhs } => {
            let op = if *max { "MAX_OF" } else { "MIN_OF" };
            json!({"node": "DurationExpr", "Op": op, "LHS": duration(lhs), "RHS": duration(rhs)})
        }
        DurationKind::Paren(inner) => {
            let mut shape = match inner.kind {
                DurationKind::Literal { .. } => json!({"node": "DurationExpr", "Op": "ADD", "RHS": duration(inner)}),
                _ => duration(inner),
            };
            shape["Wrapped"] = json!(true);
            shape
        }
    }
}

fn op_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "ADD",
        BinaryOp::Sub => "SUB",
        BinaryOp::Mul => "MUL",
        BinaryOp::Div => "DIV",
        BinaryOp::Mod => "MOD",
        BinaryOp::Pow => "POW",
        BinaryOp::Atan2 => "ATAN2",
        BinaryOp::Eq => "EQLC",
        BinaryOp::Ne => "NEQ",
        BinaryOp::Lt => "LSS",
        BinaryOp::Le => "LTE",
        BinaryOp::Gt => "GTR",
        BinaryOp::Ge => "GTE",
        BinaryOp::And => "LAND",
        BinaryOp::Or => "LOR",
        BinaryOp::Unless => "LUNLESS",
        BinaryOp::TrimUpper => "TRIM_UPPER",
        BinaryOp::TrimLower => "TRIM_LOWER",
    }
}
