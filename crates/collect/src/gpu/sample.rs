//! What a GPU is asked every second: a few numbers that change quickly.

use model::Millis;
use nvml::{ClockType, Device, Error};

/// The quick numbers of one GPU at one moment. What the board does not tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// The driver's index of the GPU.
    pub gpu: u16,
    /// When the GPU had answered, by the wall clock.
    pub time: Millis,
    /// Power, in milliwatts.
    pub power_mw: Option<u32>,
    /// Core temperature, in degrees Celsius.
    pub temperature: Option<i16>,
    /// Share of time with work on the GPU, in percent.
    pub utilization: Option<u8>,
    /// Share of time with traffic to its memory, in percent.
    pub memory_utilization: Option<u8>,
    /// Clock of the multiprocessors, in MHz.
    pub sm_clock: Option<u16>,
    /// Clock of the memory, in MHz.
    pub memory_clock: Option<u16>,
    /// Why the clocks are as they are: the driver's bits.
    pub reasons: Option<u64>,
}

impl Sample {
    /// Asks the GPU; the time is the caller's to set. `before` is called with the name of what is asked next.
    ///
    /// # Errors
    ///
    /// Only where the GPU as a whole does not answer; a number that it refuses is absent.
    pub fn take(device: &Device, mut before: impl FnMut(&'static str)) -> Result<Self, Error> {
        let mut ask = |what| before(what);
        ask("power_usage");
        let power = known(device.power_usage())?;
        ask("temperature");
        let temperature = known(device.temperature())?;
        ask("utilization_gpu");
        let busy = known(device.utilization())?;
        ask("clock_sm");
        let sm_clock = known(device.clock(ClockType::Sm))?;
        ask("clock_memory");
        let memory_clock = known(device.clock(ClockType::Memory))?;
        ask("clock_reasons");
        let reasons = known(device.clock_reasons())?;
        let percent = |share: u32| u8::try_from(share).ok();
        Ok(Self {
            gpu: u16::try_from(device.index()).unwrap_or(u16::MAX),
            time: 0,
            power_mw: power,
            temperature: temperature.and_then(|t| i16::try_from(t).ok()),
            utilization: busy.and_then(|b| b.gpu).and_then(percent),
            memory_utilization: busy.and_then(|b| b.memory).and_then(percent),
            sm_clock: sm_clock.and_then(|c| u16::try_from(c).ok()),
            memory_clock: memory_clock.and_then(|c| u16::try_from(c).ok()),
            reasons: reasons.map(|r| r.0),
        })
    }
}

impl Sample {
    /// Which numbers are there, a bit for each in their order.
    pub fn known(&self) -> u8 {
        let is_some = [
            self.power_mw.is_some(),
            self.temperature.is_some(),
            self.utilization.is_some(),
            self.memory_utilization.is_some(),
            self.sm_clock.is_some(),
            self.memory_clock.is_some(),
            self.reasons.is_some(),
        ];
        is_some.iter().rev().fold(0, |bits, there| bits << 1 | u8::from(*there))
    }

    /// The same with only the numbers of these bits.
    #[must_use]
    pub fn keep(self, bits: u8) -> Self {
        let has = |bit: u8| bits >> bit & 1 == 1;
        Self {
            power_mw: self.power_mw.filter(|_| has(0)),
            temperature: self.temperature.filter(|_| has(1)),
            utilization: self.utilization.filter(|_| has(2)),
            memory_utilization: self.memory_utilization.filter(|_| has(3)),
            sm_clock: self.sm_clock.filter(|_| has(4)),
            memory_clock: self.memory_clock.filter(|_| has(5)),
            reasons: self.reasons.filter(|_| has(6)),
            ..self
        }
    }
}

/// The answer, or none where only this question failed.
fn known<T>(answer: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(error) if super::asker::is_gone(&error) => Err(error),
        answer => Ok(answer.ok().flatten()),
    }
}
