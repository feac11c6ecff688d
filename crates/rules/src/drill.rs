//! Drill scenarios: under which samples an alert must fire, and under which it must not.
//!
//! The files (`data/rules/*_drill.yml`) are data beside the rules they belong to. [`read`] takes one in; [`Drill::points`] turns a
//! scenario into samples, which a drill hands to a scraper as pages, and a test to a store. Who is told of a drill, and how, is the
//! caller's business: here are no clock and no receivers.

use config::yaml::{Duration, Node, Result as Read, parse};
use model::{Labels, Millis};
use promql::testscript::notation::{Point, parse_metric, parse_points};

use crate::error::Error;

/// The longest drill, in injected time.
const LASTS_MAX: Millis = 24 * 3_600_000;

/// The most samples of one series.
const POINTS_MAX: Millis = 10_000;

/// How one alert is drilled.
#[derive(Debug, Clone, PartialEq)]
pub struct Drill {
    /// The alert's name.
    pub alert: String,
    /// From sample to sample.
    pub interval: Millis,
    /// How long it runs, in injected time.
    pub lasts: Millis,
    /// The kernel's line that brings the fault about, where the kernel tells it.
    pub kernel: Option<String>,
    /// Under these the alert must fire.
    pub sick: Vec<Source>,
    /// Under these it must not.
    pub healthy: Vec<Source>,
}

/// A series of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its labels, the metric's name among them.
    pub labels: Labels,
    /// Its values in the short notation; `{START}` stands for the beginning in seconds since 1970.
    pub values: String,
}

/// A series with its samples, in order of time.
pub type Points = (Labels, Vec<(Millis, f64)>);

/// Reads the drills of a file.
///
/// # Errors
///
/// The text is no such file: place and caret.
pub fn read(file: &str, text: &str) -> Result<Vec<Drill>, Error> {
    let read = || {
        let root = parse(text)?;
        let mut fields = root.fields()?;
        let drills = fields.list_of("drills")?.iter().map(drill).collect::<Read<Vec<_>>>()?;
        fields.finish()?;
        Ok(drills)
    };
    read().map_err(|fault| Error::File(config::Error::at(file, text, &fault)))
}

fn drill(node: &Node) -> Read<Drill> {
    let mut fields = node.fields()?;
    let alert: String = fields.or_empty("alert")?;
    if alert.is_empty() {
        return Err(fields.fault("a drill names its alert"));
    }
    let Duration(interval) = fields.or("interval", Duration(15_000))?;
    let Duration(lasts) = fields.or("lasts", Duration(600_000))?;
    if interval <= 0 || lasts <= 0 || lasts > LASTS_MAX || lasts / interval > POINTS_MAX {
        return Err(fields.fault_at(
            "lasts",
            "interval and duration of a drill: above zero, a day at most, 10000 samples at most",
        ));
    }
    let drill = Drill {
        alert,
        interval,
        lasts,
        kernel: fields.get("kernel")?,
        sick: sources(fields.list_of("sick")?)?,
        healthy: sources(fields.list_of("healthy")?)?,
    };
    fields.finish()?;
    Ok(drill)
}

fn sources(nodes: &[Node]) -> Read<Vec<Source>> {
    let read = |node: &Node| {
        let mut fields = node.fields()?;
        let series: String = fields.or_empty("series")?;
        let values: String = fields.or_empty("values")?;
        let labels = parse_metric(&series).map_err(|error| fields.fault_at("series", error.to_string()))?;
        parse_points(&started(&values, 0)).map_err(|error| fields.fault_at("values", error.to_string()))?;
        fields.finish()?;
        Ok(Source { labels, values })
    };
    nodes.iter().map(read).collect()
}

fn started(values: &str, start: Millis) -> String {
    values.replace("{START}", &start.div_euclid(1000).to_string())
}

impl Drill {
    /// The samples of `sources` from `start` on.
    #[must_use]
    pub fn points(&self, sources: &[Source], start: Millis) -> Vec<Points> {
        let of = |source: &Source| {
            // Reading judged the notation.
            let points = parse_points(&started(&source.values, start)).unwrap_or_default();
            let times = (0..).map(|at| start + at * self.interval);
            let samples = times.zip(points).filter_map(|(time, point)| match point {
                Point::Float(value) => Some((time, value)),
                _ => None,
            });
            (
                source.labels.clone(),
                samples.take_while(|(time, _)| *time <= start + self.lasts).collect(),
            )
        };
        sources.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_becomes_samples() {
        let text = "drills:\n  - alert: A\n    interval: 10s\n    lasts: 30s\n    sick:\n      - { series: 'm{a=\"1\"}', values: '1 _ {START}+5x9' }\n";
        let drill = read("d.yml", text).unwrap().remove(0);
        let points = drill.points(&drill.sick, 1_000_000);
        assert_eq!(
            points[0].1,
            [(1_000_000, 1.0), (1_020_000, 1000.0), (1_030_000, 1005.0)]
        );
        assert!(drill.healthy.is_empty());
    }

    #[test]
    fn a_wrong_scenario_is_told_with_its_place() {
        let wrong = |text: &str| read("d.yml", text).unwrap_err().to_string();
        let series = wrong("drills:\n  - alert: A\n    sick:\n      - { series: 'm{', values: '1' }\n");
        assert!(series.starts_with("d.yml:4:"), "{series}");
        assert!(wrong("drills:\n  - interval: 1s\n").contains("names its alert"));
        assert!(wrong("drills:\n  - { alert: A, interval: 1s, lasts: 23h }\n").contains("10000 samples"));
    }
}
