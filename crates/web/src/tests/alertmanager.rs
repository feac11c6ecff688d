//! Alertmanager's API: its shapes, `amtool` and Prometheus against it.
//!
//! The programs come from `tests/prepare.sh`; a test whose program is absent says so and passes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use config::alertmanager::Config;
use model::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::stage::Stage;

const CONFIG: &str = "
route:
  receiver: all
  group_by: [alertname]
  group_wait: 0s
  routes:
    - {receiver: pager, matchers: ['severity=critical'], group_by: [alertname], labels: {team: '{{ .GroupLabels.alertname }}'}}
receivers:
  - name: all
    labels: {owner: us}
  - {name: pager, webhook_configs: [{url: 'http://127.0.0.1:1/hunter2'}]}
inhibit_rules:
  - {source_matchers: ['alertname=Big'], target_matchers: ['alertname=Small']}
";

async fn stage() -> Stage {
    stage_of(CONFIG).await
}

async fn stage_of(text: &str) -> Stage {
    let config = Config::parse("test", text).expect("a configuration");
    let options = alerts::manager::Options {
        clock: Arc::new(SystemClock),
        data_dir: None,
        external_url: String::new(),
        alerts_max: 100,
    };
    Stage::with_alerts(alerts::Manager::start(&config, options).expect("started")).await
}

async fn post(stage: &Stage, path: &str, body: &Value) -> (u16, Value) {
    let answer = stage
        .send("POST", path, "Content-Type: application/json\r\n", &body.to_string())
        .await;
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null),
    )
}

fn alert(name: &str, severity: &str) -> Value {
    json!({"labels": {"alertname": name, "severity": severity, "empty": ""}, "annotations": {"summary": "s"}, "generatorURL": "http://g/x"})
}

