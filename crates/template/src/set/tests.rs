use std::collections::BTreeMap;

use super::{Mode, Set};
use crate::function::Env;
use crate::notification::FUNCTIONS;
use crate::value::Value;

fn data() -> Value {
    Value::map(BTreeMap::from([
        ("name".into(), Value::text("GPU")),
        ("count".into(), Value::Int(3)),
        ("ratio".into(), Value::Float(0.5)),
        ("items".into(), Value::texts(["a", "b", "c"])),
        ("empty".into(), Value::list(Vec::new())),
        ("labels".into(), Value::text_map([("gpu", "0"), ("host", "n1")])),
    ]))
}

/// The text, or the message and what follows the name of the template in it.
#[track_caller]
fn check(text: &str, want: &str) {
    let set = Set::new(Mode::Text, FUNCTIONS);
    let got = set
        .expand(text, &data(), &Env::at(0))
        .unwrap_or_else(|error| error.to_string());
    assert_eq!(got, want, "{text}");
}

/// A template that fails with a message that contains `want`.
#[track_caller]
fn check_fails(text: &str, want: &str) {
    let set = Set::new(Mode::Text, FUNCTIONS);
    let error = set.expand(text, &data(), &Env::at(0)).expect_err(text).to_string();
    assert!(error.contains(want), "{text}: {error}");
}

#[test]
fn text_and_actions_alternate() {
    check("", "");
    check("plain } text", "plain } text");
    check("a {{ .name }} b {{ .count }}", "a GPU b 3");
    check("{{/* a comment */}}x{{- /* another */ -}} y", "xy");
    check("a  {{- .name -}}  b", "aGPUb");
    check("a\n{{- \" \" }}\n{{ .name -}}\nb", "a \nGPUb");
    check("{{ .missing }} {{ .labels.missing }}.", "<no value> .");
    check("{{ .items }} {{ .labels }}", "[a b c] map[gpu:0 host:n1]");
    check(
        "{{`raw \\n`}}{{ \"\\t\\u00e9\" }}{{ 'a' }} {{ 0x1F }} {{ 1_000 }} {{ -1.5e3 }} {{ print nil }}",
        "raw \\n\té97 31 1000 -1500 <nil>",
    );
}

#[test]
fn conditions_choose() {
    check("{{ if .empty }}a{{ else if eq .count 3 }}b{{ else }}c{{ end }}", "b");
    check(
        "{{ with .name }}{{ . }}{{ else }}none{{ end }}{{ with .none }}x{{ else with .count }}{{ . }}{{ end }}",
        "GPU3",
    );
    check("{{ if and .name (gt .count 2) (not .empty) }}yes{{ end }}", "yes");
    check("{{ or .empty .none \"z\" }} {{ and .name 0 .none.x }}", "z 0");
    check("{{ if or true (index .items 99) }}short{{ end }}", "short");
}

#[test]
fn loops_run_over_lists_maps_and_counts() {
    check("{{ range .items }}{{ . }}{{ end }}", "abc");
    check("{{ range $i, $x := .items }}{{ $i }}{{ $x }} {{ end }}", "0a 1b 2c ");
    check(
        "{{ range $k, $v := .labels }}{{ $k }}={{ $v }};{{ end }}",
        "gpu=0;host=n1;",
    );
    check(
        "{{ range 3 }}{{ . }}{{ end }}{{ range .empty }}x{{ else }}none{{ end }}",
        "012none",
    );
    check(
        "{{ range .items }}{{ if eq . \"b\" }}{{ continue }}{{ end }}{{ . }}{{ end }}",
        "ac",
    );
    check(
        "{{ range .items }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}",
        "a",
    );
    check("{{ range .none }}x{{ else }}nothing{{ end }}", "nothing");
}

