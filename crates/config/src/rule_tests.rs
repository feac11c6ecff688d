//! Unit tests of rules, in promtool's format, as written.

use std::collections::BTreeMap;
use std::path::Path;

use model::Millis;

use crate::error::{Error, read};
use crate::yaml::{Duration, Float, Node, Result, parse};

/// A file of unit tests.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTestFile {
    /// The file, or what stands for it.
    pub path: String,
    /// Patterns of rule files, relative to the test file's folder.
    pub rule_files: Vec<String>,
    /// How often rules are evaluated, in milliseconds.
    pub evaluation_interval: Millis,
    /// Names of groups in the order in which they are to be evaluated; others follow.
    pub group_eval_order: Vec<String>,
    /// Whether values may differ in the last digits.
    pub fuzzy_compare: bool,
    /// The tests.
    pub tests: Vec<RuleTest>,
}

/// One test: series, and what the rules must make of them.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTest {
    /// Its name; may be empty.
    pub name: String,
    /// Line of the test in its file, from 1.
    pub line: usize,
    /// The step of the input series, in milliseconds; the evaluation interval if not told.
    pub interval: Millis,
    /// The moment at which the test's time begins; the epoch if not told.
    pub start: Millis,
    /// Series and their values, in Prometheus' notation.
    pub input_series: Vec<InputSeries>,
    /// What alerts must fire.
    pub alerts: Vec<AlertTest>,
    /// What expressions must give.
    pub expressions: Vec<ExpressionTest>,
    /// Labels of the server, for templates.
    pub external_labels: BTreeMap<String, String>,
    /// Address of the server, for templates.
    pub external_url: String,
}

/// A series and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSeries {
    /// The series, as `up{job="x"}`.
    pub series: String,
    /// The values, as `1+2x3 _ stale`.
    pub values: String,
}

/// The alerts of one name that must fire at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertTest {
    /// Line of the case in its file, from 1.
    pub line: usize,
    /// The moment, in milliseconds from the start.
    pub eval_time: Millis,
    /// The alert's name.
    pub alert_name: String,
    /// Labels (without `alertname`) and annotations of each firing alert.
    pub expected: Vec<(BTreeMap<String, String>, BTreeMap<String, String>)>,
}

/// What an expression must give at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionTest {
    /// Line of the case in its file, from 1.
    pub line: usize,
    /// The expression.
    pub expr: String,
    /// The moment, in milliseconds from the start.
    pub eval_time: Millis,
    /// The samples, in any order.
    pub expected: Vec<ExpectedSample>,
}

/// A sample that an expression must give.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedSample {
    /// The series, as `up{job="x"}`.
    pub labels: String,
    /// Its value.
    pub value: f64,
    /// A native histogram in Prometheus' notation; empty for none.
    pub histogram: String,
}

