//! The state machine between alerts and messages. Time arrives as a value.
//!
//! ```text
//! put(alert, now) ─► groups
//! tick(now)       ─► the messages to send now
//! done(id, …)     ─► what became of one
//! due()           ─► when to tick next
//! ```
//!
//! Invariant: for one group and one integration at most one message is on its way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use config::alertmanager::{self, InhibitRule, TimeInterval};
use model::Millis;
use model::labels::Labels;

use crate::alert::{AVOID_RECEIVER, Alert};
use crate::counts::Counts;
use crate::delivery::{Delivery, DeliveryStatus, History, Outcome, Receipt};
use crate::error::Error;
use crate::group::{Group, GroupId, Sending, Told};
use crate::health::Healths;
use crate::inhibit::Inhibitor;
use crate::journal::{Known, Write};
use crate::nflog::{Entry, NotificationLog, entry_key};
use crate::pipeline::{Muted, Reason, admit, muting, reason};
use crate::route::Routes;
use crate::silence::{Silence, Silences};
use crate::store::Store;

mod view;

pub use view::{AlertState, AlertView, GroupView, Stats};

/// The most groups.
const GROUPS_MAX: usize = 100_000;
/// First pause after a failed attempt, in milliseconds; half as long again after each further one.
const BACKOFF_FIRST: Millis = 500;
/// Longest pause after a failed attempt, in milliseconds.
const BACKOFF_MAX: Millis = 60_000;
/// How soon a group is looked at again whose last message left before a reload, in milliseconds.
const RECHECK: Millis = 1_000;
/// How often old things are swept out, in milliseconds.
const SWEEP_EVERY: Millis = 60_000;

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Its number, to be given back with the outcome.
    pub id: u64,
    /// The receiver's name.
    pub receiver: String,
    /// Which of the receiver's integrations, from 0.
    pub integration: usize,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The group's key.
    pub group_key: String,
    /// The labels the group has in common.
    pub group_labels: Labels,
    /// The alerts, in the order people see them.
    pub alerts: Vec<Told>,
    /// Why it is told.
    pub reason: Reason,
    /// When it was decided, in milliseconds since the epoch.
    pub at: Millis,
    /// The labels of the route; their values are templates.
    pub route_labels: BTreeMap<String, String>,
    /// When the group was last told to this receiver, in milliseconds since the epoch; 0 when never.
    pub last_at: Millis,
}

impl Notification {
    /// A name for what is told: the same for each attempt at it, over a restart too, and for nothing else.
    #[must_use]
    pub fn key(&self) -> String {
        let mut told: Vec<String> = self
            .alerts
            .iter()
            .map(|t| format!("{:x}{}", t.fingerprint, t.resolved))
            .collect();
        told.sort();
        let told = told.join(",");
        let text = format!("{}\n{}\n{told}\n{}", self.group_key, self.receiver, self.last_at);
        let hash = Labels::from_pairs([("message", text.as_str())]).hash128();
        format!("{hash:032x}")
    }
}

/// What must be remembered of a message on its way.
#[derive(Debug)]
struct Pending {
    group: GroupId,
    integration: usize,
    key: String,
    entry: Entry,
    repeat: Millis,
    delivery: Delivery,
    kind: &'static str,
    generation: u64,
}

/// The receiver of last resort: our own log, where there is no other.
pub const LAST_RESORT: &str = "watchfire/log";

/// An integration as far as decisions go.
#[derive(Debug, Clone)]
struct Channel {
    kind: &'static str,
    send_resolved: bool,
}

/// The part of the configuration that decisions need.
#[derive(Debug)]
struct Plan {
    routes: Routes,
    receivers: HashMap<String, Vec<Channel>>,
    /// For each receiver that tells someone, a route to it that no alert takes by itself; the log is the last.
    apart: Vec<(String, usize)>,
    inhibit_rules: Vec<InhibitRule>,
    intervals: HashMap<String, TimeInterval>,
}

