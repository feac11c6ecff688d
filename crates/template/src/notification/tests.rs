use model::Labels;

use super::{Alert, Data, Notification};
use crate::function::Env;
use crate::moment::Moment;

const NOW: i64 = 1_700_000_000_000;

fn alert(status: &str, labels: &[(&str, &str)]) -> Alert {
    Alert {
        status: status.to_owned(),
        labels: Labels::from_pairs(labels.iter().copied()),
        annotations: Labels::from_pairs([("summary", "it <burns>")]),
        starts_at: Moment::from_millis(NOW - 90_000),
        ends_at: Moment::zero(),
        generator_url: "http://w/graph?g0.expr=up".to_owned(),
        fingerprint: "0102".to_owned(),
    }
}

fn data() -> Data {
    Data {
        receiver: "team".to_owned(),
        status: "firing".to_owned(),
        alerts: vec![
            alert("firing", &[("alertname", "GpuLost"), ("gpu", "0")]),
            alert("resolved", &[("alertname", "GpuLost"), ("gpu", "1")]),
        ],
        group_labels: Labels::from_pairs([("alertname", "GpuLost")]),
        common_labels: Labels::from_pairs([("alertname", "GpuLost"), ("Host", "a"), ("host", "b")]),
        route_labels: Labels::from_pairs([
            ("plain", "x"),
            ("nested", "[{{ routeLabels \"plain\" }}]"),
            ("a", "{{ routeLabels \"b\" }}"),
            ("b", "{{ routeLabels \"a\" }}"),
        ]),
        external_url: "http://w".to_owned(),
        ..Data::default()
    }
}

#[track_caller]
fn check(text: &str, want: &str) {
    let got = Notification::new().text(text, &data(), &Env::at(NOW));
    assert_eq!(got.unwrap_or_else(|error| error.to_string()), want);
}

#[test]
fn alerts_are_picked_by_status() {
    check("{{ .Alerts.Firing | len }}/{{ len .Alerts }}", "1/2");
    check("{{ range .Alerts.Resolved }}{{ .Labels.gpu }}{{ end }}", "1");
    check("{{ (index .Alerts 0).Annotations.summary }}", "it <burns>");
    check(
        "{{ range $i, $a := .Alerts }}{{ if $i }}, {{ end }}{{ $a.Status }}{{ end }}",
        "firing, resolved",
    );
}

#[test]
fn labels_have_their_methods() {
    check("{{ .CommonLabels.Names | join \",\" }}", "alertname,Host,host");
    check("{{ .CommonLabels.SortedPairs.Values | join \" \" }}", "GpuLost a b");
    check(
        "{{ range .CommonLabels.SortedPairs }}{{ .Name }}={{ .Value }};{{ end }}",
        "alertname=GpuLost;Host=a;host=b;",
    );
    check("{{ .CommonLabels }}", "alertname=GpuLost, Host=a, host=b");
    check(
        "{{ with .CommonLabels.Remove .GroupLabels.Names }}{{ .Values.Join \"/\" }}{{ end }}",
        "a/b",
    );
    check(
        "{{ .CommonLabels.Remove (stringSlice \"host\" \"Host\") }}",
        "alertname=GpuLost",
    );
    check("{{ gt (len .CommonLabels) (len .GroupLabels) }}", "true");
    check("[{{ .CommonLabels.absent }}]", "[]");
    check(
        "{{ range $k, $v := .GroupLabels }}{{ $k }}:{{ $v }}{{ end }}",
        "alertname:GpuLost",
    );
}

