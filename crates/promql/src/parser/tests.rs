use expect_test::{Expect, expect};

use super::{DEPTH_MAX, TEXT_MAX, parse, parse_selector};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn check(query: &str, want: Expect) {
    want.assert_eq(&parse(query).map_or_else(|error| error.render(query), |expr| expr.to_string()));
}

/// The tree with every operator's operands in square brackets.
#[track_caller]
fn check_grouping(query: &str, want: &str) {
    use crate::ast::{Expr, ExprKind};
    fn show(expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Binary(b) => format!("[{} {} {}]", show(&b.lhs), b.op.name(), show(&b.rhs)),
            ExprKind::Unary { minus, expr } => format!("[{}{}]", if *minus { "-" } else { "+" }, show(expr)),
            _ => expr.to_string(),
        }
    }
    let expr = parse(query).expect("the query parses");
    assert_eq!(show(&expr), want);
}

#[test]
fn operators_group_by_their_strength() {
    check_grouping("a or b and c unless d", "[a or [[b and c] unless d]]");
    check_grouping("a + b * c ^ d ^ e", "[a + [b * [c ^ [d ^ e]]]]");
    check_grouping("a - b - c", "[[a - b] - c]");
    check_grouping("a > b == c", "[[a > b] == c]");
    check_grouping("a + b > c + d", "[[a + b] > [c + d]]");
    check_grouping("-a ^ b * c", "[[-[a ^ b]] * c]");
    check_grouping("a ^ -b ^ c", "[a ^ [-[b ^ c]]]");
    check_grouping("a atan2 b % c", "[[a atan2 b] % c]");
    check_grouping("- - a", "[-[-a]]");
}

#[test]
fn modifiers_bind_to_the_selector() {
    check("sum(up offset 5m)", expect!["sum(up offset 5m)"]);
    check_grouping("-a offset 5m", "[-a offset 5m]");
    check_grouping("a + b @ 5", "[a + b @ 5.000]");
    check_grouping("a offset 5m - 3", "[a offset 5m - 3]");
    check_grouping("a offset -(5m) - 3", "[a offset -(5m) - 3]");
    check("a offset (5m) - 3", expect!["a offset (5m) - 3"]);
    check("a offset 0 offset 5m", expect!["a offset 5m"]);
    check(
        "rate(x[5m] @ end() offset 1h)",
        expect!["rate(x[5m] @ end() offset 1h)"],
    );
}

