//! How nvidia-smi says what NVML says, from `data/nvidia_smi.yml`.

use serde::Deserialize;

use super::value::{Measure, Missing, number};
use crate::gpu::reading::{Absence, GpuState, Reading};
use crate::gpu::{identity::Identity, question};
use crate::source::to_f64;
use crate::{Error, State};

/// The table that comes with the program.
const DIALECT: &str = include_str!("../../../../../data/nvidia_smi.yml");

const FILE: &str = "nvidia_smi.yml";

/// The whole table.
#[derive(Debug)]
pub struct Dialect {
    pub words: Vec<Word>,
    pub reasons: Vec<Reason>,
    pub texts: Vec<TextWord>,
    pub complaints: Vec<ComplaintRow>,
    exit_codes: Vec<ExitCode>,
}

/// A number of a GPU.
#[derive(Debug)]
pub struct Word {
    /// The word of the question.
    pub word: &'static str,
    pub measure: Measure,
    /// Alternatives, each a sum of paths.
    pub xml: Vec<Sum>,
    pub text: Vec<Sum>,
    pub query: Vec<String>,
}

/// Paths whose numbers are added.
pub type Sum = Vec<Vec<String>>;

/// A bit of the clock reasons.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    pub mask: u64,
    pub name: String,
    pub text: String,
}

/// A name of a GPU.
#[derive(Debug)]
pub struct TextWord {
    pub word: &'static str,
    pub xml: Vec<String>,
    pub text: Vec<String>,
    pub query: Vec<String>,
}

/// A line that says something went wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComplaintRow {
    /// All of these stand in the line.
    pub says: Vec<String>,
    pub state: String,
    pub collector: StateWord,
    pub gpu: Option<GpuWord>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExitCode {
    code: i32,
    state: String,
    collector: StateWord,
}

/// How it stands with the collector.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateWord {
    Present,
    Unsupported,
    Denied,
    Absent,
    Hung,
}

