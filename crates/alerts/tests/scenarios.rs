//! The published timing scenarios, run against the engine with the time turned by hand.
//!
//! A scenario pushes alerts and silences at given moments and says which webhook bodies must arrive in
//! which spans of time; anything else that arrives is wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use alerts::delivery::Outcome;
use alerts::engine::Notification;
use alerts::journal::Known;
use alerts::{Alert, Engine, Silence, payload};
use config::alertmanager::{Config, matchers};
use config::yaml::{self, Float, Node};
use model::Millis;
use model::labels::Labels;
use serde_json::Value;

/// The scenarios' second 0, in milliseconds since the epoch.
const START: Millis = 1_700_000_000_000;
/// The scenarios' tolerance, in milliseconds.
const TOLERANCE: Millis = 150;

fn scenarios() -> Option<Node> {
    let root = std::env::var_os("WATCHFIRE_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
        PathBuf::from,
    );
    let path = root.join("alertmanager/scenarios.yaml");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: no scenarios at {}", path.display());
        return None;
    };
    Some(yaml::parse(&text).expect("valid YAML"))
}

/// The value under a key of a mapping.
fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let pairs = node.map().ok()?;
    pairs.iter().find(|(k, _)| k.text == key).map(|(_, v)| v)
}

fn word(node: Option<&Node>) -> Option<String> {
    node.map(|n| n.read().expect("a text"))
}

/// Seconds from the start, as a moment.
#[expect(clippy::cast_possible_truncation, reason = "scenarios last seconds")]
fn moment(node: &Node) -> Millis {
    START + (node.read::<Float>().expect("seconds").0 * 1000.0).round() as Millis
}

fn list(node: Option<&Node>) -> &[Node] {
    node.map_or(&[], |n| n.list().expect("a list"))
}

fn texts(node: Option<&Node>) -> BTreeMap<String, String> {
    node.map(|n| n.read().expect("texts by name")).unwrap_or_default()
}

fn labels(node: &Node) -> Labels {
    let pairs = texts(get(node, "labels"));
    Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())))
}