impl Plan {
    fn new(config: &alertmanager::Config) -> Self {
        let channels = |receiver: &alertmanager::Receiver| {
            let channel = |i: &alertmanager::Integration| Channel {
                kind: i.kind(),
                send_resolved: i.send_resolved(),
            };
            receiver.integrations.iter().map(channel).collect()
        };
        let mut routes = Routes::new(&config.route);
        let mut receivers: HashMap<String, Vec<Channel>> =
            config.receivers.iter().map(|r| (r.name.clone(), channels(r))).collect();
        let log = Channel {
            kind: "log",
            send_resolved: true,
        };
        receivers.insert(LAST_RESORT.to_owned(), vec![log]);
        let speaking = config.receivers.iter().filter(|r| !r.integrations.is_empty());
        let names = speaking.map(|r| r.name.clone()).chain([LAST_RESORT.to_owned()]);
        let apart = names
            .map(|name| {
                let route = alertmanager::Route {
                    receiver: name.clone(),
                    routes: Vec::new(),
                    ..config.route.clone()
                };
                let at = routes.add_apart(&route);
                (name, at)
            })
            .collect();
        Self {
            routes,
            receivers,
            apart,
            inhibit_rules: config.inhibit_rules.clone(),
            intervals: config
                .time_intervals
                .iter()
                .map(|i| (i.name.clone(), i.clone()))
                .collect(),
        }
    }

    fn channels(&self, route: usize) -> &[Channel] {
        let receiver = &self.routes.get(route).route.receiver;
        self.receivers.get(receiver).map_or(&[], Vec::as_slice)
    }
}

/// Everything that is known and pending.
#[derive(Debug)]
pub struct Engine {
    plan: Plan,
    store: Store,
    silences: Silences,
    log: NotificationLog,
    groups: BTreeMap<GroupId, Group>,
    on_the_way: HashMap<u64, Pending>,
    history: History,
    healths: Healths,
    counts: Counts,
    writes: Vec<Write>,
    stats: Stats,
    last_id: u64,
    /// Counts configurations: what was sent under an older one does not touch the groups of this one.
    generation: u64,
    /// Messages on their way that left under an older configuration.
    older: usize,
    resolve_timeout: Millis,
    next_sweep: Millis,
}

impl Engine {
    /// An engine for a configuration, going on from what was known. Alerts that receivers believe to be
    /// firing are taken up again; without news they end after the resolve timeout, and that is told.
    #[must_use]
    pub fn new(config: &alertmanager::Config, known: Known, alerts_max: usize, now: Millis) -> Self {
        let history = History::new(known.deliveries);
        let mut engine = Self {
            plan: Plan::new(config),
            store: Store::new(alerts_max, config.resolve_timeout),
            silences: Silences::new(known.silences),
            log: NotificationLog::new(known.entries),
            groups: BTreeMap::new(),
            on_the_way: HashMap::new(),
            last_id: history.last_id(),
            healths: Healths::new(history.iter().rev()),
            counts: Counts::default(),
            history,
            writes: Vec::new(),
            stats: Stats::default(),
            generation: 0,
            older: 0,
            resolve_timeout: config.resolve_timeout,
            next_sweep: now.saturating_add(SWEEP_EVERY),
        };
        engine.know();
        for alert in known.alerts {
            engine.put(alert, now);
        }
        engine.resume(now);
        engine
    }

    /// Takes note of the ways there are.
    fn know(&mut self) {
        let receivers = &self.plan.receivers;
        for channel in receivers.values().flatten() {
            self.counts.know(channel.kind);
        }
        let is_there = |receiver: &str, integration: &str| {
            let mut channels = receivers.get(receiver).into_iter().flatten().enumerate();
            channels.any(|(at, channel)| integration == integration_name(channel.kind, at))
        };
        self.healths.keep(is_there);
    }

    /// Takes up the alerts that receivers were last told of as firing, where the routes still agree.
    fn resume(&mut self, now: Millis) {
        let mut told: BTreeMap<u64, Alert> = BTreeMap::new();
        for (group_key, entry) in self.log.iter().filter(|(_, e)| e.expires_at >= now) {
            for (fingerprint, alert) in &entry.firing {
                let agrees = self.ways(alert).into_iter().any(|at| {
                    let node = self.plan.routes.get(at);
                    node.group_key(&node.group_labels(&alert.labels)) == group_key
                });
                if agrees {
                    told.insert(*fingerprint, Alert::clone(alert));
                }
            }
        }
        for alert in told.into_values() {
            if self.store.get(alert.fingerprint()).is_some() {
                continue;
            }
            if let Some(alert) = self.store.put(alert, now) {
                // Time for the rules to speak first: until then nobody knows whether it goes on.
                let wait = now.saturating_add(self.resolve_timeout);
                self.group(&alert, now, Some(wait));
            }
        }
    }