/// How it stands with a GPU.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuWord {
    Ok,
    Lost,
    ResetRequired,
    Failed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    words: Vec<WordRow>,
    reasons: Vec<Reason>,
    texts: Vec<TextRow>,
    complaints: Vec<ComplaintRow>,
    exit_codes: Vec<ExitCode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordRow {
    word: String,
    #[serde(rename = "as")]
    measure: Measure,
    xml: Vec<String>,
    text: Vec<String>,
    query: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextRow {
    word: String,
    xml: String,
    text: String,
    query: Vec<String>,
}

impl From<StateWord> for State {
    fn from(word: StateWord) -> Self {
        match word {
            StateWord::Present => Self::Present,
            StateWord::Unsupported => Self::Unsupported,
            StateWord::Denied => Self::Denied,
            StateWord::Absent => Self::Absent,
            StateWord::Hung => Self::Hung,
        }
    }
}

impl From<GpuWord> for GpuState {
    fn from(word: GpuWord) -> Self {
        match word {
            GpuWord::Ok => Self::Ok,
            GpuWord::Lost => Self::Lost,
            GpuWord::ResetRequired => Self::ResetRequired,
            GpuWord::Failed => Self::Failed,
        }
    }
}

impl Dialect {
    /// The table that comes with the program.
    ///
    /// # Errors
    ///
    /// [`Error::Data`]; a test keeps that from being shipped.
    pub fn embedded() -> Result<Self, Error> {
        let data = |message: String| Error::Data { file: FILE, message };
        let table: Table = serde_saphyr::from_str(DIALECT).map_err(|err| data(err.to_string()))?;
        let known = |word: &str| question::word(word).ok_or_else(|| data(format!("nobody asks for {word:?}")));
        let words = table.words.into_iter().map(|row| {
            Ok(Word {
                word: known(&row.word)?,
                measure: row.measure,
                xml: row.xml.iter().map(|text| sum(text)).collect(),
                text: row.text.iter().map(|text| sum(text)).collect(),
                query: row.query,
            })
        });
        let texts = table.texts.into_iter().map(|row| {
            Ok(TextWord {
                word: known(&row.word)?,
                xml: path(&row.xml),
                text: path(&row.text),
                query: row.query,
            })
        });
        Ok(Self {
            words: words.collect::<Result<_, Error>>()?,
            texts: texts.collect::<Result<_, Error>>()?,
            reasons: table.reasons,
            complaints: table.complaints,
            exit_codes: table.exit_codes,
        })
    }

    /// What an exit code means, as state and collector's state.
    #[must_use]
    pub fn exit_code(&self, code: i32) -> Option<(&str, State)> {
        let row = self.exit_codes.iter().find(|row| row.code == code)?;
        Some((&row.state, row.collector.into()))
    }
}

fn sum(text: &str) -> Sum {
    text.split(" + ").map(path).collect()
}

fn path(text: &str) -> Vec<String> {
    text.split('/').map(|part| part.trim().to_owned()).collect()
}

/// A reading that is being put together.
pub struct Draft {
    pub reading: Reading,
    gone: Option<GpuState>,
}

impl Draft {
    pub fn new(index: u32) -> Self {
        Self {
            reading: Reading::without(Identity::unknown(index), GpuState::Ok),
            gone: None,
        }
    }

    /// Takes note of a word's alternatives: the first number, else the first reason.
    pub fn number(&mut self, word: &'static str, alternatives: impl Iterator<Item = Result<f64, Missing>>) {
        let mut why = None;
        for alternative in alternatives {
            match alternative {
                Ok(number) => {
                    self.reading.numbers.insert(word, number);
                    return;
                }
                Err(Missing::Absent(absence)) => {
                    // That one way of speaking lacks it says less than that another failed.
                    if why.is_none() || why == Some(Absence::Unsupported) {
                        why = Some(absence);
                    }
                }
                Err(Missing::Gone(state)) => {
                    self.gone = Some(state);
                    return;
                }
            }
        }
        if let Some(why) = why {
            self.reading.absent.push((word, why));
        }
    }

    /// Takes note of a name; what says that there is none is none.
    pub fn text(&mut self, word: &'static str, text: &str) {
        let text = text.trim();
        match super::value::missing(text) {
            Some(Missing::Gone(state)) => self.gone = Some(state),
            Some(Missing::Absent(_)) => {}
            None => {
                let text = text.to_owned();
                let who = &mut self.reading.identity;
                match word {
                    "model" => who.model = text,
                    "uuid" => who.uuid = text,
                    "pci_bus_id" => who.pci_bus_id = bus_id(&text),
                    _ => {
                        if word == "serial" {
                            who.serial.clone_from(&text);
                        } else if word == "vbios_version" {
                            who.vbios.clone_from(&text);
                        }
                        self.reading.texts.insert(word, text);
                    }
                }
            }
        }
    }

    /// Something said that the GPU as a whole does not answer.
    pub fn gone(&mut self, state: GpuState) {
        self.gone = Some(state);
    }

    /// Takes note of reasons told one by one, unless the set of bits was told: `Active`, `Not Active`.
    pub fn reasons<'a>(&mut self, reasons: impl Iterator<Item = (u64, Option<&'a str>)>) {
        const WORD: &str = "clock_reasons";
        if self.reading.numbers.contains_key(WORD) {
            return;
        }
        let mut bits = None;
        let mut why = None;
        for (mask, text) in reasons {
            match text.map(|text| number(text, "", Measure::Bool)) {
                Some(Ok(flag)) => *bits.get_or_insert(0) |= if flag > 0.0 { mask } else { 0 },
                Some(Err(missing)) => why = Some(missing),
                None => {}
            }
        }
        let told = bits.map(|bits| Ok(to_f64(bits))).or(why.map(Err));
        self.number(WORD, told.into_iter());
    }

    /// The reading; without numbers if the GPU as a whole does not answer.
    pub fn finish(self) -> Reading {
        let mut reading = match self.gone {
            Some(state) => Reading::without(self.reading.identity, state),
            None => self.reading,
        };
        let failed = |(_, why): &(&str, Absence)| *why == Absence::Failed;
        if reading.state == GpuState::Ok && reading.numbers.is_empty() && reading.absent.iter().any(failed) {
            reading.state = GpuState::Failed;
        }
        reading
    }
}

/// `00000000:3B:00.0`, as NVML writes it, of any form; the text itself where it is no address.
pub fn bus_id(text: &str) -> String {
    let text = text.trim();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() < 8 && rest.contains(':') => format!("{domain:0>8}:{rest}").to_uppercase(),
        _ => text.to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_table_speaks_of_words_that_are_asked() {
        let dialect = Dialect::embedded().expect("our own table");
        assert!(dialect.words.len() > 60);
        assert_eq!(dialect.exit_code(9), Some(("driver_not_loaded", State::Absent)));
    }

    #[test]
    fn an_address_has_eight_digits_of_domain() {
        assert_eq!(bus_id("0000:3b:00.0"), "00000000:3B:00.0");
        assert_eq!(bus_id("00000000:3B:00.0"), "00000000:3B:00.0");
        assert_eq!(bus_id("3B:00.0"), "3B:00.0");
    }
}