/// An `alertmanager.yml` for a scenario's settings.
fn config(scenario: &Node) -> Config {
    let settings = get(scenario, "config");
    let setting = |key: &str, default: &str| word(settings.and_then(|s| get(s, key))).unwrap_or(default.to_owned());
    let group_by = list(settings.and_then(|s| get(s, "group_by")));
    let group_by: Vec<String> = group_by.iter().map(|n| n.read().expect("a name")).collect();
    let webhooks: usize = setting("webhooks", "1").parse().expect("a number");
    let one = format!(
        "{{url: 'http://x', send_resolved: {}}}",
        setting("send_resolved", "true")
    );
    let inhibit = match settings.and_then(|s| get(s, "inhibit")) {
        None => String::new(),
        Some(rule) => {
            let side = |key| {
                let pairs = texts(get(rule, key));
                pairs
                    .iter()
                    .map(|(n, v)| format!("{n}: '{v}'"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let equal: Vec<String> = list(get(rule, "equal"))
                .iter()
                .map(|n| n.read().expect("a name"))
                .collect();
            format!(
                "inhibit_rules: [{{source_match: {{{}}}, target_match: {{{}}}, equal: [{}]}}]",
                side("source"),
                side("target"),
                equal.join(", ")
            )
        }
    };
    let text = format!(
        "global: {{resolve_timeout: {}}}\nroute: {{receiver: r, group_by: [{}], group_wait: {}, group_interval: {}, \
         repeat_interval: {}}}\nreceivers: [{{name: r, webhook_configs: [{}]}}]\n{inhibit}",
        setting("resolve_timeout", "5m"),
        group_by.join(", "),
        setting("group_wait", "1s"),
        setting("group_interval", "1s"),
        setting("repeat_interval", "4h"),
        vec![one; webhooks].join(", "),
    );
    Config::parse("scenario", &text).expect("a configuration")
}

/// Something that happens at a moment.
enum Event {
    Push(Vec<Alert>),
    Silence(Silence),
}

fn alert(node: &Node, at: Millis, end_offset: Option<Millis>) -> Alert {
    let starts_at = get(node, "starts").map_or(at, moment);
    Alert {
        annotations: texts(get(node, "annotations")),
        ends_at: get(node, "ends")
            .map(moment)
            .or(end_offset.map(|offset| starts_at + offset)),
        ..Alert::new(labels(node), starts_at)
    }
}

fn silence(node: &Node) -> Silence {
    let texts = list(get(node, "matchers"))
        .iter()
        .map(|n| n.read::<String>().expect("a matcher"));
    Silence {
        id: String::new(),
        matchers: texts
            .flat_map(|t| matchers::parse_list(&t).expect("a matcher"))
            .collect(),
        starts_at: moment(get(node, "starts").expect("a start")),
        ends_at: moment(get(node, "ends").expect("an end")),
        updated_at: 0,
        created_by: "test".to_owned(),
        comment: "test".to_owned(),
        ..Silence::default()
    }
}

fn events(scenario: &Node, end_offset: Option<Millis>) -> Vec<(Millis, Event)> {
    let mut events = Vec::new();
    for push in list(get(scenario, "push")) {
        let at = moment(get(push, "at").expect("a moment"));
        let alerts = list(get(push, "alerts"))
            .iter()
            .map(|n| alert(n, at, end_offset))
            .collect();
        events.push((at, Event::Push(alerts)));
    }
    for node in list(get(scenario, "silences")) {
        let at = moment(get(node, "set_at").expect("a moment"));
        events.push((at, Event::Silence(silence(node))));
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

/// What arrived: when, at which webhook, and the body.
type Arrival = (Millis, usize, Value);

/// Turns the time from event to event and from due to due.
fn run(scenario: &Node, base: &Node, until: Millis) -> Vec<Arrival> {
    #[expect(clippy::cast_possible_truncation, reason = "scenarios last seconds")]
    let end_offset =
        get(scenario, "firing_end_offset").map(|n| (n.read::<Float>().expect("seconds").0 * 1000.0) as Millis);
    let failing = get(base, "failing").map(|f| {
        let webhook: i64 = get(f, "webhook").expect("which").read().expect("a number");
        (
            usize::try_from(webhook - 1).expect("from 1"),
            moment(get(f, "until").expect("until when")),
        )
    });
    let mut engine = Engine::new(&config(base), Known::default(), 1_000, START);
    let mut events = events(base, end_offset).into_iter().peekable();
    let mut arrivals = Vec::new();
    loop {
        let next_event = events.peek().map_or(Millis::MAX, |(at, _)| *at);
        let now = engine.due().unwrap_or(Millis::MAX).min(next_event);
        if now > until {
            return arrivals;
        }
        // News that comes at the moment of a look comes before it.
        while events.peek().is_some_and(|(at, _)| *at <= now) {
            match events.next() {
                Some((at, Event::Push(alerts))) => alerts.into_iter().for_each(|alert| engine.put(alert, at)),
                Some((at, Event::Silence(silence))) => drop(engine.set_silence(silence, at).expect("a silence")),
                None => {}
            }
        }
        let mut due: Vec<Notification> = engine.tick(now);
        while let Some(notification) = due.pop() {
            let fails = failing.is_some_and(|(webhook, until)| notification.integration == webhook && now < until);
            let outcome = if fails {
                Outcome::Retry("down".into())
            } else {
                Outcome::Sent
            };
            if !fails {
                let body = payload::webhook(&notification, "", 0);
                arrivals.push((now, notification.integration, body));
            }
            due.extend(engine.done(notification.id, &outcome, 0, now));
        }
    }
}

fn near(got: &str, want: Option<Millis>) -> bool {
    match want {
        None => got == "0001-01-01T00:00:00Z",
        Some(want) => {
            let at: jiff::Timestamp = got.parse().expect("a moment");
            (at.as_millisecond() - want).abs() <= TOLERANCE
        }
    }
}

/// Whether a body holds exactly the wanted alerts.
fn is(body: &Value, want: &[Node]) -> bool {
    let got = body["alerts"].as_array().expect("alerts");
    let same = |got: &Value, want: &Node| {
        let wanted: Value = texts(get(want, "labels")).into_iter().collect();
        let annotations: Value = texts(get(want, "annotations")).into_iter().collect();
        let ends = get(want, "ends").map(moment);
        let starts = get(want, "starts").map(moment);
        got["labels"] == wanted
            && got["annotations"] == annotations
            && near(got["startsAt"].as_str().expect("a moment"), starts)
            && near(got["endsAt"].as_str().expect("a moment"), ends)
            && (got["status"] == "resolved") == ends.is_some()
    };
    got.len() == want.len() && want.iter().all(|w| got.iter().any(|g| same(g, w)))
}

fn judge(arrivals: Vec<Arrival>, expected: &[Node]) -> Result<(), String> {
    let mut left = arrivals;
    for want in expected {
        let span = list(get(want, "between"));
        let (from, to) = (moment(&span[0]) - TOLERANCE, moment(&span[1]) + TOLERANCE);
        let webhook = get(want, "webhook").map(|n| n.read::<i64>().expect("a number") - 1);
        let alerts = list(get(want, "alerts"));
        let found = left.iter().position(|(at, which, body)| {
            let here = webhook.is_none_or(|w| usize::try_from(w).ok() == Some(*which));
            (from..=to).contains(at) && here && is(body, alerts)
        });
        match found {
            Some(at) => drop(left.remove(at)),
            None => {
                return Err(format!(
                    "missing between {} and {}; left: {left:?}",
                    from - START,
                    to - START
                ));
            }
        }
    }
    match left.first() {
        None => Ok(()),
        Some((at, _, body)) => Err(format!("unexpected at {}: {body}", at - START)),
    }
}

/// Concerns starting a server: an empty inhibition rule is judged where rules are read.
const NO_MESSAGES: &str = "empty-inhibition-rule";

#[test]
fn messages_come_when_the_scenarios_say() {
    let Some(all) = scenarios() else { return };
    let all = all.list().expect("a list");
    let name = |n: &Node| word(get(n, "name")).expect("a name");
    let mut wrong = Vec::new();
    for scenario in all {
        let base = match word(get(scenario, "same_as")) {
            Some(other) => all.iter().find(|n| name(n) == other).expect("the other is there"),
            None => scenario,
        };
        if name(scenario) == NO_MESSAGES {
            Config::parse("x", "route: {receiver: r}\nreceivers: [{name: r}]\ninhibit_rules: [{}]").expect("accepted");
            continue;
        }
        let expected = list(get(base, "expect"));
        let spans = expected.iter().map(|e| moment(&list(get(e, "between"))[1]));
        let until = spans.max().unwrap_or(START) + TOLERANCE;
        if let Err(why) = judge(run(scenario, base, until), expected) {
            wrong.push(format!("{}: {why}", name(scenario)));
        }
    }
    println!(
        "alertmanager/scenarios.yaml: {} / {} passed, 0 skipped",
        all.len() - wrong.len(),
        all.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