/// The names of the alerts that a path gives.
async fn names(stage: &Stage, path: &str) -> Vec<String> {
    let answer = stage.get(path).await.json();
    let name = |alert: &Value| alert["labels"]["alertname"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = answer.as_array().expect("a list").iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn alerts_come_in_and_are_shown() {
    let stage = stage().await;
    let list = json!([alert("Big", "critical"), alert("Small", "warning")]);
    assert_eq!(post(&stage, "/api/v2/alerts", &list).await.0, 200);
    let shown = stage.get("/api/v2/alerts?filter=alertname=Big").await.json();
    let one = &shown[0];
    assert_eq!(one["labels"], json!({"alertname": "Big", "severity": "critical"}));
    assert_eq!(
        (&one["annotations"]["summary"], &one["generatorURL"]),
        (&json!("s"), &json!("http://g/x"))
    );
    assert_eq!(
        (&one["receivers"], &one["external"]),
        (&json!([{"name": "pager"}]), &json!(true))
    );
    assert_eq!(one["fingerprint"].as_str().map(str::len), Some(16));
    for key in ["startsAt", "endsAt", "updatedAt"] {
        one[key]
            .as_str()
            .expect("a text")
            .parse::<jiff::Timestamp>()
            .expect("a moment");
    }
    for key in ["inhibitedBy", "silencedBy", "mutedBy"] {
        assert!(one["status"][key].is_array());
    }
    let small = stage.get("/api/v2/alerts?filter=alertname=Small").await.json();
    assert_eq!(small[0]["status"]["state"], "suppressed");
    assert_eq!(small[0]["status"]["inhibitedBy"], json!([one["fingerprint"]]));
    for (path, want) in [
        ("/api/v2/alerts", vec!["Big", "Small"]),
        ("/api/v2/alerts?inhibited=false", vec!["Big"]),
        ("/api/v2/alerts?receiver=pag.*", vec!["Big"]),
        ("/api/v2/alerts?receiver=pag", vec![]),
        ("/api/v2/alerts?receiver_matchers=owner%3Dus", vec!["Small"]),
        (
            "/api/v2/alerts?filter=severity%3D~%22c.*%22&filter=alertname!=Small",
            vec!["Big"],
        ),
    ] {
        assert_eq!(names(&stage, path).await, want, "{path}");
    }
    let groups = stage.get("/api/v2/alerts/groups").await.json();
    assert_eq!(groups[0]["labels"], json!({"alertname": "Big"}));
    assert_eq!(groups[0]["routeLabels"], json!({"team": "Big"}));
    assert_eq!(
        (&groups[0]["receiver"]["name"], groups.as_array().map(Vec::len)),
        (&json!("pager"), Some(2))
    );
}

#[tokio::test]
async fn wrong_alerts_are_refused_and_right_ones_beside_them_taken() {
    let stage = stage().await;
    let list = json!([{"labels": {}}, alert("A", "x"), {"labels": {"a": "b"}, "startsAt": "2020-01-02T00:00:00Z", "endsAt": "2020-01-01T00:00:00Z"}]);
    let (status, why) = post(&stage, "/api/v2/alerts", &list).await;
    assert_eq!(
        (status, why),
        (
            400,
            json!("at least one label pair required\nstart time must be before end time")
        )
    );
    assert_eq!(names(&stage, "/api/v2/alerts").await, ["A"]);
    for (body, want) in [
        (json!({}), "the body is no list of alerts"),
        (json!([1]), "an alert is no object"),
        (json!([{"labels": {"a": 1}}]), "labels: the value of \"a\" is no text"),
        (
            json!([{"labels": {"a": "b"}, "startsAt": "soon"}]),
            "startsAt: cannot parse \"soon\" as a moment",
        ),
    ] {
        assert_eq!(post(&stage, "/api/v2/alerts", &body).await, (400, json!(want)));
    }
    for path in ["/api/v2/alerts?active=maybe", "/api/v2/alerts?receiver=("] {
        assert_eq!(stage.get(path).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn silences_are_made_shown_changed_and_ended() {
    let stage = stage().await;
    let now = SystemClock.now();
    let at = |millis: i64| super::super::api::alertmanager::stamp(now + millis);
    let mut silence = json!({
        "matchers": [{"name": "alertname", "value": "A|B", "isRegex": true}],
        "startsAt": at(0), "endsAt": at(3_600_000), "createdBy": "me", "comment": "why", "annotations": {"ticket": "7"},
    });
    let (status, made) = post(&stage, "/api/v2/silences", &silence).await;
    assert_eq!(status, 200, "{made}");
    let id = made["silenceID"].as_str().expect("a name").to_owned();
    let path = format!("/api/v2/silence/{id}");
    let shown = stage.get(&path).await.json();
    assert_eq!(shown["status"]["state"], "active");
    assert_eq!(
        shown["matchers"],
        json!([{"isEqual": true, "isRegex": true, "name": "alertname", "value": "A|B"}])
    );
    assert_eq!(
        (&shown["annotations"], &shown["createdBy"], &shown["comment"]),
        (&json!({"ticket": "7"}), &json!("me"), &json!("why"))
    );
    post(&stage, "/api/v2/alerts", &json!([alert("A", "x"), alert("C", "x")])).await;
    assert_eq!(names(&stage, "/api/v2/alerts?silenced=false").await, ["C"]);
    silence["id"] = json!(id);
    silence["startsAt"] = shown["startsAt"].clone();
    silence["endsAt"] = json!(at(7_200_000));
    assert_eq!(
        post(&stage, "/api/v2/silences", &silence).await.1,
        json!({"silenceID": id})
    );
    assert_eq!(stage.send("DELETE", &path, "", "").await.status, 200);
    assert_eq!(stage.get(&path).await.json()["status"]["state"], "expired");
    assert_eq!(stage.get("/api/v2/silences?expired=false").await.json(), json!([]));
    silence["id"] = json!("00000000-0000-0000-0000-000000000000");
    assert_eq!(post(&stage, "/api/v2/silences", &silence).await.0, 404);
    assert_eq!(stage.get("/api/v2/silence/none").await.status, 404);
    assert_eq!(stage.send("DELETE", "/api/v2/silence/none", "", "").await.status, 404);
    for (key, value, want) in [
        ("matchers", json!([]), "silence invalid: at least one matcher required"),
        (
            "endsAt",
            json!("2001-01-01T00:00:00Z"),
            "Failed to create silence: start time must be before end time",
        ),
        (
            "matchers",
            json!([{"name": "a", "value": "(", "isRegex": true}]),
            "invalid matcher",
        ),
    ] {
        let mut wrong = silence.clone();
        wrong["id"] = Value::Null;
        wrong[key] = value;
        let (status, why) = post(&stage, "/api/v2/silences", &wrong).await;
        assert!(
            status == 400 && why.as_str().is_some_and(|w| w.starts_with(want)),
            "{why}"
        );
    }
}

#[tokio::test]
async fn a_silence_may_come_again() {
    let stage = stage().await;
    let now = SystemClock.now();
    let at = |millis: i64| super::super::api::alertmanager::stamp(now + millis);
    let silence = |times: Value| {
        json!({
            "matchers": [{"name": "a", "value": "b", "isRegex": false}],
            "startsAt": at(0), "endsAt": at(3_600_000), "createdBy": "me", "comment": "why", "timeIntervals": times,
        })
    };
    let always = json!([{"times": [{"start_time": "00:00", "end_time": "24:00"}]}]);
    let never = json!([{"years": ["1999"], "location": "Europe/Berlin"}]);
    for (times, state) in [(always, "active"), (never, "pending")] {
        let (_, made) = post(&stage, "/api/v2/silences", &silence(times.clone())).await;
        let shown = stage
            .get(&format!(
                "/api/v2/silence/{}",
                made["silenceID"].as_str().expect("a name")
            ))
            .await
            .json();
        assert_eq!(
            (&shown["status"]["state"], &shown["timeIntervals"]),
            (&json!(state), &times)
        );
    }
    let (status, why) = post(&stage, "/api/v2/silences", &silence(json!([{"weekdays": ["someday"]}]))).await;
    assert_eq!(
        (status, why),
        (400, json!("timeIntervals: someday is not a valid weekday"))
    );
}

#[tokio::test]
async fn status_and_receivers_are_told_without_secrets() {
    let stage = stage().await;
    let status = stage.get("/api/v2/status").await.json();
    assert_eq!(status["cluster"]["status"], "disabled");
    for key in ["version", "revision", "branch", "buildUser", "buildDate", "goVersion"] {
        assert!(status["versionInfo"][key].is_string());
    }
    let original = status["config"]["original"].as_str().expect("a text");
    assert!(!original.contains("hunter2"), "{original}");
    let again = Config::parse("shown", original).expect("what is shown is a configuration");
    assert_eq!(again.receivers.len(), 2);
    let receivers = stage.get("/api/v2/receivers?receiver_matchers=owner%3Dus").await.json();
    assert_eq!(
        receivers,
        json!([{"name": "all", "labels": {"name": "all", "owner": "us"}}])
    );
}

#[tokio::test]
async fn deliveries_receivers_and_tests_are_ours() {
    let stage = stage().await;
    let answer = stage
        .send("POST", "/api/watchfire/v1/receivers/pager/test", "", "")
        .await;
    let told = answer.json();
    assert_eq!((answer.status, &told["ok"]), (200, &json!(false)));
    let delivery = &told["deliveries"][0];
    assert_eq!(
        (&delivery["status"], &delivery["address"], &delivery["test"]),
        (&json!("failed"), &json!("http://127.0.0.1:1/…"), &json!(true))
    );
    let fingerprint = delivery["fingerprints"][0].as_str().expect("one");
    for (query, count) in [
        (format!("fingerprint={fingerprint}"), 1),
        ("receiver=pager&status=failed".to_owned(), 1),
        ("receiver=all".to_owned(), 0),
        ("since=4102444800".to_owned(), 0),
        ("limit=1".to_owned(), 1),
    ] {
        let list = stage.get(&format!("/api/watchfire/v1/deliveries?{query}")).await.json();
        assert_eq!(list["deliveries"].as_array().map(Vec::len), Some(count), "{query}");
    }
    let receivers = stage.get("/api/watchfire/v1/receivers").await.json();
    assert_holds_failing(&receivers);
    assert_eq!(
        stage
            .send("POST", "/api/watchfire/v1/receivers/none/test", "", "")
            .await
            .status,
        404
    );
    assert_eq!(
        stage.get("/api/watchfire/v1/deliveries?fingerprint=x").await.status,
        400
    );
}

fn assert_holds_failing(receivers: &Value) {
    let pager = &receivers["receivers"][0];
    assert_eq!(
        (&pager["receiver"], &pager["integration"], &pager["failing"]),
        (&json!("pager"), &json!("webhook[0]"), &json!(true))
    );
    assert!(pager["last_error"].as_str().is_some_and(|e| e.contains("refused")) && pager["last_success"].is_null());
}

/// A program of `tests/prepare.sh`, or `None` with a message.
fn tool(name: &str) -> Option<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools/bin")
        .join(name);
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    let found = std::iter::once(own)
        .chain(on_path.map(|folder| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no {name}; tests/prepare.sh brings it");
    }
    found
}

/// Runs `amtool` against a hub; its output, and whether it was content.
async fn amtool(tool: &std::path::Path, stage: &Stage, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(tool);
    command
        .args(words)
        .arg(format!("--alertmanager.url=http://{}", stage.address));
    let ran = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("no panic");
    let ran = ran.expect("amtool runs");
    // What it remarks beside a good answer is no part of it.
    let said = if ran.status.success() { &ran.stdout } else { &ran.stderr };
    (ran.status.success(), String::from_utf8_lossy(said).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn amtool_works() {
    let Some(tool) = tool("amtool") else { return };
    // Debian's amtool is too old to know labels of receivers and of routes.
    let text = CONFIG
        .replace("    labels: {owner: us}\n", "")
        .replace(", labels: {team: '{{ .GroupLabels.alertname }}'}", "");
    let stage = stage_of(&text).await;
    let ask = async |words: &[&str]| {
        let (is_fine, text) = amtool(&tool, &stage, words).await;
        assert!(is_fine, "amtool {words:?}: {text}");
        text
    };
    ask(&[
        "alert",
        "add",
        "alertname=Hot",
        "severity=critical",
        "--annotation=summary=GPU is hot",
    ])
    .await;
    ask(&["alert", "add", "alertname=Cold"]).await;
    let found: Value =
        serde_json::from_str(&ask(&["-o", "json", "alert", "query", "alertname=~\"H.*\""]).await).expect("JSON");
    assert_eq!(
        (&found[0]["annotations"]["summary"], found.as_array().map(Vec::len)),
        (&json!("GPU is hot"), Some(1))
    );
    let id = ask(&["silence", "add", "Hot", "--comment=why", "--author=me", "--duration=1h"]).await;
    let id = id.trim();
    let active = ask(&["alert", "query"]).await;
    assert!(active.contains("Cold") && !active.contains("Hot"), "{active}");
    assert!(ask(&["alert", "query", "--silenced"]).await.contains("Hot"));
    let listed = ask(&["silence", "query"]).await;
    assert!(
        listed.contains(id) && listed.contains("alertname=\"Hot\"") && listed.contains("why"),
        "{listed}"
    );
    let updated = ask(&["silence", "update", "--duration=3h", "--comment=longer", id]).await;
    assert!(updated.contains("longer"), "{updated}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("silences.json");
    std::fs::write(&file, ask(&["-o", "json", "silence", "query"]).await).expect("written");
    ask(&["silence", "expire", id]).await;
    assert!(!ask(&["silence", "query"]).await.contains(id));
    ask(&["silence", "import", "--force", &file.to_string_lossy()]).await;
    assert!(ask(&["silence", "query"]).await.contains("longer"));
    assert!(ask(&["config", "show"]).await.contains("receiver: all"));
    assert_eq!(
        ask(&["config", "routes", "test", "severity=critical"]).await.trim(),
        "pager"
    );
    assert!(ask(&["config", "routes", "show"]).await.contains("receiver: pager"));
    ask(&["cluster", "show"]).await;
    let (is_fine, text) = amtool(
        &tool,
        &stage,
        &["silence", "expire", "00000000-0000-0000-0000-000000000000"],
    )
    .await;
    assert!(!is_fine, "{text}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_sends_to_us() {
    let Some(tool) = tool("prometheus") else { return };
    let stage = stage().await;
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    std::fs::write(
        place("rules.yml"),
        "groups: [{name: g, interval: 1s, rules: [{alert: FromPrometheus, expr: vector(1), labels: {severity: critical}, annotations: {summary: s}}]}]",
    )
    .expect("written");
    let config = format!(
        "global: {{evaluation_interval: 1s, external_labels: {{site: x}}}}\nrule_files: [rules.yml]\nalerting: {{alertmanagers: [{{static_configs: [{{targets: ['{}']}}]}}]}}\n",
        stage.address
    );
    std::fs::write(place("prometheus.yml"), config).expect("written");
    let child = Command::new(tool)
        .arg(format!("--config.file={}", place("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", place("data").display()))
        .arg("--web.listen-address=127.0.0.1:0")
        // It knows us only after five seconds; what it sent before is sent again soon.
        .arg("--rules.alert.resend-delay=1s")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _child = Killed(child.expect("prometheus starts"));
    for _ in 0..600 {
        let alerts = stage.get("/api/v2/alerts").await.json();
        if alerts[0]["labels"]["alertname"] == "FromPrometheus" {
            assert_eq!(alerts[0]["labels"]["site"], "x");
            assert_eq!(
                (&alerts[0]["external"], &alerts[0]["receivers"][0]["name"]),
                (&json!(true), &json!("pager"))
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no alert of Prometheus came");
}