    /// Takes news of an alert in.
    pub fn put(&mut self, alert: Alert, now: Millis) {
        self.stats.received += 1;
        self.stats.received_resolved += u64::from(alert.resolved_at(now));
        if let Some(alert) = self.store.put(alert, now) {
            if alert.external {
                self.writes.push(Write::alert(alert.fingerprint(), Some(&alert)));
            }
            self.group(&alert, now, None);
        }
    }

    /// The routes an alert takes: those of the tree, without such as lead to the receiver it is about; where that
    /// leaves none, the way to another receiver.
    fn ways(&self, alert: &Alert) -> Vec<usize> {
        let mut ways = self.plan.routes.matching(&alert.labels);
        let Some(avoided) = alert.annotations.get(AVOID_RECEIVER) else {
            return ways;
        };
        ways.retain(|at| self.plan.routes.get(*at).route.receiver != *avoided && !self.plan.channels(*at).is_empty());
        if ways.is_empty() {
            ways.extend(self.way_around(avoided, alert));
        }
        ways
    }

    /// The way on which an alert is told already, else that to the first receiver that does not fail, else our log.
    fn way_around(&self, avoided: &str, alert: &Alert) -> Option<usize> {
        let fingerprint = alert.fingerprint();
        let others = self.plan.apart.iter().filter(|(name, _)| name != avoided);
        let is_told = |at: usize| {
            let id = (at, self.plan.routes.get(at).group_labels(&alert.labels));
            self.groups
                .get(&id)
                .is_some_and(|group| group.alerts.contains_key(&fingerprint))
        };
        let known = others
            .clone()
            .find(|(name, at)| is_told(*at) && !self.healths.is_failing(name));
        let sound = || others.clone().find(|(name, _)| !self.healths.is_failing(name));
        known.or_else(sound).or(self.plan.apart.last()).map(|(_, at)| *at)
    }

    /// Puts an alert into the group of every route it takes. `first` tells when a new group is looked at
    /// first; `None` for the route's own wait.
    fn group(&mut self, alert: &Arc<Alert>, now: Millis, first: Option<Millis>) {
        for at in self.ways(alert) {
            let node = self.plan.routes.get(at);
            let labels = node.group_labels(&alert.labels);
            let wait = node.route.group_wait;
            let old_enough = alert.starts_at.saturating_add(wait) < now;
            let skips_wait = old_enough || (alert.urgent && !alert.resolved_at(now));
            let start = first.unwrap_or(if skips_wait { now } else { now.saturating_add(wait) });
            let key = node.group_key(&labels);
            let id = (at, labels);
            if !self.groups.contains_key(&id) && self.groups.len() >= GROUPS_MAX {
                self.stats.groups_refused += 1;
                continue;
            }
            let channels = self.plan.channels(at).len();
            let group = self
                .groups
                .entry(id)
                .or_insert_with(|| Group::new(key, start, channels));
            if !group.flushed {
                group.next_flush = group.next_flush.min(start);
            }
            group.alerts.insert(alert.fingerprint(), Arc::clone(alert));
        }
    }

    /// When [`Engine::tick`] has something to do; `None` when only news can change that.
    #[must_use]
    pub fn due(&self) -> Option<Millis> {
        self.groups.values().map(Group::due).min()
    }

    /// Looks at every group that is due and returns the messages to send now.
    pub fn tick(&mut self, now: Millis) -> Vec<Notification> {
        let due: Vec<GroupId> = self
            .groups
            .iter()
            .filter(|(_, group)| group.due() <= now)
            .map(|(id, _)| id.clone())
            .collect();
        let mut out = Vec::new();
        if !due.is_empty() {
            let looks = self.looks(&due, now);
            for (id, look) in due.iter().zip(looks) {
                match look {
                    Some(told) => self.flush(id, told, now, &mut out),
                    None => self.retry(id, now, &mut out),
                }
            }
        }
        if now >= self.next_sweep {
            self.sweep(now);
        }
        out
    }

    /// For each group whose look is due, its alerts with what keeps them out.
    fn looks(&self, due: &[GroupId], now: Millis) -> Vec<Option<Vec<(Told, Muted)>>> {
        let inhibitor = Inhibitor::new(&self.plan.inhibit_rules, &self.store, now);
        due.iter()
            .map(|id| {
                let group = self.groups.get(id).filter(|g| g.next_flush <= now)?;
                Some(self.judge(id.0, group, &inhibitor, now))
            })
            .collect()
    }

