use model::Labels;

use super::{RuleData, expand};
use crate::function::Query;

struct None;

impl Query for None {
    fn query(&self, expr: &str) -> Result<Vec<(Labels, f64)>, String> {
        match expr {
            "sorted" => Ok(["b", "a"]
                .iter()
                .map(|n| (Labels::from_pairs([("n", *n)]), 1.5))
                .collect()),
            _ => Err(format!("cannot answer {expr}")),
        }
    }
}

#[track_caller]
fn check(text: &str, want: &str) {
    let data = RuleData {
        labels: &Labels::from_pairs([("gpu", "3"), ("host", "a<b")]),
        external_labels: &Labels::from_pairs([("region", "eu")]),
        external_url: "http://w/x",
        value: 91.25,
        time: 1_700_000_000_000,
        query: &None,
    };
    let got = expand("Hot", text, &data);
    assert_eq!(got.unwrap_or_else(|error| error.render(text)), want);
}

#[test]
fn the_alert_is_at_hand() {
    check("no template", "no template");
    check(
        "{{ $labels.gpu }} {{ $value }} {{ $externalLabels.region }} {{ $externalURL }}",
        "3 91.25 eu http://w/x",
    );
    check("{{ .Labels.gpu }} {{ .Value }} {{ $labels.absent }}.", "3 91.25 .");
    check("{{ $labels }}", "map[gpu:3 host:a<b]");
    check("{{ printf \"%.1f\" $value }}%", "91.2%");
    check("{{ with $labels.none -}} x {{- else -}} y {{- end }}", "y");
    check(
        "{{ $value | humanize }} {{ pathPrefix }} {{ tableLink \"up == 0\" }}",
        "91.25 /x /graph?g0.expr=up+%3D%3D+0&g0.tab=1",
    );
    check(
        "{{ range query \"sorted\" | sortByLabel \"n\" }}{{ .Labels.n }}={{ .Value }} {{ end }}",
        "a=1.5 b=1.5 ",
    );
    check(
        "{{ if gt $value 90.0 }}hot{{ else if gt $value 50.0 }}warm{{ end }}",
        "hot",
    );
}

#[test]
fn an_error_shows_its_place() {
    check(
        "a\n {{ query \"x\" }}",
        "template: __alert_Hot:2:4: executing \"__alert_Hot\" at <query \"x\">: error calling query: cannot answer x\n   {{ query \"x\" }}\n      ^^^^^^^^^",
    );
    check(
        "{{ if gt $value 90 }}{{ end }}",
        "template: __alert_Hot:1:6: executing \"__alert_Hot\" at <gt $value 90>: error calling gt: incompatible types for comparison\n  {{ if gt $value 90 }}{{ end }}\n        ^^^^^^^^^^^^",
    );
    check(
        "{{ $labels.gpu.x }}",
        "template: __alert_Hot:1:10: executing \"__alert_Hot\" at <$labels.gpu.x>: can't evaluate field x in type string\n  {{ $labels.gpu.x }}\n     ^^^^^^^^^^^^^",
    );
}
