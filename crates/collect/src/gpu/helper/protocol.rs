//! What an agent asks of its GPU helper, and what the helper tells.
//!
//! ```text
//! agent  ─ Begin ─► helper     once, first: which library, which GPUs, what to ask them
//!        ─ Round ─►            at a scrape: ask every GPU everything
//!        ◄─ Up | Down ─        the library is loaded, or why not (the helper ends then)
//!        ◄─ Known ─            who a GPU is, when it first tells
//!        ◄─ Samples ─          every sample interval: the quick numbers of all GPUs in one frame, and who is stuck
//!        ◄─ Reading ─          an answer to Round, one frame per GPU, each as soon as it is complete
//!        ◄─ Xid, Events ─      an event of the driver, with the moment the helper saw it; whether such are waited for
//! ```
//!
//! The agent closing its end is the order to leave.

use std::collections::HashMap;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use model::Millis;

use super::wire::{Malformed, Reader, Writer};
use crate::Error;
use crate::gpu::driver::Facts;
use crate::gpu::fault::{Fault, FaultKind};
use crate::gpu::identity::Identity;
use crate::gpu::reading::{Absence, GpuState, Reading};
use crate::gpu::sample::Sample;
use crate::gpu::throttle::Throttle;
use crate::gpu::word;

/// From the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Load the library and begin.
    Begin(Begin),
    /// Ask every GPU everything, for this moment.
    Round(Millis),
}

/// What a helper needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Begin {
    /// The driver's library; `None` for the system's.
    pub library: Option<PathBuf>,
    /// The words that are wanted of the field table.
    pub words: Vec<String>,
    /// The GPUs to speak to.
    pub serves: Serves,
    /// How often the quick numbers are asked, in milliseconds.
    pub sample_ms: u32,
}

/// The GPUs that a helper speaks to. It calls nothing for any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All but these.
    AllBut(Vec<u32>),
    /// Only this one, which has been in trouble.
    Only(u32),
}

impl Serves {
    /// Whether it speaks to this one.
    pub fn has(&self, gpu: u32) -> bool {
        match self {
            Self::AllBut(others) => !others.contains(&gpu),
            Self::Only(one) => *one == gpu,
        }
    }
}

/// From the helper.
#[derive(Debug)]
pub enum Report {
    /// The library is loaded.
    Up(Facts),
    /// It is not, or not any more; the helper ends.
    Down(Fault),
    /// Who a GPU is.
    Known(Identity),
    /// The quick numbers of one moment.
    Samples(Batch),
    /// A GPU's answers to a round, and the moment of the round.
    Reading(Millis, Box<Reading>),
    /// The driver told of an error.
    Xid(XidSeen),
    /// Whether the driver's events are waited for.
    Events(bool),
}

/// What one beat of sampling gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Of GPUs that answered.
    pub samples: Vec<Sample>,
    /// GPUs that answered that they cannot.
    pub failed: Vec<(u32, FaultKind)>,
    /// GPUs of which a call has not returned.
    pub stuck: Vec<Stuck>,
}

/// A call that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The GPU.
    pub gpu: u32,
    /// For how long, in milliseconds.
    pub since_ms: u32,
    /// What was asked.
    pub what: String,
}

/// An event of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XidSeen {
    /// The GPU's address on the bus.
    pub pci_bus_id: String,
    /// The code.
    pub code: u32,
    /// When the helper was told, by the wall clock.
    pub time: Millis,
}

const BEGIN: u8 = 1;
const ROUND: u8 = 2;
const UP: u8 = 16;
const DOWN: u8 = 17;
const KNOWN: u8 = 18;
const SAMPLES: u8 = 19;
const READING: u8 = 20;
const XID: u8 = 21;
const EVENTS: u8 = 22;

/// Bytes of a sample in a frame.
const SAMPLE_BYTES: usize = 29;