    fn judge(&self, route: usize, group: &Group, inhibitor: &Inhibitor<'_>, now: Millis) -> Vec<(Told, Muted)> {
        let muted_by = muting(&self.plan.routes.get(route).route, &self.plan.intervals, now);
        let judge = |told: Told| {
            let muted = admit(&told.alert.labels, inhibitor, &muted_by, &self.silences, now);
            (told, muted)
        };
        group.list(now).into_iter().map(judge).collect()
    }

    /// Looks at a group: decides what its message is, and for each integration whether to send it.
    fn flush(&mut self, id: &GroupId, judged: Vec<(Told, Muted)>, now: Millis, out: &mut Vec<Notification>) {
        let Some(group) = self.groups.get_mut(id) else { return };
        let interval = self.plan.routes.get(id.0).route.group_interval;
        group.next_flush = now.saturating_add(interval.max(1));
        group.flushed = true;
        group.failed = false;
        if group.alerts.is_empty() {
            if group.is_idle() {
                self.groups.remove(id);
            }
            return;
        }
        let ended = judged.iter().filter(|(told, _)| told.resolved);
        group.ended = ended.map(|(t, _)| (t.fingerprint, t.alert.updated_at)).collect();
        let (told, kept_out): (Vec<_>, Vec<_>) = judged.into_iter().partition(|(_, muted)| muted.is_clear());
        group.told = Arc::new(told.into_iter().map(|(told, _)| told).collect());
        let active = &self.plan.routes.get(id.0).route.active_time_intervals;
        for (_, muted) in &kept_out {
            self.counts.suppress(muted, active);
        }
        let ended_unseen: Vec<u64> = kept_out
            .iter()
            .filter(|(told, _)| told.resolved)
            .map(|(told, _)| told.fingerprint)
            .collect();
        for at in 0..self.plan.channels(id.0).len() {
            self.forget(id, at, &ended_unseen);
            self.consider(id, at, now, out);
        }
        self.settle(id);
    }

    /// An alert that ended while it was kept out will not be told as ended; then it must not count as
    /// told either, or its next firing would go untold.
    fn forget(&mut self, id: &GroupId, at: usize, fingerprints: &[u64]) {
        let key = self.entry_key(id, at);
        for fingerprint in fingerprints {
            if let Some(entry) = self.log.forget(&key, *fingerprint) {
                self.writes.push(Write::entry(&key, Some(entry)));
            }
        }
    }

    /// Sends what waited for its next attempt.
    fn retry(&mut self, id: &GroupId, now: Millis, out: &mut Vec<Notification>) {
        for at in 0..self.plan.channels(id.0).len() {
            let sending = self.groups.get(id).map(|g| g.sending[at]);
            if matches!(sending, Some(Sending::Waiting { at: time, .. }) if time <= now) {
                self.consider(id, at, now, out);
            }
        }
        self.settle(id);
    }

