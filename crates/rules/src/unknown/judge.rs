//! Whether an alert that gave no result has ended, or only its data has.

use hashbrown::HashMap;
use model::{Deadline, Labels, Millis, QueryEngine};

use super::Unknown;
use super::health::{Health, Origin, Scope, vector};
use super::inputs::Input;
use crate::error::Error;

/// The most queries of one rule at one evaluation; beyond them the alerts are held.
const QUERIES_MAX: usize = 200;

/// What was down lately is asked for this far back at most, in milliseconds.
const LATELY_MAX: Millis = 3_600_000;

/// Judges the vanished alerts of one rule at one evaluation.
pub struct Judge<'a> {
    /// Answers.
    pub engine: &'a dyn QueryEngine,
    /// Until when.
    pub deadline: &'a Deadline,
    /// What the rule stands on.
    pub inputs: &'a [Input],
    /// The moment that the rule looks at.
    pub now: Millis,
    /// How often the rule is evaluated.
    pub interval: Millis,
    /// What is down now.
    pub health: &'a Health,
    /// What was down when the alert last held, as far as known.
    pub before: Option<&'a Health>,
    memory: HashMap<(usize, String, Millis), Vec<Labels>>,
    lately: Option<Health>,
}

/// An alert to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Vanished<'a> {
    /// The labels of the sample that it was made of.
    pub source: &'a Labels,
    /// When it last held.
    pub held_at: Millis,
    /// What made it unknown, if it is so already.
    pub known: Option<&'a Unknown>,
}

impl<'a> Judge<'a> {
    /// A judge that has asked nothing yet.
    #[must_use]
    pub fn new(
        engine: &'a dyn QueryEngine,
        deadline: &'a Deadline,
        inputs: &'a [Input],
        now: Millis,
        interval: Millis,
        health: &'a Health,
        before: Option<&'a Health>,
    ) -> Self {
        Self {
            engine,
            deadline,
            inputs,
            now,
            interval,
            health,
            before,
            memory: HashMap::new(),
            lately: None,
        }
    }

    /// Why the alert must be held; `None` when its data says that it is over.
    ///
    /// # Errors
    ///
    /// The engine's: nothing may be concluded then.
    pub fn verdict(&mut self, alert: Vanished<'_>) -> Result<Option<Unknown>, Error> {
        if let Some(known) = alert.known
            && let Some(held) = self.still(known, alert.source)?
        {
            return Ok(Some(held));
        }
        let health = self.health;
        for origin in health.ailing.iter().filter(|o| o.may_feed(alert.source)) {
            // What was down while the alert held did not make it vanish.
            let news = origin.scope == Scope::Target || !self.before.is_some_and(|before| before.has(origin));
            if news && let Some(held) = self.lost(origin, alert, false)? {
                return Ok(Some(held));
            }
        }
        if alert.known.is_some() {
            // It came back, so the gap in its past has been judged.
            return Ok(None);
        }
        self.lost_lately(alert)
    }

    /// Whether a window still misses what was not scraped while something was down.
    fn lost_lately(&mut self, alert: Vanished<'_>) -> Result<Option<Unknown>, Error> {
        let window = self.inputs.iter().map(|input| input.window).max().unwrap_or(0);
        if window == 0 {
            return Ok(None);
        }
        if self.lately.is_none() {
            let window = window.min(LATELY_MAX);
            self.lately = Some(Health::within(self.engine, self.now, window, self.deadline)?);
        }
        let lately = self.lately.take().unwrap_or_default();
        let mut verdict = Ok(None);
        for origin in lately.ailing.iter().filter(|o| o.may_feed(alert.source)) {
            verdict = self.lost(origin, alert, true);
            if !matches!(verdict, Ok(None)) {
                break;
            }
        }
        self.lately = Some(lately);
        verdict
    }

    /// Whether the alert stood on what `origin` gave and gives no more.
    fn lost(&mut self, origin: &Origin, alert: Vanished<'_>, is_well: bool) -> Result<Option<Unknown>, Error> {
        for input in 0..self.inputs.len() {
            for aggregated in [false, true] {
                if !self.feeds(input, origin, aggregated, alert.source, alert.held_at)? {
                    continue;
                }
                // A dead target keeps its alerts whatever its last samples still say; a part that is down, or a sum over
                // many, is only to blame for what is missing.
                let absence_counts = origin.scope == Scope::Part || aggregated || is_well;
                if absence_counts && self.feeds(input, origin, aggregated, alert.source, self.now)? {
                    continue;
                }
                return Ok(Some(Unknown {
                    since: self.now,
                    reason: if is_well {
                        format!("{} until lately, and its data is not complete yet", was_down(origin))
                    } else {
                        origin.describe()
                    },
                    origin: origin.clone(),
                    input,
                    aggregated,
                    well_since: is_well.then_some(self.now),
                }));
            }
        }
        Ok(None)
    }

    /// Goes on with an alert that was unknown already.
    fn still(&mut self, known: &Unknown, source: &Labels) -> Result<Option<Unknown>, Error> {
        let Some(window) = self.inputs.get(known.input).map(|input| input.window) else {
            return Ok(None);
        };
        let is_down = self.health.has(&known.origin);
        let absence_counts = known.origin.scope == Scope::Part || known.aggregated || !is_down;
        if absence_counts && self.feeds(known.input, &known.origin, known.aggregated, source, self.now)? {
            return Ok(None);
        }
        if is_down {
            return Ok(Some(Unknown {
                well_since: None,
                ..known.clone()
            }));
        }
        let health = self.engine.instant(&known.origin.selector(), self.now, self.deadline)?;
        let is_gone = vector(health.value).is_empty();
        let well_since = known.well_since.unwrap_or(self.now);
        // A scrape or two, and a window's worth of them for a function over a range.
        let patience = window.saturating_add(2 * self.interval);
        if is_gone || self.now - well_since > patience {
            return Ok(None);
        }
        Ok(Some(Unknown {
            well_since: Some(well_since),
            ..known.clone()
        }))
    }

    /// Whether an input has a series of `origin` at `time` that an alert with the labels `source` can stand on.
    fn feeds(
        &mut self,
        input: usize,
        origin: &Origin,
        aggregated: bool,
        source: &Labels,
        time: Millis,
    ) -> Result<bool, Error> {
        let instance = if aggregated { "" } else { origin.instance() };
        let key = (input, instance.to_owned(), time);
        if !self.memory.contains_key(&key) {
            if self.memory.len() >= QUERIES_MAX {
                return Err(Error::Result(
                    "so many targets are down that it cannot be told which alerts stand on them".into(),
                ));
            }
            let expr = self.inputs[input].of_instance(instance);
            let found = vector(self.engine.instant(&expr, time, self.deadline)?.value);
            self.memory.insert(key.clone(), found);
        }
        let found = self.memory.get(&key).map_or(&[][..], Vec::as_slice);
        Ok(found
            .iter()
            .any(|series| origin.may_feed(series) && agree(source, series)))
    }
}

/// Whether no label of the alert's sample says that it was not made of this series.
fn agree(source: &Labels, series: &Labels) -> bool {
    let name = model::METRIC_NAME;
    let mut pairs = source.iter().filter(|(n, _)| *n != name);
    pairs.all(|(n, value)| series.get(n).is_none_or(|theirs| theirs == value))
}

fn was_down(origin: &Origin) -> String {
    let text = origin.describe();
    match text.strip_suffix(" is down") {
        Some(what) => format!("{what} was down"),
        None => text,
    }
}
