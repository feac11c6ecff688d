//! What is known of exporters before looking at any page: types, units, limits, what a default list leaves out, renames.
//!
//! The tables are `data/exporters/*.yml`, part of the binary. A fact never stands against the evidence: a value outside
//! the range that a fact names puts the fact aside for that metric.

use config::yaml::{Fields, Float, Node, Result as Read};
use hashbrown::HashMap;
use model::Kind;

use crate::error::Error;
use crate::interval::Interval;

/// The shipped tables: name and text.
const SHIPPED: &[(&str, &str)] = &[
    ("units.yml", include_str!("../../../data/exporters/units.yml")),
    (
        "dcgm-exporter.yml",
        include_str!("../../../data/exporters/dcgm-exporter.yml"),
    ),
    (
        "node_exporter.yml",
        include_str!("../../../data/exporters/node_exporter.yml"),
    ),
    ("watchfire.yml", include_str!("../../../data/exporters/watchfire.yml")),
    ("chassis.yml", include_str!("../../../data/exporters/chassis.yml")),
    ("containers.yml", include_str!("../../../data/exporters/containers.yml")),
    ("serving.yml", include_str!("../../../data/exporters/serving.yml")),
    ("others.yml", include_str!("../../../data/exporters/others.yml")),
];

/// What values a unit allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The words for people: `a percentage, 0 to 100`.
    pub words: String,
    /// The values.
    pub range: Interval,
    /// Whether only whole numbers occur.
    pub whole: bool,
}

/// A metric of an exporter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricFact {
    /// Its type, where known.
    pub kind: Option<Kind>,
    /// The name of its unit in `units.yml`.
    pub unit: Option<String>,
    /// Why a page of the exporter may lack it: `commented out in the exporter's default list`.
    pub absent: Option<String>,
    /// What to do where it is absent.
    pub mend: Option<String>,
    /// Its names in later or other versions.
    pub renamed: Vec<Rename>,
    /// The greatest rate per second of one series: 1 for seconds of one clock.
    pub rate_max: Option<f64>,
    /// The metric that it is a part of, so that their quotient is 0 to 1.
    pub part_of: Option<String>,
    /// The metrics of the same device, joined by `+`, that limit it, and how many times their sum it may reach.
    pub limit: Option<(String, f64)>,
    /// The label that holds the value, so that each series is constant.
    pub value_label: Option<String>,
    /// It comes into being with its first event: absence is no sign of anything.
    pub on_event: bool,
}

/// A later name.
#[derive(Debug, Clone, PartialEq)]
pub struct Rename {
    /// The name.
    pub to: String,
    /// Since when: `dcgm-exporter 4.9.0`.
    pub since: String,
    /// What the new value is, if it changed: `hertz instead of MHz, 1000000 times the number`.
    pub change: String,
}

/// An exporter.
#[derive(Debug, Clone, PartialEq)]
struct Exporter {
    name: String,
    /// Our collector of the same series, whose state says why they are missing.
    collector: Option<String>,
    /// Longest first.
    prefixes: Vec<Prefix>,
}

#[derive(Debug, Clone, PartialEq)]
struct Prefix {
    text: String,
    /// Said of a metric of this prefix that is absent.
    absent: Option<String>,
    mend: Option<String>,
}

/// Every table.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    units: HashMap<String, Unit>,
    metrics: HashMap<String, MetricFact>,
    exporters: Vec<Exporter>,
    /// Label values that are a closed set: label, metric prefixes, values.
    closed: Vec<(String, Vec<String>, Vec<String>)>,
    /// Wrong names that people use, and what was meant.
    misnamed: HashMap<String, String>,
}

/// What is known of the maker of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Maker<'a> {
    /// The exporter's name.
    pub exporter: &'a str,
    /// Our collector of the same series.
    pub collector: Option<&'a str>,
    /// Why metrics of this prefix are mostly absent.
    pub absent: Option<&'a str>,
    /// What to do about it.
    pub mend: Option<&'a str>,
}

impl Facts {
    /// The tables that this program carries.
    ///
    /// # Errors
    ///
    /// A table is wrong; a test keeps that from being shipped.
    pub fn shipped() -> Result<Self, Error> {
        let mut facts = Self::default();
        for (name, text) in SHIPPED {
            facts.add(name, text)?;
        }
        Ok(facts)
    }