    /// Decides whether an integration of a group is told now, and tells it.
    fn consider(&mut self, id: &GroupId, at: usize, now: Millis, out: &mut Vec<Notification>) {
        let key = self.entry_key(id, at);
        let mut away = self.on_the_way.values();
        let older = self.older > 0 && away.any(|p| p.generation != self.generation && p.key == key);
        let Some(group) = self.groups.get_mut(id) else { return };
        if older {
            // Sent before a reload and not back yet: what became of it decides whether there is more to say.
            group.next_flush = group.next_flush.min(now.saturating_add(RECHECK));
            return;
        }
        let (attempt, chain) = match group.sending[at] {
            Sending::Idle => (1, None),
            Sending::Waiting { attempt, chain, .. } => (attempt, Some(chain)),
            Sending::InFlight { attempt, chain, .. } => {
                group.sending[at] = Sending::InFlight {
                    attempt,
                    chain,
                    stale: true,
                };
                return;
            }
        };
        if group.told.is_empty() {
            // Everything is kept out: an empty message would read as "all is well".
            group.sending[at] = Sending::Idle;
            return;
        }
        let node = self.plan.routes.get(id.0);
        let channel = &self.plan.channels(id.0)[at];
        let route = &node.route;
        let part = |resolved| group.told.iter().filter(move |t| t.resolved == resolved);
        let firing: BTreeSet<u64> = part(false).map(|t| t.fingerprint).collect();
        let resolved: BTreeSet<u64> = part(true).map(|t| t.fingerprint).collect();
        let last = self.log.get(&key);
        let why = reason(
            last,
            &firing,
            &resolved,
            channel.send_resolved,
            route.repeat_interval,
            now,
        );
        let last_at = last.map_or(0, |entry| entry.at);
        let Some(why) = why else {
            group.sending[at] = Sending::Idle;
            return;
        };
        if matches!(group.sending[at], Sending::Waiting { at: time, .. } if time > now) {
            return;
        }
        let known = part(false).map(|t| (t.fingerprint, Arc::clone(&t.alert))).collect();
        let entry = Entry::new(now, route.repeat_interval, known, resolved);
        if !channel.send_resolved && firing.is_empty() {
            // It does not want to hear of the end, but the log must know that nothing fires.
            group.sending[at] = Sending::Idle;
            self.record(key, entry);
            return;
        }
        let told = group.told.iter().filter(|t| channel.send_resolved || !t.resolved);
        let alerts: Vec<Told> = told.cloned().collect();
        self.last_id += 1;
        let number = self.last_id;
        let chain = chain.unwrap_or(number);
        group.sending[at] = Sending::InFlight {
            attempt,
            chain,
            stale: false,
        };
        let delivery = Delivery {
            id: chain,
            at: now,
            receiver: route.receiver.clone(),
            integration: integration_name(channel.kind, at),
            address: String::new(),
            fingerprints: alerts.iter().map(|t| t.fingerprint).collect(),
            group_key: group.key.clone(),
            firing: firing.len(),
            resolved: alerts.len() - firing.len(),
            status: DeliveryStatus::Retrying,
            attempts: attempt,
            latency: 0,
            error: String::new(),
            remark: String::new(),
            test: false,
        };
        out.push(Notification {
            id: number,
            receiver: route.receiver.clone(),
            integration: at,
            attempt,
            group_key: group.key.clone(),
            group_labels: id.1.clone(),
            alerts,
            reason: why,
            at: now,
            route_labels: route.labels.clone(),
            last_at,
        });
        let pending = Pending {
            group: id.clone(),
            integration: at,
            key,
            entry,
            repeat: route.repeat_interval,
            delivery,
            kind: channel.kind,
            generation: self.generation,
        };
        self.on_the_way.insert(number, pending);
    }

    /// Takes the outcome of a message in; returns messages that follow from it at once.
    pub fn done(&mut self, id: u64, outcome: &Outcome, latency: Millis, now: Millis) -> Vec<Notification> {
        self.finish(id, &Receipt::from(outcome.clone()), latency, now)
    }

    /// The same with what is to be remembered of the message.
    pub fn finish(&mut self, id: u64, receipt: &Receipt, latency: Millis, now: Millis) -> Vec<Notification> {
        let outcome = &receipt.outcome;
        let Some(pending) = self.on_the_way.remove(&id) else {
            return Vec::new();
        };
        let attempt = pending.delivery.attempts;
        let chain = pending.delivery.id;
        self.note(pending.kind, pending.delivery, receipt, latency, now);
        if *outcome == Outcome::Sent {
            let entry = Entry::new(now, pending.repeat, pending.entry.firing, pending.entry.resolved);
            self.record(pending.key, entry);
        }
        let mut out = Vec::new();
        if pending.generation != self.generation {
            self.older = self.older.saturating_sub(1);
            return out;
        }
        let at = pending.integration;
        let Some(group) = self.groups.get_mut(&pending.group) else {
            return out;
        };
        let stale = matches!(group.sending[at], Sending::InFlight { stale: true, .. });
        group.sending[at] = match outcome {
            Outcome::Retry(_) => Sending::Waiting {
                attempt: attempt.saturating_add(1),
                chain,
                at: now.saturating_add(backoff(attempt)),
            },
            Outcome::Sent | Outcome::Failed(_) => Sending::Idle,
        };
        group.failed |= matches!(outcome, Outcome::Failed(_));
        if stale && *outcome == Outcome::Sent {
            self.consider(&pending.group, at, now, &mut out);
        }
        self.settle(&pending.group);
        out
    }

    /// Lets ended alerts go once every integration has been told or need not be.
    fn settle(&mut self, id: &GroupId) {
        let group = self.groups.get_mut(id);
        if let Some(group) = group.filter(|g| g.is_idle() && !g.failed) {
            group.drop_ended();
        }
    }

