use model::Labels;

use super::*;
use crate::yaml::parse;

fn rules(text: &str) -> Result<Vec<RelabelConfig>> {
    decode_list(parse(text)?.list()?, "relabeling rule", NameScheme::Utf8)
}

#[track_caller]
fn check(text: &str, labels: &[(&str, &str)], want: Option<&[(&str, &str)]>) {
    let rules = rules(text).expect("valid rules");
    let mut builder = LabelsBuilder::new();
    for (name, value) in labels {
        builder.set(name, value);
    }
    let kept = apply(&rules, &mut builder).then(|| builder.build());
    assert_eq!(kept, want.map(|w| Labels::from_pairs(w.iter().copied())), "{text}");
}

#[track_caller]
fn refused(text: &str, want: &str) {
    let fault = rules(text).expect_err("refused");
    assert!(fault.message.contains(want), "{text}: {}", fault.message);
}

#[test]
fn an_empty_value_removes_the_target() {
    check(
        "- {target_label: a, replacement: ''}",
        &[("a", "1"), ("b", "2")],
        Some(&[("b", "2")]),
    );
}

#[test]
fn a_null_pattern_matches_the_empty_text_only() {
    check(
        "- {source_labels: [a], regex: , target_label: b, replacement: x}",
        &[("a", "1")],
        Some(&[("a", "1")]),
    );
    check(
        "- {source_labels: [c], regex: , target_label: b, replacement: x}",
        &[("a", "1")],
        Some(&[("a", "1"), ("b", "x")]),
    );
}

#[test]
fn actions_are_written_in_any_case() {
    check("- {action: DROP, source_labels: [a], regex: x}", &[("a", "x")], None);
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    refused("- {action: hashmod, target_label: a}", "non-zero modulus");
    refused("- {action: shuffle}", "unknown relabel action");
    refused("- {source_labels: ['']}", "not a valid label name");
    refused("- {regex: '('}", "error parsing regexp");
    refused("- ", "empty or null relabeling rule");
    refused("- {targetlabel: a}", "did you mean target_label?");
    refused(
        "- {action: uppercase, target_label: a, replacement: x}",
        "'replacement' can not be set",
    );
}