    /// Adds a table; what it says of a metric stands in for what an earlier one said.
    ///
    /// # Errors
    ///
    /// The text is not such a table: file, line and caret.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.read(text)
            .map_err(|fault| Error::Facts(config::Error::at(name, text, &fault)))
    }

    /// What is known of a metric by its exact name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&MetricFact> {
        self.metrics.get(name)
    }

    /// The unit of a metric: by its own fact, else by the end of its name.
    #[must_use]
    pub fn unit(&self, name: &str) -> Option<&Unit> {
        if let Some(fact) = self.metric(name) {
            return self.units.get(fact.unit.as_ref()?);
        }
        let by_end = [
            ("_celsius", "celsius"),
            ("_info", "info"),
            ("_bytes", "bytes"),
            ("_watts", "watts"),
        ];
        let (_, unit) = by_end.iter().find(|(end, _)| name.ends_with(end))?;
        self.units.get(*unit)
    }

    /// Who makes metrics of this name.
    #[must_use]
    pub fn maker(&self, name: &str) -> Option<Maker<'_>> {
        let found = self.exporters.iter().filter_map(|exporter| {
            let prefix = exporter.prefixes.iter().find(|p| name.starts_with(&p.text))?;
            Some((prefix.text.len(), exporter, prefix))
        });
        let (_, exporter, prefix) = found.max_by_key(|(length, ..)| *length)?;
        Some(Maker {
            exporter: &exporter.name,
            collector: exporter.collector.as_deref(),
            absent: prefix.absent.as_deref(),
            mend: prefix.mend.as_deref(),
        })
    }

    /// Every value that a label of this metric can have, where they are known and few.
    #[must_use]
    pub fn values_of(&self, name: &str, label: &str) -> Option<&[String]> {
        let fits = |prefixes: &[String]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let found = self.closed.iter().find(|(l, prefixes, _)| l == label && fits(prefixes));
        found.map(|(_, _, values)| values.as_slice())
    }

    /// What was meant by a name that no exporter has.
    #[must_use]
    pub fn meant(&self, name: &str) -> Option<&str> {
        self.misnamed.get(name).map(String::as_str)
    }

    /// The names that a metric had before, each with its rename.
    pub fn former<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Rename)> {
        self.metrics.iter().filter_map(move |(former, fact)| {
            let rename = fact.renamed.iter().find(|r| r.to == name)?;
            Some((former.as_str(), rename))
        })
    }

    /// The metrics that a judgement of `name` also looks at.
    pub fn neighbours<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let fact = self.metrics.get(name);
        fact.into_iter().flat_map(|fact| {
            let limit = fact
                .limit
                .iter()
                .flat_map(|(metric, _)| metric.split('+').map(str::trim));
            limit.chain(fact.renamed.iter().map(|r| r.to.as_str()))
        })
    }

    fn read(&mut self, text: &str) -> Read<()> {
        let root = config::yaml::parse(text)?;
        let mut fields = root.fields()?;
        for node in fields.list_of("units")? {
            let (name, unit) = unit(node)?;
            self.units.insert(name, unit);
        }
        for node in fields.list_of("exporters")? {
            self.exporter(node)?;
        }
        for node in fields.list_of("labels")? {
            let mut row = node.fields()?;
            let label = row.or_empty("label")?;
            let metrics = row.or_empty("metrics")?;
            let values = row.or_empty("values")?;
            row.finish()?;
            self.closed.push((label, metrics, values));
        }
        for (key, node) in fields.node_of("misnamed").map_or(Ok(&[][..]), Node::map)? {
            self.misnamed.insert(key.text.clone(), node.read()?);
        }
        fields.finish()
    }

    fn exporter(&mut self, node: &Node) -> Read<()> {
        let mut fields = node.fields()?;
        let name: String = fields.or_empty("name")?;
        let collector = fields.get("collector")?;
        let mut prefixes = Vec::new();
        for node in fields.list_of("prefixes")? {
            let mut row = node.fields()?;
            prefixes.push(Prefix {
                text: row.or_empty("prefix")?,
                absent: row.get("absent")?,
                mend: row.get("mend")?,
            });
            row.finish()?;
        }
        prefixes.sort_by_key(|p| std::cmp::Reverse(p.text.len()));
        for node in fields.list_of("metrics")? {
            for (name, fact) in metric(node)? {
                self.metrics.insert(name, fact);
            }
        }
        fields.finish()?;
        self.exporters.push(Exporter {
            name,
            collector,
            prefixes,
        });
        Ok(())
    }
}