#[test]
fn times_are_written_and_compared() {
    let start = "{{ with index .Alerts 0 }}";
    check(
        &format!("{start}{{{{ .StartsAt }}}}{{{{ end }}}}"),
        "2023-11-14 22:11:50 +0000 UTC",
    );
    check(
        &format!("{start}{{{{ .EndsAt.IsZero }}}} {{{{ .EndsAt }}}}{{{{ end }}}}"),
        "true 0001-01-01 00:00:00 +0000 UTC",
    );
    check(
        &format!("{start}{{{{ since .StartsAt }}}} {{{{ since .StartsAt | humanizeDuration }}}}{{{{ end }}}}"),
        "1m30s 1m 30s",
    );
    check(
        &format!(
            "{start}{{{{ .StartsAt | tz \"Europe/Paris\" | date \"Mon Jan _2 15:04:05 MST 2006\" }}}}{{{{ end }}}}"
        ),
        "Tue Nov 14 23:11:50 CET 2023",
    );
    check(
        &format!("{start}{{{{ .StartsAt.Format \"3:04PM .000 -07:00 Z07:00\" }}}}{{{{ end }}}}"),
        "10:11PM .000 +00:00 Z",
    );
    check(
        &format!(
            "{start}{{{{ .StartsAt.Month }}}} {{{{ .StartsAt.Weekday }}}} {{{{ printf \"%d\" .StartsAt.Month }}}}{{{{ end }}}}"
        ),
        "November Tuesday 11",
    );
    check(
        "{{ (toDate \"2006-01-02 15:04\" \"2024-02-29 10:30\").Unix }}",
        "1709202600",
    );
    check("{{ (toDate \"2006\" \"x\").IsZero }}", "true");
}

#[test]
fn json_has_the_names_of_webhooks() {
    check(
        "{{ .CommonLabels | toJson }}",
        r#"{"Host":"a","alertname":"GpuLost","host":"b"}"#,
    );
    check(
        "{{ .Alerts.Firing | toJson }}",
        concat!(
            r#"[{"status":"firing","labels":{"alertname":"GpuLost","gpu":"0"},"annotations":{"summary":"it \u003cburns\u003e"},"#,
            r#""startsAt":"2023-11-14T22:11:50Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://w/graph?g0.expr=up","fingerprint":"0102"}]"#
        ),
    );
    check(
        "{{ dict \"b\" 1 \"a\" (list \"x\" nil 1.5 true) | toJson }}",
        r#"{"a":["x",null,1.5,true],"b":1}"#,
    );
}

#[test]
fn route_labels_are_templates_and_cannot_run_in_circles() {
    check("{{ routeLabels \"nested\" }}{{ routeLabels \"none\" }}", "[x]");
    let got = Notification::new().text("{{ routeLabels \"a\" }}", &data(), &Env::at(NOW));
    let message = got.expect_err("a circle").to_string();
    assert!(message.contains("route label cycle detected: a -> b -> a"), "{message}");
}

#[test]
fn definitions_call_each_other_and_replace_earlier_ones() {
    let mut templates = Notification::new();
    templates
        .add(
            "base",
            "{{ define \"title\" }}old{{ end }}{{ define \"all\" }}<{{ template \"title\" . }}>{{ end }}",
        )
        .expect("templates");
    templates
        .add("own", "{{ define \"title\" }}{{ .Status | toUpper }}{{ end }}")
        .expect("templates");
    let env = Env::at(NOW);
    let text = templates
        .text("{{ template \"all\" . }}", &data(), &env)
        .expect("expands");
    assert_eq!(text, "<FIRING>");
    let html = templates
        .html("<b>{{ (index .Alerts 0).Annotations.summary }}</b>", &data(), &env)
        .expect("expands");
    assert_eq!(html, "<b>it &lt;burns&gt;</b>");
    let text = "<a href=\"http://x/?a={{ \"b c\" | urlquery }}&b={{ \"b c\" }}\">{{ \"&\" | html }}</a>";
    let html = templates.html(text, &data(), &env).expect("expands");
    assert_eq!(html, "<a href=\"http://x/?a=b&#43;c&b=b%20c\">&amp;</a>");
    assert!(templates.check("{{ nonsense }}").is_err());
}