impl Request {
    /// The frame; `None` for one too long to send.
    pub fn frame(&self) -> Option<Vec<u8>> {
        match self {
            Self::Begin(begin) => {
                let mut out = Writer::new(BEGIN);
                out.u8(u8::from(begin.library.is_some()));
                let library = begin.library.as_ref().map(|path| path.as_os_str().as_bytes());
                out.bytes(library.unwrap_or_default());
                out.count(begin.words.len());
                begin.words.iter().for_each(|word| out.text(word));
                match &begin.serves {
                    Serves::Only(gpu) => {
                        out.u8(1);
                        out.u32(*gpu);
                    }
                    Serves::AllBut(others) => {
                        out.u8(0);
                        out.count(others.len());
                        others.iter().for_each(|gpu| out.u32(*gpu));
                    }
                }
                out.u32(begin.sample_ms);
                out.finish()
            }
            Self::Round(now) => {
                let mut out = Writer::new(ROUND);
                out.i64(*now);
                out.finish()
            }
        }
    }

    /// Reads kind and body of a frame.
    pub fn read(frame: &[u8]) -> Result<Self, Malformed> {
        let mut body = Reader::new(frame);
        let request = match body.u8()? {
            BEGIN => {
                let has_library = body.u8()? == 1;
                let library = body.bytes()?.to_vec();
                let words = (0..body.count(4)?).map(|_| body.text()).collect::<Result<_, _>>()?;
                let serves = match body.u8()? {
                    1 => Serves::Only(body.u32()?),
                    _ => Serves::AllBut((0..body.count(4)?).map(|_| body.u32()).collect::<Result<_, _>>()?),
                };
                Self::Begin(Begin {
                    library: has_library.then(|| std::ffi::OsString::from_vec(library).into()),
                    words,
                    serves,
                    sample_ms: body.u32()?,
                })
            }
            ROUND => Self::Round(body.i64()?),
            _ => return Err(Malformed),
        };
        body.end()?;
        Ok(request)
    }
}

impl Report {
    /// The frame; `None` for one too long to send.
    pub fn frame(&self) -> Option<Vec<u8>> {
        let mut out = Writer::new(self.kind());
        match self {
            Self::Up(facts) => {
                out.text(&facts.driver_version);
                out.text(&facts.cuda_version);
                out.text(&facts.nvml_version);
                out.u32(facts.gpus);
            }
            Self::Down(fault) => put_fault(&mut out, fault),
            Self::Known(identity) => out.json(identity),
            Self::Samples(batch) => put_batch(&mut out, batch),
            Self::Reading(now, reading) => {
                out.i64(*now);
                put_reading(&mut out, reading);
            }
            Self::Xid(seen) => {
                out.text(&seen.pci_bus_id);
                out.u32(seen.code);
                out.i64(seen.time);
            }
            Self::Events(attached) => out.u8(u8::from(*attached)),
        }
        out.finish()
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Up(_) => UP,
            Self::Down(_) => DOWN,
            Self::Known(_) => KNOWN,
            Self::Samples(_) => SAMPLES,
            Self::Reading(..) => READING,
            Self::Xid(_) => XID,
            Self::Events(_) => EVENTS,
        }
    }

    /// Reads kind and body of a frame.
    pub fn read(frame: &[u8]) -> Result<Self, Malformed> {
        let mut body = Reader::new(frame);
        let report = match body.u8()? {
            UP => Self::Up(Facts {
                driver_version: body.text()?,
                cuda_version: body.text()?,
                nvml_version: body.text()?,
                gpus: body.u32()?,
            }),
            DOWN => Self::Down(fault(&mut body)?),
            KNOWN => Self::Known(body.json()?),
            SAMPLES => Self::Samples(batch(&mut body)?),
            READING => Self::Reading(body.i64()?, Box::new(reading(&mut body)?)),
            XID => Self::Xid(XidSeen {
                pci_bus_id: body.text()?,
                code: body.u32()?,
                time: body.i64()?,
            }),
            EVENTS => Self::Events(body.u8()? == 1),
            _ => return Err(Malformed),
        };
        body.end()?;
        Ok(report)
    }
}

fn put_fault(out: &mut Writer, fault: &Fault) {
    out.u8(fault.kind.code());
    out.text(&fault.text);
}

