//! The table of GPU metrics, from `data/gpu_fields.yml`, and the names that DCGM has beyond it.

use std::collections::BTreeMap;

use model::Kind;
use serde::Deserialize;

use super::names::Generation;
use super::question;
use crate::Error;

/// The table that comes with the program; a user's file of the same name takes its place.
pub const FIELDS: &str = include_str!("../../../../data/gpu_fields.yml");

/// The names of DCGM that are not in it, with the reasons.
const OTHERS: &str = include_str!("../../../../data/gpu_fields_other.yml");

const FILE: &str = "gpu_fields.yml";

/// Every metric that can be shown, and where each comes from.
#[derive(Debug, Clone)]
pub struct FieldTable {
    /// In the order of the page.
    pub fields: Vec<Field>,
    /// What a counter list may ask for as a label.
    pub labels: Vec<LabelField>,
    /// Fields that may have a name from 4.9 on that no public text tells.
    pub unconfirmed: Vec<String>,
    others: BTreeMap<String, String>,
}

/// One metric.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name up to 4.8.
    pub name: String,
    /// The name in the list for dashboards of version 1; further names in the same unit.
    pub aliases: Vec<String>,
    /// The name from 4.9 on; the same where it was not renamed.
    pub new: String,
    /// What a value under the old name is multiplied with to give that under the new one.
    pub factor: Factor,
    /// What the value counts, under the old name and under the new.
    pub units: (String, String),
    /// One sentence, under the old name.
    pub help: String,
    /// The type.
    pub kind: Kind,
    /// The word of the question.
    pub source: String,
    /// Where NVML has it.
    pub nvml: String,
    /// Whether the driver counts and the exporter shows the rate.
    pub is_rate: bool,
    /// Whether it is shown unasked.
    pub show: Show,
    times: f64,
    divided_by: f64,
    whole: bool,
}

/// Something that names a GPU, as a label.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelField {
    /// The name up to 4.8.
    pub name: String,
    /// The name from 4.9 on; the same where absent.
    pub new: Option<String>,
    /// The word.
    pub source: String,
    /// Where NVML has it.
    pub nvml: String,
}

/// Whether a metric is shown unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// As the exporter does without a list.
    Default,
    /// Though the exporter's list comments it out or lacks it.
    Extra,
    /// Only when a counter list asks.
    Asked,
}

/// A ratio that stays exact: `1000000`, `1/100`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// Above the line.
    pub times: f64,
    /// Below it.
    pub divided_by: f64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
