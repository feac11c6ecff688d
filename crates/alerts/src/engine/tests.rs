use config::alertmanager::matchers::parse_list;

use super::*;

/// Second 0 of every case: a Tuesday, 22:13:20 UTC.
const START: Millis = 1_700_000_000_000;

/// An engine with what it sent: `second receiver[integration] status names`.
struct Stage {
    engine: Engine,
    sent: Vec<String>,
    now: Millis,
    /// What becomes of messages; `None` leaves them on their way.
    outcome: Option<Outcome>,
    on_the_way: Vec<u64>,
}

fn config(route: &str, receiver: &str) -> alertmanager::Config {
    let text = format!(
        "route: {{receiver: r, group_by: [alertname], group_wait: 10s, group_interval: 20s, repeat_interval: 100s, {route}}}\n\
         receivers: [{{name: r, webhook_configs: [{{url: 'http://x', {receiver}}}]}}, {{name: quiet}}]\n\
         time_intervals: [{{name: evening, time_intervals: [{{times: [{{start_time: '22:00', end_time: '22:14'}}]}}]}}]\n"
    );
    alertmanager::Config::parse("test", &text).expect("a configuration")
}

impl Stage {
    fn new(config: &alertmanager::Config) -> Self {
        Self {
            engine: Engine::new(config, Known::default(), 100, START),
            sent: Vec::new(),
            now: START,
            outcome: Some(Outcome::Sent),
            on_the_way: Vec::new(),
        }
    }

    fn fire(&mut self, name: &str, gpu: &str) -> &mut Self {
        let labels = Labels::from_pairs([("alertname", name), ("gpu", gpu)]);
        let alert = Alert {
            ends_at: Some(self.now + 10_000_000),
            ..Alert::new(labels, self.now)
        };
        self.engine.put(alert, self.now);
        self
    }

    fn resolve(&mut self, name: &str, gpu: &str) -> &mut Self {
        let labels = Labels::from_pairs([("alertname", name), ("gpu", gpu)]);
        let alert = Alert {
            ends_at: Some(self.now),
            ..Alert::new(labels, self.now)
        };
        self.engine.put(alert, self.now);
        self
    }

    fn silence(&mut self, matcher: &str, millis: Millis) {
        let silence = Silence {
            id: String::new(),
            matchers: parse_list(matcher).expect("a matcher"),
            starts_at: self.now,
            ends_at: self.now + millis,
            updated_at: 0,
            created_by: "me".into(),
            comment: "why".into(),
            ..Silence::default()
        };
        self.engine.set_silence(silence, self.now).expect("valid");
    }

    /// Turns the time to a second, doing everything that is due on the way.
    fn until(&mut self, second: Millis) -> &mut Self {
        let end = START + second * 1000;
        while let Some(due) = self.engine.due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let notifications = self.engine.tick(self.now);
            self.take(notifications);
        }
        self.now = end;
        self
    }

    fn take(&mut self, mut notifications: Vec<Notification>) {
        while let Some(notification) = notifications.pop() {
            let names = notification.alerts.iter().map(|t| {
                let gpu = t.alert.labels.get("gpu").unwrap_or("");
                let sign = if t.resolved { "-" } else { "" };
                format!("{sign}{}{gpu}", t.alert.name())
            });
            let names: Vec<String> = names.collect();
            let second = (self.now - START) / 1000;
            self.sent.push(format!("{second} {}", names.join(" ")));
            match self.outcome.clone() {
                None => self.on_the_way.push(notification.id),
                Some(outcome) => notifications.extend(self.engine.done(notification.id, &outcome, 1, self.now)),
            }
        }
    }

    /// Brings back what is on its way.
    fn bring_back(&mut self) -> &mut Self {
        self.outcome = Some(Outcome::Sent);
        for id in std::mem::take(&mut self.on_the_way) {
            let more = self.engine.done(id, &Outcome::Sent, 1, self.now);
            self.take(more);
        }
        self
    }

    #[track_caller]
    fn sent(&self, want: &[&str]) {
        assert_eq!(self.sent, want);
    }
}

#[test]
fn a_group_waits_then_tells_news_then_repeats() {
    let mut stage = Stage::new(&config("", ""));
    stage
        .fire("A", "0")
        .until(5)
        .fire("A", "1")
        .until(12)
        .fire("A", "2")
        .until(140);
    stage.sent(&["10 A0 A1", "30 A0 A1 A2"]);
    stage.until(155);
    stage.sent(&["10 A0 A1", "30 A0 A1 A2", "150 A0 A1 A2"]);
}

#[test]
fn an_alert_that_ends_is_told_once() {
    let mut stage = Stage::new(&config("", ""));
    stage
        .fire("A", "0")
        .fire("A", "1")
        .until(15)
        .resolve("A", "0")
        .until(55);
    stage.sent(&["10 A0 A1", "30 -A0 A1"]);
    stage.resolve("A", "1").until(500);
    stage.sent(&["10 A0 A1", "30 -A0 A1", "70 -A1"]);
    assert_eq!(stage.engine.stats(stage.now).groups, 0);
}

#[test]
fn an_alert_that_ends_before_it_was_told_is_never_told() {
    let mut stage = Stage::new(&config("", ""));
    stage.fire("A", "0").until(5).resolve("A", "0").until(500);
    stage.sent(&[]);
}

#[test]
fn a_receiver_may_not_want_to_hear_of_ends() {
    let mut stage = Stage::new(&config("", "send_resolved: false"));
    stage
        .fire("A", "0")
        .fire("A", "1")
        .until(15)
        .resolve("A", "0")
        .until(35)
        .resolve("A", "1")
        .until(90);
    stage.sent(&["10 A0 A1"]);
    stage.fire("A", "1").until(200);
    stage.sent(&["10 A0 A1", "100 A1"]);
}