fn unit(node: &Node) -> Read<(String, Unit)> {
    let mut row = node.fields()?;
    let name = row.or_empty("unit")?;
    let words = row.or_empty("words")?;
    let (lo, hi) = (row.get::<Float>("min")?, row.get::<Float>("max")?);
    let whole = row.or("whole", false)?;
    row.finish()?;
    let bound = |end: Option<Float>, open: f64| end.map_or(open, |Float(value)| value);
    let range = Interval::new(bound(lo, f64::NEG_INFINITY), bound(hi, f64::INFINITY));
    Ok((name, Unit { words, range, whole }))
}

/// A row: `name` may list several metrics of the same facts.
fn metric(node: &Node) -> Read<Vec<(String, MetricFact)>> {
    let mut row = node.fields()?;
    let name: String = row.or_empty("name")?;
    let kind: Option<String> = row.get("kind")?;
    let kind = match kind.as_deref() {
        None => None,
        Some("counter") => Some(Kind::Counter),
        Some("gauge") => Some(Kind::Gauge),
        Some("histogram") => Some(Kind::Histogram),
        Some("summary") => Some(Kind::Summary),
        Some("untyped") => Some(Kind::Unknown),
        Some(other) => return Err(row.fault_at("kind", format!("{other:?} is no type of metric"))),
    };
    let limit: Option<String> = row.get("limit")?;
    let times = row.get::<Float>("times")?.map_or(1.0, |Float(value)| value);
    let fact = MetricFact {
        kind,
        unit: row.get("unit")?,
        absent: row.get("absent")?,
        mend: row.get("mend")?,
        renamed: renames(&mut row)?,
        rate_max: row.get::<Float>("rate_max")?.map(|Float(value)| value),
        part_of: row.get("part_of")?,
        limit: limit.map(|metric| (metric, times)),
        value_label: row.get("value_label")?,
        on_event: row.or("on_event", false)?,
    };
    row.finish()?;
    Ok(name
        .split_whitespace()
        .map(|name| (name.to_owned(), fact.clone()))
        .collect())
}

fn renames(row: &mut Fields<'_>) -> Read<Vec<Rename>> {
    let since: String = row.or_empty("since")?;
    let change: String = row.or_empty("change")?;
    let to: String = row.or_empty("to")?;
    Ok(to
        .split_whitespace()
        .map(|to| Rename {
            to: to.to_owned(),
            since: since.clone(),
            change: change.clone(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_table_reads_and_names_units_that_are() {
        let facts = Facts::shipped().unwrap();
        assert!(facts.metrics.len() > 150, "{}", facts.metrics.len());
        for (name, fact) in &facts.metrics {
            let unit = fact.unit.as_ref();
            assert!(
                unit.is_none_or(|unit| facts.units.contains_key(unit)),
                "{name}: {unit:?}"
            );
        }
    }

    #[test]
    fn the_longest_prefix_tells_the_maker() {
        let facts = Facts::shipped().unwrap();
        let systemd = facts.maker("node_systemd_unit_state").unwrap();
        assert_eq!(systemd.exporter, "node_exporter");
        assert!(systemd.absent.unwrap().contains("systemd"));
        assert_eq!(facts.maker("DCGM_FI_DEV_GPU_TEMP").unwrap().collector, Some("gpu"));
        assert_eq!(facts.maker("my_own_metric"), None);
    }

    #[test]
    fn a_wrong_table_is_told_with_its_place() {
        let error = Facts::default()
            .add("x.yml", "units:\n  - { unit: a, wrods: b }\n")
            .unwrap_err();
        assert!(error.to_string().starts_with("x.yml:2:"), "{error}");
    }
}