impl RuleTestFile {
    /// Reads and judges a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with line and caret.
    pub fn load(path: &Path) -> std::result::Result<Self, Error> {
        let text = read(path)?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Judges a text; `path` stands in messages.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with line and caret.
    pub fn parse(path: &str, text: &str) -> std::result::Result<Self, Error> {
        file(path, text).map_err(|fault| Error::at(path, text, &fault))
    }
}

fn file(path: &str, text: &str) -> Result<RuleTestFile> {
    let root = parse(text)?;
    let mut fields = root.fields()?;
    // Prometheus' own default where nothing is said.
    let interval = match fields.or("evaluation_interval", Duration(0))?.0 {
        0 => 60_000,
        told => told,
    };
    let file = RuleTestFile {
        path: path.to_owned(),
        rule_files: fields.or_empty("rule_files")?,
        evaluation_interval: interval,
        group_eval_order: fields.or_empty("group_eval_order")?,
        fuzzy_compare: fields.or_empty("fuzzy_compare")?,
        tests: fields
            .list_of("tests")?
            .iter()
            .map(|node| test(node, text, interval))
            .collect::<Result<_>>()?,
    };
    fields.finish()?;
    Ok(file)
}

fn line(node: &Node, text: &str) -> usize {
    model::text::line_column(text, node.at.start).0
}

fn test(node: &Node, text: &str, evaluation_interval: Millis) -> Result<RuleTest> {
    let mut fields = node.fields()?;
    let interval = fields.or("interval", Duration(0))?.0;
    let test = RuleTest {
        name: fields.or_empty("name")?,
        line: line(node, text),
        interval: if interval == 0 { evaluation_interval } else { interval },
        start: match fields.node_of("start_timestamp") {
            Some(node) => moment(node)?,
            None => 0,
        },
        input_series: fields
            .list_of("input_series")?
            .iter()
            .map(input_series)
            .collect::<Result<_>>()?,
        alerts: fields
            .list_of("alert_rule_test")?
            .iter()
            .map(|n| alert_test(n, text))
            .collect::<Result<_>>()?,
        expressions: fields
            .list_of("promql_expr_test")?
            .iter()
            .map(|n| expression(n, text))
            .collect::<Result<_>>()?,
        external_labels: fields.or_empty("external_labels")?,
        external_url: fields.or_empty("external_url")?,
    };
    fields.finish()?;
    Ok(test)
}

/// Seconds since the epoch, or a date as in RFC 3339.
fn moment(node: &Node) -> Result<Millis> {
    let text: String = node.read()?;
    if let Ok(seconds) = text.parse::<f64>()
        && seconds.abs() < 1e12
    {
        return Ok((seconds * 1000.0).round() as Millis);
    }
    let stamp: Option<jiff::Timestamp> = text.parse().ok();
    stamp.map(jiff::Timestamp::as_millisecond).ok_or_else(|| {
        node.fault(format!(
            "expected seconds or a date as 2024-01-01T00:00:00Z, got {text:?}"
        ))
    })
}

fn input_series(node: &Node) -> Result<InputSeries> {
    let mut fields = node.fields()?;
    let series = InputSeries {
        series: fields.or_empty("series")?,
        values: fields.or_empty("values")?,
    };
    fields.finish()?;
    Ok(series)
}

fn alert_test(node: &Node, text: &str) -> Result<AlertTest> {
    let mut fields = node.fields()?;
    let alert_name: String = fields.or_empty("alertname")?;
    if alert_name.is_empty() {
        return Err(fields.fault("an item under alert_rule_test misses required attribute alertname"));
    }
    let expected = fields
        .list_of("exp_alerts")?
        .iter()
        .map(expected_alert)
        .collect::<Result<_>>()?;
    let test = AlertTest {
        line: line(node, text),
        eval_time: fields.or("eval_time", Duration(0))?.0,
        alert_name,
        expected,
    };
    fields.finish()?;
    Ok(test)
}

fn expected_alert(node: &Node) -> Result<(BTreeMap<String, String>, BTreeMap<String, String>)> {
    let mut fields = node.fields()?;
    let pair = (fields.or_empty("exp_labels")?, fields.or_empty("exp_annotations")?);
    fields.finish()?;
    Ok(pair)
}

fn expression(node: &Node, text: &str) -> Result<ExpressionTest> {
    let mut fields = node.fields()?;
    let test = ExpressionTest {
        line: line(node, text),
        expr: fields.or_empty("expr")?,
        eval_time: fields.or("eval_time", Duration(0))?.0,
        expected: fields
            .list_of("exp_samples")?
            .iter()
            .map(expected_sample)
            .collect::<Result<_>>()?,
    };
    fields.finish()?;
    Ok(test)
}

fn expected_sample(node: &Node) -> Result<ExpectedSample> {
    let mut fields = node.fields()?;
    let sample = ExpectedSample {
        labels: fields.or_empty("labels")?,
        value: fields.or("value", Float(0.0))?.0,
        histogram: fields.or_empty("histogram")?,
    };
    fields.finish()?;
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_file_is_read_and_a_wrong_key_refused() {
        let text = "rule_files: [a.yml]\ntests:\n  - interval: 15s\n    input_series: [{series: up, values: 1x4}]\n    alert_rule_test:\n      - {eval_time: 1m, alertname: A, exp_alerts: [{exp_labels: {a: b}}]}\n";
        let file = RuleTestFile::parse("t.yml", text).expect("valid");
        assert_eq!(file.evaluation_interval, 60_000);
        assert_eq!(file.tests[0].alerts[0].expected[0].0["a"], "b");
        let error = RuleTestFile::parse("t.yml", "tests: [{intervall: 1m}]").expect_err("a wrong key");
        assert!(error.to_string().contains("did you mean interval"), "{error}");
    }
}