    /// Remembers a test of a receiver, which is no message of a group.
    pub fn note_test(
        &mut self,
        kind: &'static str,
        mut delivery: Delivery,
        receipt: &Receipt,
        now: Millis,
    ) -> Delivery {
        self.last_id += 1;
        delivery.id = self.last_id;
        let latency = delivery.latency;
        self.note(kind, delivery.clone(), receipt, latency, now);
        self.history.get(delivery.id).cloned().unwrap_or(delivery)
    }

    fn note(&mut self, kind: &'static str, mut delivery: Delivery, receipt: &Receipt, latency: Millis, now: Millis) {
        delivery.take(receipt);
        delivery.at = now;
        delivery.latency = latency;
        match delivery.status {
            DeliveryStatus::Sent => self.stats.sent += 1,
            DeliveryStatus::Retrying | DeliveryStatus::Failed => self.stats.failed_attempts += 1,
        }
        let reason = match &receipt.outcome {
            Outcome::Sent => None,
            Outcome::Retry(problem) | Outcome::Failed(problem) => Some(problem.reason),
        };
        self.counts.note(kind, &delivery, reason);
        self.healths.note(&delivery);
        self.writes.push(Write::delivery(delivery.id, Some(&delivery)));
        if let Some(old) = self.history.record(delivery) {
            self.writes.push(Write::delivery(old, None));
        }
    }

    fn record(&mut self, key: String, entry: Entry) {
        self.writes.push(Write::entry(&key, Some(&entry)));
        if let Some(dropped) = self.log.record(key, entry) {
            self.writes.push(Write::entry(&dropped, None));
        }
    }

    fn entry_key(&self, id: &GroupId, at: usize) -> String {
        let node = self.plan.routes.get(id.0);
        let kind = self.plan.channels(id.0).get(at).map_or("", |c| c.kind);
        entry_key(&node.group_key(&id.1), &node.route.receiver, kind, at)
    }

    fn sweep(&mut self, now: Millis) {
        self.next_sweep = now.saturating_add(SWEEP_EVERY);
        for alert in self.store.sweep(now).iter().filter(|a| a.external) {
            self.writes.push(Write::alert(alert.fingerprint(), None));
        }
        for key in self.log.sweep(now) {
            self.writes.push(Write::entry(&key, None));
        }
        for id in self.silences.sweep(now) {
            self.writes.push(Write::silence(&id, None));
        }
    }

    /// Goes over to another configuration: every alert is grouped anew, what was told stays known.
    pub fn reload(&mut self, config: &alertmanager::Config, now: Millis) {
        self.plan = Plan::new(config);
        self.know();
        self.generation += 1;
        self.older = self.on_the_way.len();
        self.groups.clear();
        self.resolve_timeout = config.resolve_timeout;
        self.store.set_resolve_timeout(config.resolve_timeout);
        let alerts: Vec<Arc<Alert>> = self.store.iter().map(Arc::clone).collect();
        for alert in alerts {
            self.group(&alert, now, None);
        }
    }

    /// Makes or changes a silence and returns its name.
    ///
    /// # Errors
    ///
    /// [`Error::Silence`] and [`Error::NoSilence`].
    pub fn set_silence(&mut self, silence: Silence, now: Millis) -> Result<String, Error> {
        let changed = self.silences.set(silence, now)?;
        for silence in &changed {
            self.writes.push(Write::silence(&silence.id, Some(silence)));
        }
        Ok(changed.last().map(|s| s.id.clone()).unwrap_or_default())
    }

    /// Ends a silence.
    ///
    /// # Errors
    ///
    /// [`Error::NoSilence`] and [`Error::SilenceExpired`].
    pub fn expire_silence(&mut self, id: &str, now: Millis) -> Result<(), Error> {
        let silence = self.silences.expire(id, now)?;
        self.writes.push(Write::silence(id, Some(&silence)));
        Ok(())
    }

    /// What must be written down since the last call.
    pub fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }
}

/// `webhook[0]`
fn integration_name(kind: &str, at: usize) -> String {
    format!("{kind}[{at}]")
}

/// The pause after an attempt, from 1.
fn backoff(attempt: u32) -> Millis {
    let mut pause = BACKOFF_FIRST;
    for _ in 1..attempt.min(20) {
        pause += pause / 2;
    }
    pause.min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
