//! Which helper serves which GPUs: decided here from plain facts, carried out by the supervisor.
//!
//! One *main* helper serves all GPUs. When a call for one of them does not return, that GPU is hung: a new main helper is
//! started for the others and a *quarantined* one for the hung GPU. The old helper goes on serving, if it can, until the new
//! one has answered for each GPU, so that nobody misses a beat; then it is left. A hung GPU that answers in its quarantine
//! for a while comes back into a new main helper. A GPU that is lost is looked at by a probe of its own from time to time,
//! since a library that was loaded before a reset does not see the GPU again.
//!
//! Invariant: there are never more than [`PROCESSES_MAX`] processes, those included that the kernel will not let die.

use std::collections::BTreeMap;
use std::time::Duration;

use super::protocol::Serves;
use crate::gpu::fault::FaultKind;

/// Helpers that may exist at one time.
pub const PROCESSES_MAX: usize = 8;

/// Of these, helpers for a single GPU that are at work.
const SINGLES_MAX: usize = 2;

/// A moment, since the supervisor began.
pub type Moment = Duration;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// A call of the driver.
    pub call: Duration,
    /// Loading the driver's library.
    pub load: Duration,
    /// Until the next word from a helper, which comes at every sample.
    pub silence: Duration,
    /// Before a driver that is not there is looked for again.
    pub retry: Duration,
    /// Before a sick GPU is first looked at again; doubled each time up to [`Times::probe_max`].
    pub probe: Duration,
    /// The longest time between two looks.
    pub probe_max: Duration,
    /// How long a GPU that was hung must answer before it comes back to the others.
    pub well: Duration,
    /// Before a helper that died is started anew; doubled each time up to a minute.
    pub crash: Duration,
}

impl Times {
    /// For calls that may take this long, and samples at this interval.
    pub fn of(call: Duration, sample: Duration) -> Self {
        Self {
            call,
            // With the default of three seconds a call: 21, 15, 30 s, ten minutes.
            load: 7 * call,
            silence: call + 3 * sample,
            retry: 5 * call,
            probe: 10 * call,
            probe_max: 200 * call,
            well: 10 * call,
            crash: Duration::from_secs(1),
        }
    }
}

/// The longest pause after crashes.
const CRASH_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A helper that lived this long was no failed start.
const SOUND: Duration = Duration::from_secs(60);

/// A helper's number, never used twice.
pub type HelperId = u32;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a helper for these GPUs.
    Start(HelperId, Serves),
    /// Hang up on a helper, and kill it if that does not help.
    Leave(HelperId),
}

/// What is wrong with a GPU as far as its helper tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// A call has not returned: which.
    Hung(String),
    /// Its helper is gone: why.
    Unserved(String),
}

/// Who serves whom.
#[derive(Debug)]
pub struct Roster {
    times: Times,
    helpers: BTreeMap<HelperId, Helper>,
    last: HelperId,
    /// The helper whose word counts, by GPU.
    owners: BTreeMap<u32, HelperId>,
    /// GPUs with a call that did not return.
    hung: BTreeMap<u32, Hung>,
    /// GPUs that answered that they are lost.
    lost: BTreeMap<u32, Look>,
    /// When a main helper may next be started.
    main_due: Moment,
    /// Whether the main helper's library no longer sees what there is.
    is_outdated: bool,
    /// Main helpers that ended soon, one after the other.
    failures: u32,
    /// Why there is no main helper.
    why: String,
}

#[derive(Debug)]
struct Helper {
    serves: Serves,
    born: Moment,
    is_up: bool,
    heard: Moment,
    /// It has done what it was for, or took too long for it.
    is_done: bool,
    is_left: bool,
}

#[derive(Debug)]
struct Hung {
    what: String,
    look: Look,
    /// Since when it answers again.
    well_since: Option<Moment>,
}

/// When to look again.
#[derive(Debug, Clone, Copy)]
struct Look {
    due: Moment,
    pause: Duration,
}

impl Look {
    const fn at(due: Moment, pause: Duration) -> Self {
        Self { due, pause }
    }

    fn later(&mut self, now: Moment, times: &Times) {
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(times.probe_max);
    }
}