#[test]
fn variables_belong_to_their_block() {
    check("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "21");
    check("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2");
    check(
        "{{ $n := 0 }}{{ range .items }}{{ $n = len . }}{{ end }}{{ $n }} {{ $.name }}",
        "1 GPU",
    );
    check_fails(
        "{{ if true }}{{ $y := 1 }}{{ end }}{{ $y }}",
        "undefined variable \"$y\"",
    );
}

#[test]
fn templates_call_each_other() {
    check(
        "{{ define \"a\" }}<{{ . }}>{{ end }}{{ template \"a\" .name }}{{ template \"a\" }}",
        "<GPU><<no value>>",
    );
    check("{{ block \"b\" .count }}[{{ . }}]{{ end }}", "[3]");
    check_fails("{{ template \"none\" }}", "template \"none\" not defined");
    check_fails(
        "{{ define \"a\" }}1{{ end }}{{ define \"a\" }}2{{ end }}",
        "multiple definition",
    );
}

#[test]
fn comparison_keeps_kinds_apart() {
    check(
        "{{ eq .count 3 }} {{ eq .name \"x\" \"GPU\" }} {{ ne 1 2 }} {{ lt \"a\" \"b\" }} {{ ge 2.5 2.5 }}",
        "true true true true true",
    );
    check("{{ eq nil .none }} {{ eq .name nil }}", "true false");
    check_fails("{{ eq .count 3.0 }}", "incompatible types for comparison");
    check_fails("{{ lt true false }}", "invalid type for comparison");
    check_fails("{{ eq 1 }}", "missing argument for comparison");
    check_fails("{{ eq .items .items }}", "non-comparable type [a b c]: []string");
}

#[test]
fn parts_are_picked() {
    check(
        "{{ index .items 1 }}{{ index .labels \"host\" }}{{ index .labels \"x\" }}{{ len .name }}",
        "bn13",
    );
    check(
        "{{ slice .items 1 }}{{ slice .name 0 2 }}{{ slice .items 1 2 }}",
        "[b c]GP[b]",
    );
    check_fails("{{ index .items 3 }}", "error calling index: index out of range: 3");
    check_fails("{{ index .items \"x\" }}", "cannot index slice/array with type string");
    check_fails("{{ slice .items 2 1 }}", "invalid slice index: 2 > 1");
    check_fails("{{ len 3 }}", "error calling len: len of type int");
}

#[test]
fn functions_check_their_arguments() {
    check("{{ .name | toLower | printf \"%s-%d\" \"x\" }}", "x-%!d(string=gpu)");
    check(
        "{{ print 1 2 \"a\" 3 }} {{ println \"x\" }}{{ html \"<&\" }} {{ js \"'\" }} {{ urlquery \"a b\" }}",
        "1 2a3 x\n&lt;&amp; \\' a+b",
    );
    check_fails("{{ toUpper 5 }}", "at <5>: expected string; found 5");
    check_fails(
        "{{ toUpper .count }}",
        "at <.count>: wrong type for value; expected string; got int",
    );
    check_fails("{{ toUpper .none }}", "at <.none>: invalid value; expected string");
    check_fails("{{ toUpper }}", "wrong number of args for toUpper: want 1 got 0");
    check_fails("{{ .name 1 }}", "name is not a method but has arguments");
    check_fails("{{ 1 2 }}", "can't give argument to non-function 1");
    check_fails("{{ nil }}", "nil is not a command");
    check_fails("{{ match \"(\" \"x\" }}", "error calling match: error parsing regexp");
}

#[test]
fn wrong_templates_are_refused() {
    for (text, want) in [
        ("a\n{{", "template: :2: unclosed action"),
        ("{{ .x", "unclosed action"),
        ("{{ end }}", "unexpected {{end}}"),
        ("{{ if true }}", "unexpected EOF"),
        ("{{ if }}{{ end }}", "missing value for if"),
        ("{{ else }}", "unexpected {{else}}"),
        ("{{ nope }}", "function \"nope\" not defined"),
        ("{{ $x }}", "undefined variable \"$x\""),
        ("{{ \"a }}", "unterminated quoted string"),
        ("{{ (1 }}", "unclosed left paren"),
        ("{{ 1) }}", "unexpected right paren"),
        ("{{ .a * 2 }}", "unexpected \"*\" in operand"),
        ("{{ 1 | 2 }}", "non executable command in pipeline stage 2"),
        ("{{ break }}", "{{break}} outside {{range}}"),
        ("{{ 3x }}", "bad number syntax: \"3x\""),
        ("{{ .a! }}", "bad character U+0021 '!'"),
        ("{{/* a }}", "unclosed comment"),
        ("{{ template foo }}", "unexpected \"foo\" in template clause"),
        ("{{ | print }}", "unexpected \"|\" in command"),
        ("{{ $a, $b := .x }}", "too many declarations in command"),
        ("{{ \"\\z\" }}", "invalid syntax"),
        ("{{ 9223372036854775808 }}", "integer overflow"),
    ] {
        check_fails(text, want);
    }
}

#[test]
fn no_template_can_exhaust_the_program() {
    for (text, want) in [
        (
            "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            "exceeded maximum template depth",
        ),
        ("{{ range 1000000000 }}{{ end }}", "steps"),
        (
            "{{ $x := \"0123456789\" }}{{ range 100 }}{{ $x = print $x $x }}{{ end }}",
            "text is longer",
        ),
        (
            "{{ $x := list }}{{ range 100 }}{{ $x = list $x $x }}{{ end }}",
            "nested deeper",
        ),
        (
            "{{ $x := list 1 }}{{ range 30 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
            "template gives more",
        ),
        (
            "{{ $x := list 1 }}{{ range 30 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}",
            "json: text is longer",
        ),
        (
            "{{ range 20000 }}{{ printf \"%9999d\" 1 }}{{ end }}",
            "template gives more",
        ),
    ] {
        check_fails(text, want);
    }
    let blocks = |n: usize| {
        format!(
            "{}{{{{ template \"a\" }}}}{}",
            "{{ if true }}".repeat(n),
            "{{ end }}".repeat(n)
        )
    };
    for body in [blocks(90), blocks(3)] {
        check_fails(
            &format!("{{{{ define \"a\" }}}}{body}{{{{ end }}}}{{{{ template \"a\" }}}}"),
            "nested deeper",
        );
    }
    for text in [
        "{{ (".repeat(100_000),
        format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)),
        "{{ if true }}".repeat(100_000),
        "{{ if true }}{{ else ".repeat(100_000),
        format!("{{{{ if 0 }}}}{}{{{{ end }}}}", "{{ else if 0 }}".repeat(50_000)),
        "{{ block \"a\" . }}".repeat(100_000),
        "x".repeat(super::TEXT_MAX + 1),
    ] {
        let error = Set::new(Mode::Text, FUNCTIONS).expand(&text, &Value::Nil, &Env::at(0));
        assert!(error.is_err(), "{}", text.get(..20).unwrap_or(""));
    }
}

