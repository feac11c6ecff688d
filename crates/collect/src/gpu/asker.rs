//! Asks one GPU everything that is wanted of it, question by question.
//!
//! Only its caller waits when the driver does not answer: a thread by each GPU.

use std::collections::HashMap;

use model::Millis;
use nvml::{Device, GpmSample, Nvml};

use super::driver_error;
use super::identity::{self, Identity};
use super::occupants;
use super::question::{ALWAYS, GPM, QUESTIONS};
use super::reading::{Absence, GpuProcess, GpuState, Instance, Reading};
use super::throttle::Throttle;
use crate::Error;

/// What changes only by hand is asked again after so long, in milliseconds.
const SLOW_MS: Millis = 60_000;

/// Averages over less than this, in milliseconds, are noise.
const GPM_SPAN_MS: Millis = 100;

/// Errors of one round beyond this many say nothing new.
const ERRORS_MAX: usize = 4;

/// What the thread knows of its GPU.
pub struct Asker {
    nvml: Nvml,
    index: u32,
    device: Option<Device>,
    identity: Identity,
    /// Questions that answer a wanted word.
    questions: Vec<usize>,
    /// Metrics of the GPU's own counters that are wanted.
    gpm: Vec<usize>,
    last_sample: Option<(Millis, GpmSample)>,
    gpm_numbers: Vec<(&'static str, f64)>,
    /// Of those the ones that this board has no counters for.
    gpm_absent: Vec<&'static str>,
    /// Answers that are kept for a while.
    slow: Vec<(&'static str, f64)>,
    slow_at: Option<Millis>,
    slow_absent: Vec<(&'static str, Absence)>,
    /// Names of the board, by word.
    texts: HashMap<&'static str, String>,
    /// The newest sample of the processes' utilisation, in the driver's microseconds.
    sampled_us: u64,
    throttle: Throttle,
}

/// What one round found.
#[derive(Default)]
struct Found {
    numbers: HashMap<&'static str, f64>,
    absent: Vec<(&'static str, Absence)>,
    processes: Option<Vec<GpuProcess>>,
    instances: Vec<Instance>,
}

impl Asker {
    /// Of the GPU with this index, to be asked for these words.
    pub fn new(nvml: Nvml, index: u32, words: &[String]) -> Self {
        let wanted = |word: &str| words.iter().any(|w| w == word);
        let is_asked = |words: &[&str]| words.iter().any(|word| wanted(word) || ALWAYS.contains(word));
        Self {
            nvml,
            index,
            device: None,
            identity: Identity::unknown(index),
            questions: (0..QUESTIONS.len()).filter(|i| is_asked(QUESTIONS[*i].words)).collect(),
            gpm: (0..GPM.len()).filter(|i| wanted(GPM[*i].0)).collect(),
            last_sample: None,
            gpm_numbers: Vec::new(),
            gpm_absent: Vec::new(),
            slow: Vec::new(),
            slow_at: None,
            slow_absent: Vec::new(),
            texts: HashMap::new(),
            sampled_us: 0,
            throttle: Throttle::default(),
        }
    }

    /// Looks between rounds at what holds the GPU back.
    pub fn look(&mut self, now: Millis) {
        if let Some(Ok(Some(reasons))) = self.device.as_ref().map(Device::clock_reasons) {
            self.throttle.see(now, reasons);
        }
    }

    /// Asks everything for this moment. `before` is called before each question with its first word: whoever watches over
    /// this thread then knows what a driver that does not return was asked.
    pub fn round(&mut self, now: Millis, before: &mut dyn FnMut(&'static str, Option<&Device>)) -> Reading {
        let mut errors = Vec::new();
        let result = self.ask(now, &mut errors, before);
        self.look(now);
        errors.truncate(ERRORS_MAX);
        let (state, found) = match result {
            Ok(found) if found.numbers.is_empty() && !errors.is_empty() => (GpuState::Failed, Found::default()),
            Ok(found) => (GpuState::Ok, found),
            Err(error) => {
                let state = state_of(&error);
                errors.insert(0, self.error("asked for its readings", error));
                // What is read next must be of the GPU that comes back.
                self.slow_at = None;
                self.last_sample = None;
                self.gpm_numbers.clear();
                (state, Found::default())
            }
        };
        Reading {
            identity: self.identity.clone(),
            state,
            numbers: found.numbers,
            absent: found.absent,
            texts: self.texts.clone(),
            processes: found.processes,
            instances: found.instances,
            throttle: self.throttle.clone(),
            errors,
        }
    }

    /// Asks everything; an error only if the GPU as a whole does not answer.
    fn ask(
        &mut self,
        now: Millis,
        errors: &mut Vec<Error>,
        before: &mut dyn FnMut(&'static str, Option<&Device>),
    ) -> Result<Found, nvml::Error> {
        before("identity", None);
        let device = self.open()?;
        let ask_slow = self.slow_at.is_none_or(|at| (now - at).abs() >= SLOW_MS);
        if ask_slow {
            self.slow.clear();
            self.slow_absent.clear();
            self.slow_at = Some(now);
        }
        let mut found = Found::default();
        for question in self.questions.iter().map(|i| &QUESTIONS[*i]) {
            if question.is_slow && !ask_slow {
                continue;
            }
            before(question.words[0], Some(&device));
            match (question.ask)(&device) {
                Ok(answers) => {
                    let (numbers, absent) = if question.is_slow {
                        (None, &mut self.slow_absent)
                    } else {
                        (Some(&mut found.numbers), &mut found.absent)
                    };
                    let mut answers = answers.into_iter();
                    let each = question.words.iter().map(|word| (*word, answers.next().flatten()));
                    match numbers {
                        Some(numbers) => sort(each, absent, |word, n| {
                            numbers.insert(word, n);
                        }),
                        None => sort(each, absent, |word, n| self.slow.push((word, n))),
                    }
                }
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => {
                    let why = absence_of(&error);
                    found.absent.extend(question.words.iter().map(|word| (*word, why)));
                    errors.push(self.error(question.words[0], error));
                }
            }
        }
        found.numbers.extend(self.slow.iter().copied());
        found.absent.extend(self.slow_absent.iter().copied());
        before("profiling", Some(&device));
        match self.sample(&device, now) {
            Ok(()) => found.numbers.extend(self.gpm_numbers.iter().copied()),
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => errors.push(self.error("profiling", error)),
        }
        let absent = self.gpm_absent.iter().map(|word| (*word, Absence::Unsupported));
        found.absent.extend(absent);
        before("processes", Some(&device));
        match occupants::processes(&device, &mut self.sampled_us) {
            Ok(processes) => found.processes = processes,
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => errors.push(self.error("processes", error)),
        }
        before("instances", Some(&device));
        match occupants::instances(&device) {
            Ok(instances) => found.instances = instances,
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => errors.push(self.error("MIG instances", error)),
        }
        Ok(found)
    }

    /// The GPU, opened and asked who it is if that was not done yet.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or cannot tell.
    pub fn open(&mut self) -> Result<Device, nvml::Error> {
        let device = match &self.device {
            Some(device) => device.clone(),
            None => self.nvml.device(self.index)?,
        };
        if self.device.is_none() || self.identity.uuid.is_empty() {
            self.identity = Identity::read(&device)?;
            self.texts = identity::texts(&device);
            self.device = Some(device.clone());
        }
        Ok(device)
    }

    /// Who the GPU is, as far as it has told.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Averages of the GPU's own counters since the round before.
    fn sample(&mut self, device: &Device, now: Millis) -> Result<(), nvml::Error> {
        if self.gpm.is_empty() {
            return Ok(());
        }
        if let Some((at, _)) = &self.last_sample
            && (0..GPM_SPAN_MS).contains(&(now - at))
        {
            return Ok(());
        }
        self.gpm_numbers.clear();
        let Some(sample) = device.gpm_sample()? else {
            // A board without such counters: not worth another question.
            self.gpm_absent = self.gpm.drain(..).map(|i| GPM[i].0).collect();
            return Ok(());
        };
        if let Some((_, before)) = &self.last_sample {
            let metrics: Vec<_> = self.gpm.iter().map(|i| GPM[*i].1).collect();
            let values = before.metrics_until(&sample, &metrics)?;
            let words = self.gpm.iter().map(|i| GPM[*i].0);
            self.gpm_numbers
                .extend(words.zip(values).filter_map(|(word, n)| Some((word, n?))));
        }
        self.last_sample = Some((now, sample));
        Ok(())
    }

    fn error(&self, what: &str, source: nvml::Error) -> Error {
        driver_error(format!("GPU {} ({}), {what}", self.index, self.identity.uuid), source)
    }
}

/// Puts each answer where it belongs: a number by its word, or the word among the absent.
fn sort(
    answers: impl Iterator<Item = (&'static str, Option<f64>)>,
    absent: &mut Vec<(&'static str, Absence)>,
    mut number: impl FnMut(&'static str, f64),
) {
    for (word, answer) in answers {
        match answer {
            Some(n) => number(word, n),
            None => absent.push((word, Absence::Unsupported)),
        }
    }
}

fn absence_of(error: &nvml::Error) -> Absence {
    match error {
        nvml::Error::NoPermission { .. } => Absence::Denied,
        _ => Absence::Failed,
    }
}

/// Whether the error is of the GPU as a whole.
pub fn is_gone(error: &nvml::Error) -> bool {
    matches!(
        error,
        nvml::Error::GpuLost | nvml::Error::ResetRequired | nvml::Error::NoSuchDevice | nvml::Error::Uninitialized
    )
}

fn state_of(error: &nvml::Error) -> GpuState {
    match error {
        nvml::Error::GpuLost | nvml::Error::NoSuchDevice => GpuState::Lost,
        nvml::Error::ResetRequired => GpuState::ResetRequired,
        nvml::Error::Timeout { .. } => GpuState::Hung,
        _ => GpuState::Failed,
    }
}