impl Roster {
    /// Nobody yet; the first helper is due at once.
    pub fn new(times: Times) -> Self {
        Self {
            times,
            helpers: BTreeMap::new(),
            last: 0,
            owners: BTreeMap::new(),
            hung: BTreeMap::new(),
            lost: BTreeMap::new(),
            main_due: Moment::ZERO,
            is_outdated: false,
            failures: 0,
            why: "its helper process starts".to_owned(),
        }
    }

    /// What time alone makes necessary. `processes` is how many helpers exist, those included that were left.
    pub fn tick(&mut self, now: Moment, processes: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        self.leave_the_silent(now, &mut actions);
        self.leave_the_idle(&mut actions);
        let mut room = PROCESSES_MAX.saturating_sub(processes);
        self.bring_back_the_well(now);
        if self.needs_main(now) && room > 0 {
            room -= 1;
            let others = self.hung.keys().copied().collect();
            self.main_due = now + self.pause();
            self.is_outdated = false;
            actions.push(self.start(Serves::AllBut(others), now));
        }
        for gpu in self.due_looks(now) {
            if room == 0 || self.singles() >= SINGLES_MAX {
                break;
            }
            room -= 1;
            actions.push(self.start(Serves::Only(gpu), now));
        }
        actions
    }

    /// A helper loaded the library.
    pub fn is_up(&mut self, id: HelperId, now: Moment) {
        if let Some(helper) = self.helpers.get_mut(&id) {
            (helper.is_up, helper.heard) = (true, now);
        }
    }

    /// A helper said something.
    pub fn heard(&mut self, id: HelperId, now: Moment) {
        if let Some(helper) = self.helpers.get_mut(&id) {
            helper.heard = now;
        }
    }

    /// A GPU answered its helper, if only that it cannot (`fault`). Says whether this helper's word counts.
    pub fn answered(&mut self, id: HelperId, gpu: u32, fault: Option<FaultKind>, now: Moment) -> bool {
        let Some(helper) = self.helpers.get(&id).filter(|h| h.serves.has(gpu) && !h.is_done) else {
            return false;
        };
        let is_lost = fault.is_some_and(|kind| !kind.is_of_driver());
        let is_hung = self.hung.contains_key(&gpu);
        let is_probe = helper.serves == Serves::Only(gpu) && self.lost.contains_key(&gpu) && !is_hung;
        if is_probe {
            return self.probed(id, gpu, is_lost, now);
        }
        // A newer helper takes over with its first word; an older one is no longer asked.
        if self.owners.get(&gpu).is_some_and(|owner| *owner > id) || (helper.is_left && !self.owns(id, gpu)) {
            return false;
        }
        if let Some(hung) = self.hung.get_mut(&gpu) {
            let is_single = matches!(self.helpers[&id].serves, Serves::Only(_));
            if !is_single {
                // The old helper's call has come back after all; its quarantine tells when that is to be believed.
                return false;
            }
            hung.well_since.get_or_insert(now);
        }
        self.owners.insert(gpu, id);
        if is_lost {
            let first = Look::at(now + self.times.probe, self.times.probe);
            self.lost.entry(gpu).or_insert(first);
        } else {
            self.lost.remove(&gpu);
        }
        true
    }

    /// A probe of a lost GPU answered: if the GPU is back, everybody needs a library that sees it.
    fn probed(&mut self, id: HelperId, gpu: u32, is_lost: bool, now: Moment) -> bool {
        if is_lost {
            if let Some(look) = self.lost.get_mut(&gpu) {
                look.later(now, &self.times);
            }
        } else {
            self.lost.remove(&gpu);
            self.is_outdated = true;
        }
        self.done(id);
        false
    }

    /// A call for a GPU has not returned for this long.
    pub fn stuck(&mut self, id: HelperId, gpu: u32, since: Duration, what: &str, now: Moment) {
        let Some(helper) = self.helpers.get(&id) else { return };
        if since < self.times.call || helper.is_left || !helper.serves.has(gpu) {
            return;
        }
        let is_single = matches!(helper.serves, Serves::Only(_));
        match self.hung.get_mut(&gpu) {
            Some(hung) if is_single => {
                what.clone_into(&mut hung.what);
                hung.well_since = None;
                if self.owners.get(&gpu) == Some(&id) {
                    self.owners.remove(&gpu);
                }
                if since >= hung.look.pause.max(self.times.probe) {
                    hung.look.later(now, &self.times);
                    self.done(id);
                }
            }
            Some(_) => {}
            None if is_single => {
                // A probe of a lost GPU that hangs tells nothing new.
                if let Some(look) = self.lost.get_mut(&gpu) {
                    look.later(now, &self.times);
                }
                self.done(id);
            }
            None => {
                self.owners.remove(&gpu);
                self.lost.remove(&gpu);
                let look = Look::at(now, self.times.probe);
                let (what, well_since) = (what.to_owned(), None);
                self.hung.insert(gpu, Hung { what, look, well_since });
            }
        }
    }