/// Random texts made of pieces of the language: they give a text or an error, and no panic.
#[test]
fn whatever_is_typed_gives_a_text_or_an_error() {
    const PIECES: &[&str] = &[
        "{{",
        "}}",
        "{{- ",
        " -}}",
        " ",
        ".",
        ".name",
        ".items",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        "\"a\"",
        "\"",
        "`",
        "'a'",
        "1",
        "2.5",
        "-",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "block",
        "template",
        "break",
        "nil",
        "print",
        "printf",
        "index",
        "len",
        "eq",
        "and",
        "\"%d %s\"",
        ",",
        "/*",
        "*/",
        "é",
        "\n",
        "true",
        "x",
        "slice",
        "list",
        "date",
    ];
    // A small generator of its own: the same texts on every run.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or(0)
    };
    for mode in [Mode::Text, Mode::Html] {
        let set = Set::new(mode, FUNCTIONS);
        for _ in 0..20_000 {
            let mut text = String::from("{{ ");
            for _ in 0..random(16) {
                text.push_str(PIECES[random(PIECES.len())]);
                text.push_str(if random(3) == 0 { "" } else { " " });
            }
            text.push_str(if random(3) == 0 { "" } else { " }}{{ end }}" });
            if let Err(error) = set.expand(&text, &data(), &Env::at(0)) {
                assert!(!error.render(&text).is_empty(), "{text:?}");
            }
        }
    }
}
