use super::*;

#[track_caller]
fn refused(text: &str, want: &str) {
    let error = RuleFile::parse("rules.yml", text, NameScheme::Utf8).expect_err("refused");
    assert!(error.to_string().contains(want), "{text}: {error}");
}

fn one(rule: &str) -> String {
    format!("groups: [{{name: g, rules: [{rule}]}}]")
}

#[test]
fn a_rule_file_is_read_with_its_lines() {
    let text = "groups:\n- name: g\n  interval: 30s\n  labels: {team: 5}\n  rules:\n  - record: a:b\n    expr: up\n  - alert: Down\n    expr: up == 0\n    for: 1m\n    annotations:\n      summary:\n";
    let file = RuleFile::parse("rules.yml", text, NameScheme::Utf8).expect("valid");
    let group = &file.groups[0];
    assert_eq!(
        (group.interval, group.line, group.labels["team"].as_str()),
        (Some(30_000), 2, "5")
    );
    assert_eq!((group.rules[0].name(), group.rules[0].line), ("a:b", 6));
    let RuleKind::Alert(alert) = &group.rules[1].kind else {
        panic!("an alert")
    };
    assert_eq!((alert.hold, alert.annotations["summary"].as_str()), (60_000, ""));
    let error = file.error_in(&group.rules[1], Span::new(3, 5), "oops");
    assert_eq!(
        error.to_string(),
        "rules.yml:9:14: oops\n      expr: up == 0\n               ^^"
    );
}

#[test]
fn an_empty_file_has_no_groups() {
    assert_eq!(RuleFile::parse("x", "", NameScheme::Utf8).expect("valid").groups, []);
    assert_eq!(
        RuleFile::parse("x", "groups:", NameScheme::Utf8).expect("valid").groups,
        []
    );
}

#[test]
fn what_is_not_a_rule_is_refused_with_its_place() {
    refused("groups: [{}]", "Groupname must not be empty");
    refused("groups: [{name: a}, {name: a}]", "is repeated in the same file");
    refused("group: []", "did you mean groups?");
    refused(&one("{alert: a, expr: 1, annotation: {}}"), "did you mean annotations?");
    refused(&one("{alert: a, record: b, expr: 1}"), "only one of");
    refused(&one("{expr: 1}"), "one of 'record' or 'alert'");
    refused(&one("{alert: a}"), "'expr' must be set");
    refused(
        &one("{record: a, expr: 1, annotations: {a: b}}"),
        "invalid field 'annotations'",
    );
    refused(&one("{alert: a, expr: 1, for: -5m}"), "not a valid duration string");
    refused(
        &one("{alert: a, expr: 1, labels: {__name__: x}}"),
        "invalid label name: __name__",
    );
    refused(
        &one("{alert: a, expr: [1]}"),
        "rules.yml:1:45: expected a text, got a list",
    );
}