pub enum Meaning<'a> {
    /// A metric, under a name of this generation.
    Metric(&'a Field, Generation),
    /// A label.
    Label(&'a LabelField),
    /// A field of DCGM that is not shown, and why.
    Other(&'a str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    fields: Vec<Row>,
    #[serde(default)]
    labels: Vec<LabelField>,
    #[serde(default)]
    unconfirmed: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    legacy: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    new: Option<String>,
    factor: Option<FactorText>,
    unit: String,
    new_unit: Option<String>,
    kind: KindWord,
    show: Show,
    source: String,
    #[serde(default)]
    nvml: String,
    #[serde(default = "one")]
    times: f64,
    #[serde(default = "one")]
    divided_by: f64,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    rate: bool,
    help: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FactorText {
    Number(f64),
    Text(String),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindWord {
    Gauge,
    Counter,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Others {
    exporter: Vec<ExporterCounter>,
    other: Vec<OtherNames>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExporterCounter {
    name: String,
    instead: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherNames {
    reason: String,
    names: String,
}

const fn one() -> f64 {
    1.0
}

fn data(message: String) -> Error {
    Error::Data { file: FILE, message }
}

impl FieldTable {
    /// Reads a table, [`FIELDS`] or a user's.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] with place and cause: a form that is wrong, a source that nobody answers, a name twice.
    pub fn new(table: &str) -> Result<Self, Error> {
        let table: Table = serde_saphyr::from_str(table).map_err(|err| data(err.to_string()))?;
        let fields = table
            .fields
            .into_iter()
            .map(Field::new)
            .collect::<Result<Vec<_>, _>>()?;
        let mut known = std::collections::BTreeSet::new();
        let all = fields.iter().flat_map(Field::names);
        for name in all.chain(table.labels.iter().map(|label| label.name.as_str())) {
            if !known.insert(name) {
                return Err(data(format!("{name} is there twice")));
            }
        }
        if let Some(label) = table
            .labels
            .iter()
            .find(|label| question::word(&label.source).is_none())
        {
            return Err(data(format!("{}: there is no source {:?}", label.name, label.source)));
        }
        let others: Others = serde_saphyr::from_str(OTHERS).map_err(|err| data(err.to_string()))?;
        let own = others
            .exporter
            .into_iter()
            .map(|c| (c.name, format!("counted by the exporter itself; here: {}", c.instead)));
        let other = others.other.iter().flat_map(|group| {
            group
                .names
                .split_whitespace()
                .map(|n| (n.to_owned(), group.reason.clone()))
        });
        Ok(Self {
            others: own.chain(other).collect(),
            fields,
            labels: table.labels,
            unconfirmed: table.unconfirmed,
        })
    }

    /// What a name of any generation stands for; `None` where DCGM has no such field.
    #[must_use]
    pub fn meaning(&self, name: &str) -> Option<Meaning<'_>> {
        let is_old = |field: &&Field| field.name == name || field.aliases.iter().any(|alias| alias == name);
        if let Some(field) = self.fields.iter().find(is_old) {
            return Some(Meaning::Metric(field, Generation::Old));
        }
        if let Some(field) = self.fields.iter().find(|field| field.new == name) {
            return Some(Meaning::Metric(field, Generation::New));
        }
        let is_label = |label: &&LabelField| label.name == name || label.new.as_deref() == Some(name);
        if let Some(label) = self.labels.iter().find(is_label) {
            return Some(Meaning::Label(label));
        }
        self.others.get(name).map(|reason| Meaning::Other(reason))
    }
}

impl Field {
    fn new(row: Row) -> Result<Self, Error> {
        if !question::is_known(&row.source) {
            return Err(data(format!("{}: there is no source {:?}", row.name, row.source)));
        }
        let factor = row.factor.map_or(Some(Factor::ONE), |text| Factor::parse(&text));
        let is_usable = |n: f64| n.is_finite() && n != 0.0;
        let Some(factor) = factor.filter(|_| is_usable(row.times) && is_usable(row.divided_by)) else {
            return Err(data(format!("{}: a factor is no usable number", row.name)));
        };
        let new_unit = row.new_unit.unwrap_or_else(|| row.unit.clone());
        Ok(Self {
            kind: match row.kind {
                KindWord::Gauge => Kind::Gauge,
                KindWord::Counter => Kind::Counter,
            },
            new: row.new.unwrap_or_else(|| row.name.clone()),
            aliases: row.legacy.into_iter().chain(row.also).collect(),
            name: row.name,
            factor,
            units: (row.unit, new_unit),
            help: row.help,
            source: row.source,
            nvml: row.nvml,
            is_rate: row.rate,
            show: row.show,
            times: row.times,
            divided_by: row.divided_by,
            whole: row.whole,
        })
    }

    /// All its names, the one of its first generation first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let new = (self.new != self.name).then_some(self.new.as_str());
        std::iter::once(self.name.as_str())
            .chain(self.aliases.iter().map(String::as_str))
            .chain(new)
    }

    /// The value for the driver's number, under the name of this generation.
    #[must_use]
    pub fn value(&self, number: f64, generation: Generation) -> f64 {
        let value = number * self.times / self.divided_by;
        match generation {
            Generation::Old if self.whole => value.floor(),
            Generation::Old => value,
            Generation::New => value * self.factor.times / self.factor.divided_by,
        }
    }

    /// The help under the name of this generation: its unit is the one that the value is in.
    #[must_use]
    pub fn help(&self, generation: Generation) -> String {
        if generation == Generation::Old || self.factor == Factor::ONE {
            return self.help.clone();
        }
        let old = if self.units.0 == "percent" { "%" } else { &self.units.0 };
        let new = match self.units.1.as_str() {
            "B" => "(in bytes)".to_owned(),
            "ratio" => "(0 to 1)".to_owned(),
            unit => format!("(in {unit})"),
        };
        self.help.replace(&format!("(in {old})"), &new)
    }
}

impl Factor {
    const ONE: Self = Self {
        times: 1.0,
        divided_by: 1.0,
    };

    fn parse(text: &FactorText) -> Option<Self> {
        let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n != 0.0);
        match text {
            FactorText::Number(times) => (times.is_finite() && *times != 0.0).then_some(Self {
                times: *times,
                divided_by: 1.0,
            }),
            FactorText::Text(text) => {
                let (times, divided_by) = text.split_once('/').unwrap_or((text, "1"));
                Some(Self {
                    times: number(times)?,
                    divided_by: number(divided_by)?,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FieldTable {
        FieldTable::new(FIELDS).expect("our own table")
    }

    #[test]
    fn our_table_has_the_exporters_25_and_more() {
        let count = |show: Show| table().fields.iter().filter(|f| f.show == show).count();
        assert_eq!(count(Show::Default), 25);
        assert!(count(Show::Extra) > 35 && count(Show::Asked) > 20);
    }

    #[test]
    fn a_wrong_table_is_refused() {
        let row = "{ name: A, unit: x, kind: gauge, show: extra, source: temperature, help: h }";
        assert!(FieldTable::new(&format!("fields: [{row}]")).is_ok());
        for wrong in [
            format!("fields: [{row}, {row}]"),
            format!("fields: [{}]", row.replace("temperature", "nonsense")),
            format!("fields: [{}]", row.replace("help: h", "help: h, divided_by: 0")),
            format!("fields: [{}]", row.replace("help: h", "help: h, factor: 1/0")),
            format!("fields: [{}]", row.replace("gauge", "histogram")),
        ] {
            assert!(FieldTable::new(&wrong).is_err(), "{wrong}");
        }
    }

    #[track_caller]
    fn check(name: &str, number: f64, want: f64) {
        let table = table();
        let Some(Meaning::Metric(field, generation)) = table.meaning(name) else {
            panic!("{name} is no metric");
        };
        assert!(
            (field.value(number, generation) - want).abs() < 1e-9 * want.abs().max(1.0),
            "{name}"
        );
    }

    #[test]
    fn values_are_scaled_and_cut_in_the_old_generation_and_in_base_units_in_the_new() {
        check("DCGM_FI_DEV_POWER_USAGE", 129_128.0, 129.128);
        check("DCGM_FI_DEV_BOARD_POWER_WATTS", 129_128.0, 129.128);
        check("DCGM_FI_DEV_FB_USED", 2_097_157.0, 2.0);
        check("dcgm_fb_used", 2_097_157.0, 2.0);
        check("DCGM_FI_DEV_FB_USED_BYTES", 2_097_157.0, 2_097_157.0);
        check("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1980.0, 1.98e9);
        check("DCGM_FI_DEV_GPU_UTIL_RATIO", 37.0, 0.37);
        check("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 5_000.0, 5.0);
        check("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 50.0, 0.5);
        check("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 50.0, 0.5);
    }

    #[test]
    fn the_new_generation_renames_23_default_fields_and_changes_the_unit_of_11() {
        let table = table();
        let of_default = || table.fields.iter().filter(|f| f.show == Show::Default);
        let renamed = of_default().filter(|f| f.new != f.name).count();
        let driver_label = table
            .labels
            .iter()
            .filter(|l| l.source == "driver_version" && l.new.is_some());
        assert_eq!(renamed + driver_label.count(), 23);
        assert_eq!(of_default().filter(|f| f.units.0 != f.units.1).count(), 11);
        for field in &table.fields {
            assert_eq!(
                field.units.0 == field.units.1,
                field.factor == Factor::ONE,
                "{}",
                field.name
            );
        }
    }

    #[test]
    fn a_help_names_the_unit_of_its_generation() {
        let table = table();
        let help = |name: &str| match table.meaning(name) {
            Some(Meaning::Metric(field, generation)) => field.help(generation),
            other => panic!("{other:?}"),
        };
        assert_eq!(help("DCGM_FI_DEV_SM_CLOCK"), "SM clock frequency (in MHz).");
        assert_eq!(help("DCGM_FI_DEV_SM_CLOCK_HERTZ"), "SM clock frequency (in Hz).");
        assert_eq!(help("DCGM_FI_DEV_GPU_UTIL_RATIO"), "GPU utilization (0 to 1).");
        assert_eq!(help("DCGM_FI_DEV_FB_FREE_BYTES"), "Framebuffer memory free (in bytes).");
    }

    #[test]
    fn what_is_not_shown_has_a_reason_and_what_dcgm_lacks_has_no_meaning() {
        let table = table();
        assert!(matches!(
            table.meaning("DCGM_FI_DEV_ECC_SBE_VOL_L1"),
            Some(Meaning::Other(_))
        ));
        assert!(matches!(
            table.meaning("DCGM_EXP_XID_ERRORS_COUNT"),
            Some(Meaning::Other(_))
        ));
        assert!(matches!(table.meaning("DCGM_FI_DEV_SERIAL"), Some(Meaning::Label(_))));
        assert!(table.meaning("DCGM_FI_DEV_GPU_TEMPERATURE").is_none());
    }
}
