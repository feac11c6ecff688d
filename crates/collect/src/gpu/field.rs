//! The table of GPU metrics, from `data/gpu_fields.yml`.

use model::Kind;
use serde::Deserialize;

use super::question;
use crate::Error;

/// The table that comes with the program; a user's file of the same name takes its place.
pub const FIELDS: &str = include_str!("../../../../data/gpu_fields.yml");

const FILE: &str = "gpu_fields.yml";

/// Which metrics are shown, and where each comes from.
#[derive(Debug, Clone)]
pub struct FieldTable {
    pub(super) fields: Vec<Field>,
}

/// One metric.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub name: String,
    pub help: String,
    pub kind: Kind,
    /// The word of the question.
    pub source: String,
    times: f64,
    divided_by: f64,
    whole: bool,
    show: Show,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Show {
    Default,
    Extra,
    Asked,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    fields: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    /// For readers of the table, and for the catalogue of units.
    #[serde(rename = "unit")]
    _unit: String,
    kind: KindWord,
    show: Show,
    source: String,
    #[serde(default = "one")]
    times: f64,
    #[serde(default = "one")]
    divided_by: f64,
    #[serde(default)]
    whole: bool,
    help: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindWord {
    Gauge,
    Counter,
}

const fn one() -> f64 {
    1.0
}

impl FieldTable {
    /// Reads a table, [`FIELDS`] or a user's.
    ///
    /// # Errors
    ///
    /// [`Error::Data`] with place and cause: a form that is wrong, a source that nobody answers, a name twice.
    pub fn new(table: &str) -> Result<Self, Error> {
        let data = |message: String| Error::Data { file: FILE, message };
        let table: Table = serde_saphyr::from_str(table).map_err(|err| data(err.to_string()))?;
        let mut fields: Vec<Field> = Vec::with_capacity(table.fields.len());
        for row in table.fields {
            if !question::is_known(&row.source) {
                return Err(data(format!("{}: there is no source {:?}", row.name, row.source)));
            }
            if fields.iter().any(|field| field.name == row.name) {
                return Err(data(format!("{} is there twice", row.name)));
            }
            if row.divided_by == 0.0 || !row.divided_by.is_finite() || !row.times.is_finite() {
                return Err(data(format!("{}: a factor is no usable number", row.name)));
            }
            fields.push(Field {
                kind: match row.kind {
                    KindWord::Gauge => Kind::Gauge,
                    KindWord::Counter => Kind::Counter,
                },
                name: row.name,
                help: row.help,
                source: row.source,
                times: row.times,
                divided_by: row.divided_by,
                whole: row.whole,
                show: row.show,
            });
        }
        Ok(Self { fields })
    }

    /// Only what dcgm-exporter shows by default.
    #[must_use]
    pub fn only_default(mut self) -> Self {
        self.fields.retain(|field| field.show == Show::Default);
        self
    }

    /// The words of the questions behind the table.
    pub(super) fn words(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.source.clone()).collect()
    }

    /// Without what is shown only when asked for.
    #[must_use]
    pub fn usual(mut self) -> Self {
        self.fields.retain(|field| field.show != Show::Asked);
        self
    }
}

impl Field {
    /// The value for the driver's number.
    pub fn value(&self, number: f64) -> f64 {
        let value = number * self.times / self.divided_by;
        if self.whole { value.floor() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_table_has_the_exporters_25_and_more() {
        let table = FieldTable::new(FIELDS).expect("our own table");
        assert_eq!(table.clone().only_default().fields.len(), 25);
        assert!(table.clone().usual().fields.len() > 60);
        assert!(table.fields.len() > table.usual().fields.len());
    }

    #[test]
    fn a_wrong_table_is_refused() {
        let row = "{ name: A, unit: x, kind: gauge, show: extra, source: temperature, help: h }";
        assert!(FieldTable::new(&format!("fields: [{row}]")).is_ok());
        for wrong in [
            format!("fields: [{row}, {row}]"),
            format!("fields: [{}]", row.replace("temperature", "nonsense")),
            format!("fields: [{}]", row.replace("help: h", "help: h, divided_by: 0")),
            format!("fields: [{}]", row.replace("gauge", "histogram")),
        ] {
            assert!(FieldTable::new(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_scaled_and_cut() {
        let table = FieldTable::new(FIELDS).expect("our own table");
        let value = |name: &str, number: f64| table.fields.iter().find(|f| f.name == name).map(|f| f.value(number));
        assert_eq!(value("DCGM_FI_DEV_POWER_USAGE", 129_128.0), Some(129.128));
        assert_eq!(value("DCGM_FI_DEV_FB_USED", 1_048_576.0 * 2.0 + 5.0), Some(2.0));
        assert_eq!(value("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 50.0), Some(0.5));
    }
}