fn fault(body: &mut Reader<'_>) -> Result<Fault, Malformed> {
    Ok(Fault::new(FaultKind::of_code(body.u8()?), body.text()?))
}

fn put_batch(out: &mut Writer, batch: &Batch) {
    out.count(batch.samples.len());
    for sample in &batch.samples {
        put_sample(out, sample);
    }
    out.count(batch.failed.len());
    for (gpu, kind) in &batch.failed {
        out.u32(*gpu);
        out.u8(kind.code());
    }
    out.count(batch.stuck.len());
    for stuck in &batch.stuck {
        out.u32(stuck.gpu);
        out.u32(stuck.since_ms);
        out.text(&stuck.what);
    }
}

fn batch(body: &mut Reader<'_>) -> Result<Batch, Malformed> {
    let samples = (0..body.count(SAMPLE_BYTES)?)
        .map(|_| sample(body))
        .collect::<Result<_, _>>()?;
    let failed = (0..body.count(5)?)
        .map(|_| Ok((body.u32()?, FaultKind::of_code(body.u8()?))))
        .collect::<Result<_, _>>()?;
    let stuck = (0..body.count(12)?)
        .map(|_| {
            Ok(Stuck {
                gpu: body.u32()?,
                since_ms: body.u32()?,
                what: body.text()?,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Batch { samples, failed, stuck })
}

fn put_sample(out: &mut Writer, sample: &Sample) {
    out.u16(sample.gpu);
    out.i64(sample.time);
    out.u8(sample.known());
    out.u32(sample.power_mw.unwrap_or(0));
    out.u16(sample.temperature.unwrap_or(0).cast_unsigned());
    out.u8(sample.utilization.unwrap_or(0));
    out.u8(sample.memory_utilization.unwrap_or(0));
    out.u16(sample.sm_clock.unwrap_or(0));
    out.u16(sample.memory_clock.unwrap_or(0));
    out.u64(sample.reasons.unwrap_or(0));
}

fn sample(body: &mut Reader<'_>) -> Result<Sample, Malformed> {
    let (gpu, time, known) = (body.u16()?, body.i64()?, body.u8()?);
    let all = Sample {
        gpu,
        time,
        power_mw: Some(body.u32()?),
        temperature: Some(body.u16()?.cast_signed()),
        utilization: Some(body.u8()?),
        memory_utilization: Some(body.u8()?),
        sm_clock: Some(body.u16()?),
        memory_clock: Some(body.u16()?),
        reasons: Some(body.u64()?),
    };
    Ok(all.keep(known))
}

fn put_reading(out: &mut Writer, reading: &Reading) {
    // Numbers go as they are: text would round some of them on the way back.
    out.count(reading.numbers.len());
    for (word, number) in &reading.numbers {
        out.text(word);
        out.f64(*number);
    }
    let errors: Vec<(String, u8, String)> = reading.errors.iter().map(plain).collect();
    out.json(&(
        &reading.identity,
        reading.state,
        &reading.absent,
        &reading.texts,
        &reading.processes,
        &reading.instances,
        errors,
    ));
}

fn reading(body: &mut Reader<'_>) -> Result<Reading, Malformed> {
    let mut numbers = HashMap::new();
    for _ in 0..body.count(12)? {
        let word = word::known(&body.text()?);
        let number = body.f64()?;
        numbers.extend(word.map(|word| (word, number)));
    }
    type Rest = (
        Identity,
        GpuState,
        Vec<(String, Absence)>,
        HashMap<String, String>,
        Option<Vec<crate::gpu::reading::GpuProcess>>,
        Vec<crate::gpu::reading::Instance>,
        Vec<(String, u8, String)>,
    );
    let (identity, state, absent, texts, processes, instances, errors): Rest = body.json()?;
    Ok(Reading {
        identity,
        state,
        numbers,
        absent: absent
            .iter()
            .filter_map(|(w, why)| Some((word::known(w)?, *why)))
            .collect(),
        texts: texts
            .into_iter()
            .filter_map(|(w, text)| Some((word::known(&w)?, text)))
            .collect(),
        processes,
        instances,
        throttle: Throttle::default(),
        errors: errors.into_iter().map(error).collect(),
    })
}

/// An error as what was asked, and the fault.
fn plain(error: &Error) -> (String, u8, String) {
    match error {
        Error::Driver { what, source } => (what.clone(), source.kind.code(), source.text.clone()),
        other => (other.chain(), FaultKind::Other.code(), String::new()),
    }
}

fn error((what, kind, text): (String, u8, String)) -> Error {
    Error::Driver {
        what,
        source: Fault::new(FaultKind::of_code(kind), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        let full = Sample {
            gpu: 7,
            time: 1_796_000_000_123,
            power_mw: Some(700_123),
            temperature: Some(-3),
            utilization: Some(100),
            memory_utilization: Some(0),
            sm_clock: Some(1_980),
            memory_clock: Some(2_619),
            reasons: Some(0x84),
        };
        let bare = Sample {
            gpu: 1,
            time: 5,
            ..Sample::default()
        };
        Batch {
            samples: vec![full, bare],
            failed: vec![(3, FaultKind::GpuLost)],
            stuck: vec![Stuck {
                gpu: 2,
                since_ms: 3_100,
                what: "power_usage".into(),
            }],
        }
    }

    fn full_reading() -> Reading {
        let mut reading = Reading::without(Identity::unknown(4), GpuState::Ok);
        reading.identity.uuid = "GPU-x".into();
        reading.numbers = HashMap::from([("power_usage", 0.1 + 0.2), ("energy_total", 9_007_199_254_740_993.0)]);
        reading.absent = vec![("fan_speed", Absence::Unsupported)];
        reading.processes = Some(Vec::new());
        reading.errors = vec![Error::Driver {
            what: "GPU 4, fan_speed".into(),
            source: Fault::new(FaultKind::Denied, "no permission"),
        }];
        reading
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let begin = |library: Option<&str>, serves| {
            Request::Begin(Begin {
                library: library.map(PathBuf::from),
                words: vec!["temperature".into(), "power_usage".into()],
                serves,
                sample_ms: 1_000,
            })
        };
        for request in [
            begin(None, Serves::AllBut(Vec::new())),
            begin(Some("/x/libnvidia-ml.so.1"), Serves::AllBut(vec![3, 5])),
            begin(Some(""), Serves::Only(7)),
            Request::Round(-1),
        ] {
            let frame = request.frame().expect("short");
            assert_eq!(Request::read(&frame[4..]), Ok(request));
        }
    }

    #[test]
    fn samples_keep_what_is_absent_absent() {
        let frame = Report::Samples(batch()).frame().expect("short");
        let Ok(Report::Samples(got)) = Report::read(&frame[4..]) else {
            panic!("no samples");
        };
        assert_eq!(got, batch());
    }

    #[test]
    fn a_reading_keeps_every_bit_of_its_numbers() {
        let frame = Report::Reading(9, Box::new(full_reading())).frame().expect("short");
        let Ok(Report::Reading(9, got)) = Report::read(&frame[4..]) else {
            panic!("no reading");
        };
        let want = full_reading();
        assert_eq!(got.numbers, want.numbers);
        assert_eq!(
            (got.identity, got.state, got.absent),
            (want.identity, want.state, want.absent)
        );
        assert_eq!(got.errors[0].chain(), "GPU 4, fan_speed: no permission");
        assert_eq!(got.errors[0].state(), crate::State::Denied);
    }

    #[test]
    fn a_frame_cut_or_bent_anywhere_is_refused_or_read_and_never_fails_otherwise() {
        let frames = [
            Report::Samples(batch()).frame(),
            Report::Reading(9, Box::new(full_reading())).frame(),
            Report::Up(Facts::default()).frame(),
        ];
        for frame in frames.into_iter().flatten() {
            let body = &frame[4..];
            for cut in 0..body.len() {
                assert!(Report::read(&body[..cut]).is_err(), "cut at {cut}");
                let mut bent = body.to_vec();
                bent[cut] ^= 0x80;
                let _ = Report::read(&bent);
            }
        }
    }
}