#[test]
fn an_old_alert_and_an_urgent_one_do_not_wait() {
    let mut stage = Stage::new(&config("", ""));
    let labels = Labels::from_pairs([("alertname", "A")]);
    stage.engine.put(Alert::new(labels, START - 20_000), START);
    stage.until(1);
    stage.sent(&["0 A"]);
    let labels = Labels::from_pairs([("alertname", "B")]);
    let urgent = Alert {
        urgent: true,
        ..Alert::new(labels, stage.now)
    };
    stage.engine.put(urgent, stage.now);
    stage.until(2);
    stage.sent(&["0 A", "1 B"]);
}

#[test]
fn a_muted_route_is_silent_and_speaks_afterwards() {
    let muted = "routes: [{matchers: [alertname=A], mute_time_intervals: [evening]}, \
                 {matchers: [alertname=B], active_time_intervals: [evening]}]";
    let mut stage = Stage::new(&config(muted, ""));
    stage.fire("A", "0").fire("B", "0").until(20);
    stage.sent(&["10 B0"]);
    let view = stage.engine.alerts(stage.now);
    assert_eq!(view[0].state, AlertState::Suppressed);
    assert_eq!(view[0].muted.muted_by, ["evening"]);
    // The evening ends at 22:14, second 40.
    stage.fire("B", "1").until(60);
    stage.sent(&["10 B0", "30 B0 B1", "50 A0"]);
}

#[test]
fn a_silenced_group_is_silent_and_not_told_as_ended() {
    let mut stage = Stage::new(&config("", ""));
    stage.fire("A", "0").fire("A", "1").until(15);
    stage.silence("alertname=A", 50_000);
    stage.until(60);
    stage.sent(&["10 A0 A1"]);
    stage.until(500).resolve("A", "0");
    assert_eq!(
        stage.sent[1], "130 A0 A1",
        "the silence is over and the repeat interval too"
    );
}

#[test]
fn an_alert_that_ended_in_silence_is_told_when_it_fires_again() {
    let mut stage = Stage::new(&config("", ""));
    stage.fire("A", "0").until(15);
    stage.silence("gpu=0", 40_000);
    assert_eq!(stage.engine.alerts(stage.now)[0].muted.silenced_by.len(), 1);
    stage.until(20).resolve("A", "0").until(60).fire("A", "0").until(90);
    stage.sent(&["10 A0", "70 A0"]);
}

#[test]
fn a_failed_message_is_tried_again_later_and_later_until_it_is_no_use() {
    let mut stage = Stage::new(&config("", ""));
    stage.outcome = Some(Outcome::Retry("down".into()));
    stage.fire("A", "0").until(14);
    stage.sent(&["10 A0", "10 A0", "11 A0", "12 A0"]);
    stage.resolve("A", "0").until(500);
    let told = stage.sent.len();
    stage.outcome = Some(Outcome::Sent);
    stage.until(1_000);
    assert_eq!(
        stage.sent.len(),
        told,
        "nobody was told of the alert, so nobody is told of its end"
    );
    let delivery = stage.engine.deliveries().remove(0);
    assert_eq!(
        (delivery.status, delivery.error.as_str()),
        (DeliveryStatus::Retrying, "down")
    );
    assert_eq!(
        stage.engine.deliveries().len(),
        1,
        "attempts at one message are one delivery"
    );
}

#[test]
fn a_refused_message_is_tried_at_the_next_look_only() {
    let mut stage = Stage::new(&config("", ""));
    stage.outcome = Some(Outcome::Failed("no".into()));
    stage.fire("A", "0").until(45);
    stage.sent(&["10 A0", "30 A0"]);
}

#[test]
fn one_message_of_a_group_is_on_its_way_at_a_time() {
    let mut stage = Stage::new(&config("", ""));
    stage.outcome = None;
    stage.fire("A", "0").until(15).fire("A", "1").until(55);
    stage.sent(&["10 A0"]);
    stage.bring_back();
    stage.sent(&["10 A0", "55 A0 A1"]);
}

#[test]
fn a_reload_tells_nothing_again_even_with_a_message_on_its_way() {
    let config = config("", "");
    let mut stage = Stage::new(&config);
    stage.outcome = None;
    stage.fire("A", "0").until(15);
    stage.engine.reload(&config, stage.now);
    stage.until(30);
    stage.sent(&["10 A0"]);
    stage.bring_back().until(100);
    stage.sent(&["10 A0"]);
}

#[test]
fn a_place_where_alerts_end_quietly_is_a_receiver_too() {
    let mut stage = Stage::new(&config("routes: [{receiver: quiet}]", ""));
    stage.fire("A", "0").until(100);
    stage.sent(&[]);
    assert_eq!(stage.engine.alerts(stage.now)[0].receivers, ["quiet"]);
    stage.resolve("A", "0").until(200);
    assert_eq!(stage.engine.stats(stage.now).groups, 0);
}

#[test]
fn five_thousand_groups_are_looked_at_in_an_instant() {
    let config = config("", "");
    let mut engine = Engine::new(&config, Known::default(), 10_000, START);
    for n in 0..5_000 {
        let labels = Labels::from_pairs([("alertname", format!("A{n}").as_str())]);
        engine.put(Alert::new(labels, START), START);
    }
    let out = engine.tick(START + 10_000);
    assert_eq!(out.len(), 5_000);
    for notification in out {
        assert!(
            engine
                .done(notification.id, &Outcome::Sent, 1, START + 10_001)
                .is_empty()
        );
    }
    assert!(engine.tick(START + 30_000).is_empty());
}