#[test]
fn reserved_words_are_names_where_they_can_be() {
    check("sum", expect!["sum"]);
    check("sum{by=\"x\"} + offset", expect![[r#"sum{by="x"} + offset"#]]);
    check(
        "sum by (on, ignoring, group_left) (x)",
        expect!["sum by (on, ignoring, group_left) (x)"],
    );
    check("SUM BY (a) (x) OR y", expect!["sum by (a) (x) or y"]);
    check("fill + fill(2) fill_left", expect!["fill + fill (2) fill_left"]);
    check("start() + step()", expect!["start() + step()"]);
}

#[test]
fn numbers_are_read_as_go_reads_them() {
    check(
        "0x1F + 0755 + 1_000 + .5e1 + inf",
        expect!["31 + 493 + 1000 + 5 + +Inf"],
    );
    check("-5m + 1h30m", expect!["-5m + 1h30m"]);
    check("08", expect!["8"]);
    check(
        "1_ + 2",
        expect![[r#"
        1:1: parse error: error parsing number: strconv.ParseFloat: parsing "1_": invalid syntax
          1_ + 2
          ^^"#]],
    );
    check("a + fill(1000000) b", expect!["a + fill (1e+06) b"]);
}

#[test]
fn an_error_shows_its_place() {
    check(
        "sum(up",
        expect![[r#"
        1:7: parse error: unclosed left parenthesis
          sum(up
                ^"#]],
    );
    check(
        "up\n  + }",
        expect![[r#"
        2:5: parse error: unexpected character: '}'
            + }
              ^"#]],
    );
    check(
        "foo{a=~\"(\"}",
        expect![[r#"
        1:5: parse error: error parsing regexp: unclosed group: `(`
          foo{a=~"("}
              ^^^^^^"#]],
    );
    check(
        "sum(foo bar)",
        expect![[r#"
        1:9: parse error: unexpected identifier "bar" in aggregation
          sum(foo bar)
                  ^^^"#]],
    );
    check(
        "foo{a=\"1\" or b=\"2\"}",
        expect![[r#"
            1:11: parse error: unexpected identifier "or" in label matching, expected "," or "}"
              foo{a="1" or b="2"}
                        ^^"#]],
    );
}

#[test]
fn a_selector_stands_alone() {
    let matchers = parse_selector("up{job!=\"x\"}").expect("a selector");
    assert_eq!(matchers.len(), 2);
    assert!(parse_selector("{}").expect("a selector").is_empty());
    assert!(parse_selector("up + 1").is_err());
    assert!(parse_selector("5").is_err());
}

#[test]
fn nesting_is_limited_in_every_direction() {
    let deep = |n: usize| [&*"(".repeat(n), "x", &*")".repeat(n)].concat();
    let limit = DEPTH_MAX as usize;
    assert!(parse(&deep(limit - 1)).is_ok());
    for text in [
        deep(100_000),
        "(".repeat(100_000),
        "-".repeat(100_000),
        "x ^ ".repeat(100_000) + "x",
        "x".to_owned() + &"[5m:]".repeat(100_000),
        "abs(".repeat(100_000) + "x",
        format!("x[{}5m]", "(".repeat(100_000)),
        format!("x[5m{}]", " + 5m".repeat(100_000)),
        format!("x[{}5m]", "-".repeat(100_000)),
        format!("x offset {}5m", "-".repeat(100_000)),
        format!("x offset {}5m", "min_of(5m, ".repeat(90_000)),
    ] {
        let error = parse(&text).expect_err("too deep");
        assert!(error.message().contains("nested deeper"), "{error}");
    }
    let error = parse(&("x + ".repeat(100_000) + "x")).expect_err("too many operators");
    assert_eq!(error.message(), "expression has more than 10000 operators");
    let error = parse(&"x".repeat(TEXT_MAX + 1)).expect_err("too long");
    assert_eq!(error.message(), "expression is longer than 1048576 bytes");
}

/// Random texts made of pieces of the language: no panic, and what parses prints to itself.
#[test]
fn whatever_is_typed_parses_or_fails_with_a_place() {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "up",
        "sum",
        " by ",
        "without",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "5m",
        "1",
        "0x1",
        ":",
        ",",
        "=",
        "=~",
        "!=",
        "!~",
        "\"x\"",
        "'",
        "`",
        "\\",
        " + ",
        "-",
        "*",
        "^",
        " == ",
        "bool ",
        " on ",
        "group_left",
        " offset ",
        "@",
        "start",
        "end()",
        "step()",
        "rate(",
        "topk(1,",
        " and ",
        "or",
        "#",
        "\n",
        "é",
        "\u{fffd}",
        "min_of(",
        "%",
        " fill (1) ",
        " anchored",
        " smoothed",
        ".",
        "_",
        "e",
        "</",
        "1.5",
        "NaN",
        "foo[5m]",
        "{a=\"b\"}",
    ];
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let text: String = (0..random.usize(1..14))
            .map(|_| PIECES[random.usize(..PIECES.len())])
            .collect();
        match parse(&text) {
            Err(error) => {
                assert!(
                    error.span().end <= text.len() && !error.render(&text).is_empty(),
                    "{text:?}"
                );
            }
            Ok(expr) => {
                assert!(text.get(expr.span.range()).is_some(), "{text:?}");
                let printed = expr.to_string();
                let again = parse(&printed).unwrap_or_else(|e| panic!("{text:?} prints {printed:?}: {e}"));
                assert_eq!(again.to_string(), printed, "{text:?}");
            }
        }
    }
}