    /// A helper is no more, or says that the driver is gone. `again_in` is when to try again; `None` after a crash.
    pub fn ended(&mut self, id: HelperId, why: &str, again_in: Option<Duration>, now: Moment) {
        let Some(helper) = self.helpers.remove(&id) else { return };
        self.disown(id);
        if let Serves::Only(gpu) = helper.serves {
            if let Some(hung) = self.hung.get_mut(&gpu) {
                hung.well_since = None;
                hung.look.later(now, &self.times);
            }
            if let Some(look) = self.lost.get_mut(&gpu) {
                look.later(now, &self.times);
            }
            return;
        }
        if helper.is_left {
            return;
        }
        self.why = why.to_owned();
        if helper.is_up && now.saturating_sub(helper.born) >= SOUND {
            self.failures = 0;
        }
        if again_in.is_none() {
            self.failures = self.failures.saturating_add(1);
        }
        let pause = again_in.unwrap_or_else(|| self.pause());
        self.main_due = now + pause;
    }

    /// The helper whose word on this GPU counts.
    #[cfg(test)]
    pub fn owner(&self, gpu: u32) -> Option<HelperId> {
        self.owners.get(&gpu).copied()
    }

    /// Whether nobody will answer for this GPU now, and why.
    pub fn trouble(&self, gpu: u32) -> Option<Trouble> {
        if self.owners.contains_key(&gpu) {
            return None;
        }
        if let Some(hung) = self.hung.get(&gpu) {
            return Some(Trouble::Hung(hung.what.clone()));
        }
        let is_coming = self.mains().any(|(_, helper)| helper.is_up && helper.serves.has(gpu));
        (!is_coming).then(|| Trouble::Unserved(self.why.clone()))
    }

    /// Whether a helper has loaded the library.
    pub fn any_up(&self) -> bool {
        self.mains().any(|(_, helper)| helper.is_up)
    }

    /// Whether a helper is at it.
    pub fn any_starting(&self) -> bool {
        self.mains().any(|(_, helper)| !helper.is_up)
    }

    /// The helpers to ask for a round.
    pub fn asked(&self) -> Vec<HelperId> {
        let is_asked = |(id, helper): &(&HelperId, &Helper)| {
            let serves_somebody = self.owners.values().any(|owner| owner == *id);
            helper.is_up && (serves_somebody || !helper.is_left)
        };
        self.helpers.iter().filter(is_asked).map(|(id, _)| *id).collect()
    }

    fn mains(&self) -> impl DoubleEndedIterator<Item = (&HelperId, &Helper)> {
        let is_main =
            |(_, helper): &(&HelperId, &Helper)| !helper.is_left && matches!(helper.serves, Serves::AllBut(_));
        self.helpers.iter().filter(is_main)
    }

    fn needs_main(&self, now: Moment) -> bool {
        if now < self.main_due {
            return false;
        }
        match self.mains().next_back() {
            None => true,
            // One that still starts is waited for, whatever it will serve.
            Some((_, newest)) if !newest.is_up => false,
            Some((_, newest)) => {
                self.is_outdated || newest.serves != Serves::AllBut(self.hung.keys().copied().collect())
            }
        }
    }

    fn start(&mut self, serves: Serves, now: Moment) -> Action {
        self.last += 1;
        let helper = Helper {
            serves: serves.clone(),
            born: now,
            is_up: false,
            heard: now,
            is_done: false,
            is_left: false,
        };
        self.helpers.insert(self.last, helper);
        Action::Start(self.last, serves)
    }

    /// GPUs that are to be looked at by a helper of their own.
    fn due_looks(&self, now: Moment) -> Vec<u32> {
        let hung = self.hung.iter().map(|(gpu, hung)| (*gpu, hung.look));
        let lost = self.lost.iter().map(|(gpu, look)| (*gpu, *look));
        let is_served = |gpu: u32| {
            self.helpers
                .values()
                .any(|h| !h.is_left && h.serves == Serves::Only(gpu))
        };
        hung.chain(lost)
            .filter(|(gpu, look)| now >= look.due && !is_served(*gpu))
            .map(|(gpu, _)| gpu)
            .collect()
    }

    fn singles(&self) -> usize {
        let is_single = |helper: &&Helper| !helper.is_left && matches!(helper.serves, Serves::Only(_));
        self.helpers.values().filter(is_single).count()
    }

    fn bring_back_the_well(&mut self, now: Moment) {
        let well = self.times.well;
        let is_well = |hung: &Hung| hung.well_since.is_some_and(|at| now.saturating_sub(at) >= well);
        self.hung.retain(|_, hung| !is_well(hung));
    }

    /// Helpers that never came up, or that say nothing any more.
    fn leave_the_silent(&mut self, now: Moment, actions: &mut Vec<Action>) {
        let times = self.times;
        let is_silent = |helper: &Helper| {
            let limit = if helper.is_up { times.silence } else { times.load };
            let last = if helper.is_up { helper.heard } else { helper.born };
            helper.is_done || now.saturating_sub(last) > limit
        };
        let silent: Vec<HelperId> = self
            .helpers
            .iter()
            .filter(|(_, helper)| !helper.is_left && is_silent(helper))
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            let helper = &self.helpers[&id];
            let (was_up, is_main) = (helper.is_up, matches!(helper.serves, Serves::AllBut(_)));
            if is_main {
                self.why = if was_up {
                    "the driver's helper process says nothing any more".to_owned()
                } else {
                    format!("the driver's library did not load within {:?}", times.load)
                };
                self.failures = self.failures.saturating_add(1);
                self.main_due = now + self.pause();
            }
            self.disown(id);
            self.leave(id, actions);
        }
    }

    /// Helpers that nobody needs any more.
    fn leave_the_idle(&mut self, actions: &mut Vec<Action>) {
        let Some(newest) = self.mains().next_back().map(|(id, _)| *id) else {
            return;
        };
        let is_idle = |(id, helper): &(&HelperId, &Helper)| {
            let is_needed = match &helper.serves {
                Serves::AllBut(_) => **id == newest,
                Serves::Only(gpu) => self.hung.contains_key(gpu) || self.lost.contains_key(gpu),
            };
            // What was a main helper serves on until the new one has answered for each GPU, or has come up in vain.
            let is_elder = matches!(helper.serves, Serves::AllBut(_)) && !self.helpers[&newest].is_up;
            !helper.is_left && !is_needed && !is_elder && !self.owners.values().any(|owner| owner == *id)
        };
        let idle: Vec<HelperId> = self.helpers.iter().filter(is_idle).map(|(id, _)| *id).collect();
        idle.into_iter().for_each(|id| self.leave(id, actions));
    }

    fn leave(&mut self, id: HelperId, actions: &mut Vec<Action>) {
        if let Some(helper) = self.helpers.get_mut(&id) {
            helper.is_left = true;
            actions.push(Action::Leave(id));
        }
    }

    /// Marks a helper to be left at the next tick.
    fn done(&mut self, id: HelperId) {
        if let Some(helper) = self.helpers.get_mut(&id) {
            helper.is_done = true;
        }
    }

    fn disown(&mut self, id: HelperId) {
        self.owners.retain(|_, owner| *owner != id);
    }

    fn owns(&self, id: HelperId, gpu: u32) -> bool {
        self.owners.get(&gpu) == Some(&id)
    }

    /// The pause after so many failures.
    fn pause(&self) -> Duration {
        let doubled = self.times.crash * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(16));
        doubled.min(CRASH_PAUSE_MAX.max(self.times.crash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPUS: u32 = 4;

    /// A roster played by hand: seconds, and what helpers say.
    struct Play {
        roster: Roster,
        now: Moment,
        processes: usize,
    }

    impl Play {
        fn new() -> Self {
            let times = Times::of(Duration::from_secs(3), Duration::from_secs(1));
            Self {
                roster: Roster::new(times),
                now: Moment::ZERO,
                processes: 0,
            }
        }

        /// Lets seconds pass; what the roster wanted meanwhile.
        fn pass(&mut self, seconds: u64) -> Vec<String> {
            let mut wanted = Vec::new();
            for _ in 0..seconds.max(1) {
                if seconds > 0 {
                    self.now += Duration::from_secs(1);
                }
                for action in self.roster.tick(self.now, self.processes) {
                    match &action {
                        Action::Start(..) => self.processes += 1,
                        Action::Leave(_) => self.processes -= 1,
                    }
                    wanted.push(match action {
                        Action::Start(id, Serves::AllBut(others)) => format!("{id}:all-{others:?}"),
                        Action::Start(id, Serves::Only(gpu)) => format!("{id}:only {gpu}"),
                        Action::Leave(id) => format!("leave {id}"),
                    });
                }
            }
            wanted
        }

        /// The helper loads and answers for these GPUs, every second.
        fn speaks(&mut self, id: HelperId, gpus: impl IntoIterator<Item = u32>) {
            self.roster.is_up(id, self.now);
            for gpu in gpus {
                self.roster.answered(id, gpu, None, self.now);
            }
        }

        fn stuck(&mut self, id: HelperId, gpu: u32, seconds: u64) {
            self.roster.heard(id, self.now);
            self.roster
                .stuck(id, gpu, Duration::from_secs(seconds), "power_usage", self.now);
        }

        fn owners(&self) -> Vec<Option<HelperId>> {
            (0..GPUS).map(|gpu| self.roster.owner(gpu)).collect()
        }
    }

    #[test]
    fn one_helper_serves_all() {
        let mut play = Play::new();
        assert_eq!(play.pass(0), ["1:all-[]"]);
        assert!(play.roster.any_starting());
        play.speaks(1, 0..GPUS);
        assert_eq!(play.owners(), [Some(1); 4]);
        assert!(play.pass(1).is_empty());
    }

    #[test]
    fn a_hung_gpu_is_parted_from_the_others_who_miss_nothing() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        play.pass(2);
        play.stuck(1, 2, 2);
        assert_eq!(play.roster.trouble(2), None, "not yet");
        play.stuck(1, 2, 3);
        assert_eq!(play.roster.trouble(2), Some(Trouble::Hung("power_usage".into())));
        assert_eq!(play.pass(0), ["2:all-[2]", "3:only 2"]);
        // Until the new helper speaks, the old one does.
        play.speaks(1, [0, 1, 3]);
        assert_eq!(play.owners(), [Some(1), Some(1), None, Some(1)]);
        play.speaks(2, [0]);
        assert!(play.pass(1).is_empty());
        assert_eq!(play.owners(), [Some(2), Some(1), None, Some(1)]);
        play.speaks(1, [0, 1]);
        assert_eq!(play.roster.owner(0), Some(2), "an older helper takes nothing back");
        play.speaks(2, [1, 3]);
        assert_eq!(play.pass(0), ["leave 1"]);
        assert_eq!(play.owners(), [Some(2), Some(2), None, Some(2)]);
    }

    #[test]
    fn a_gpu_that_answers_in_quarantine_comes_back_to_the_others() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        play.pass(1);
        play.stuck(1, 2, 3);
        play.pass(0);
        play.speaks(2, [0, 1, 3]);
        play.speaks(3, [2]);
        assert_eq!(play.roster.owner(2), Some(3));
        assert_eq!(play.roster.trouble(2), None);
        let mut wanted = Vec::new();
        for _ in 0..40 {
            wanted.extend(play.pass(1));
            play.speaks(2, [0, 1, 3]);
            play.speaks(3, [2]);
            play.speaks(4, 0..GPUS);
        }
        assert_eq!(wanted, ["leave 1", "4:all-[]", "leave 2", "leave 3"]);
        assert_eq!(play.owners(), [Some(4); 4]);
    }

    #[test]
    fn a_quarantine_that_hangs_is_tried_again_ever_more_seldom() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        play.pass(1);
        play.stuck(1, 2, 3);
        play.pass(0);
        let mut begun = Vec::new();
        let mut single = 3;
        let mut stuck_since = play.now;
        while play.now < Duration::from_secs(3_600) {
            for wanted in play.pass(1) {
                if let Some((id, _)) = wanted.split_once(":only") {
                    single = id.parse().expect("a number");
                    stuck_since = play.now;
                    begun.push(play.now.as_secs());
                }
            }
            play.speaks(2, [0, 1, 3]);
            play.roster.is_up(single, play.now);
            let since = (play.now - stuck_since).as_secs();
            play.stuck(single, 2, since);
            assert!(play.processes <= PROCESSES_MAX);
        }
        let pauses: Vec<u64> = begun.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(pauses.windows(2).all(|two| two[0] <= two[1]), "{pauses:?}");
        assert!((4..12).contains(&begun.len()), "{begun:?}");
        assert_eq!(play.owners(), [Some(2), Some(2), None, Some(2)]);
    }

    #[test]
    fn a_helper_that_never_loads_is_left_and_an_old_one_serves_on() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        play.pass(1);
        play.stuck(1, 2, 3);
        assert_eq!(play.pass(0), ["2:all-[2]", "3:only 2"]);
        let mut wanted = Vec::new();
        for _ in 0..30 {
            wanted.extend(play.pass(1));
            play.speaks(1, [0, 1, 3]);
        }
        assert_eq!(wanted[..2], ["leave 2", "leave 3"]);
        assert_eq!(play.owners(), [Some(1), Some(1), None, Some(1)]);
        assert!(
            wanted.iter().any(|w| w.ends_with("all-[2]")),
            "it is tried again: {wanted:?}"
        );
    }

    #[test]
    fn a_helper_that_dies_is_started_again_after_longer_and_longer_pauses() {
        let mut play = Play::new();
        play.pass(0);
        let mut begun = Vec::new();
        let mut id = 1;
        while play.now < Duration::from_secs(300) {
            play.speaks(id, 0..GPUS);
            play.roster.ended(id, "signal 11", None, play.now);
            play.processes = 0;
            assert_eq!(play.roster.trouble(0), Some(Trouble::Unserved("signal 11".into())));
            while play.pass(1).is_empty() {}
            id += 1;
            begun.push(play.now.as_secs());
        }
        assert_eq!(begun[..5], [1, 3, 7, 15, 31]);
        assert!(begun.windows(2).all(|two| two[1] - two[0] <= 60));
    }

    #[test]
    fn a_driver_that_is_not_there_is_looked_for_at_its_own_pace() {
        let mut play = Play::new();
        play.pass(0);
        let retry = Some(Duration::from_secs(15));
        play.roster
            .ended(1, "the NVIDIA kernel driver is not loaded", retry, play.now);
        play.processes = 0;
        assert!(play.pass(14).is_empty());
        assert_eq!(play.pass(1), ["2:all-[]"]);
    }

    #[test]
    fn a_helper_that_falls_silent_is_replaced() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        assert!(play.pass(6).is_empty());
        assert_eq!(play.pass(1), ["leave 1"]);
        assert!(matches!(play.roster.trouble(0), Some(Trouble::Unserved(_))));
        assert_eq!(play.pass(2), ["2:all-[]"]);
    }

    #[test]
    fn a_lost_gpu_is_probed_and_when_it_is_back_everybody_sees_it() {
        let mut play = Play::new();
        play.pass(0);
        play.speaks(1, 0..GPUS);
        let mut wanted = Vec::new();
        let (mut main, mut now_there) = (1, false);
        for second in 0..200 {
            for action in play.pass(1) {
                if let Some((id, rest)) = action.split_once(':') {
                    let id: HelperId = id.parse().expect("a number");
                    if rest.starts_with("all") {
                        main = id;
                    } else {
                        let fault = (second < 100).then_some(FaultKind::GpuLost);
                        now_there |= fault.is_none();
                        play.roster.is_up(id, play.now);
                        play.roster.answered(id, 3, fault, play.now);
                    }
                }
                wanted.push(action);
            }
            play.speaks(main, 0..3);
            let fault = (main == 1).then_some(FaultKind::GpuLost);
            assert!(play.roster.answered(main, 3, fault, play.now), "its state is known");
        }
        assert!(now_there);
        assert_eq!(
            wanted,
            [
                "2:only 3", "leave 2", "3:only 3", "leave 3", "4:only 3", "leave 4", "5:all-[]", "leave 1"
            ]
        );
        assert_eq!(play.owners(), [Some(5); 4]);
    }

    #[test]
    fn helpers_that_cannot_die_are_a_bounded_number() {
        let mut play = Play::new();
        play.pass(0);
        for second in 0..2_000 {
            let mut starts = 0;
            for action in play.roster.tick(play.now, play.processes) {
                starts += usize::from(matches!(action, Action::Start(..)));
            }
            play.processes += starts;
            play.now += Duration::from_secs(1);
            assert!(play.processes <= PROCESSES_MAX, "at {second} s");
        }
        assert_eq!(play.processes, PROCESSES_MAX);
    }
}
