//! Unit tests of rules, in promtool's format: series in, time turned by hand, alerts and values compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::rule_tests::{AlertTest, ExpressionTest, RuleTest, RuleTestFile};
use model::{Deadline, Labels, Millis, QueryEngine as _, Value};
use promql::testscript::notation::{parse_metric, parse_points};
use promql::testscript::{MemStore, Point};
use promql::{Engine, EngineOptions};

use crate::alerting::Alert;
use crate::load::{LoadedGroup, LoadedRule, load_files};
use crate::manager::{AlertSink, Manager, Options};

mod verdict;

use verdict::{check_alerts, expected, list, minutes, same};

/// What a file of tests came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases that gave what was expected.
    pub passed: usize,
    /// Cases that did not, as `file:line: what`.
    pub failures: Vec<String>,
    /// Cases not judged, as `file:line: why`.
    pub skipped: Vec<String>,
}

impl Report {
    fn failed(failures: Vec<String>) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }
}

/// Runs every test of a file; rule files are found beside it.
#[must_use]
pub fn run_file(path: &Path) -> Report {
    match RuleTestFile::load(path) {
        Ok(file) => run(&file, path.parent().unwrap_or(Path::new("."))),
        Err(error) => Report::failed(vec![error.to_string()]),
    }
}

/// Runs every test of a text; `path` stands in messages, and rule files are found in `folder`.
#[must_use]
pub fn run_text(path: &str, text: &str, folder: &Path) -> Report {
    match RuleTestFile::parse(path, text) {
        Ok(file) => run(&file, folder),
        Err(error) => Report::failed(vec![error.to_string()]),
    }
}

fn run(file: &RuleTestFile, folder: &Path) -> Report {
    let paths: Vec<PathBuf> = file
        .rule_files
        .iter()
        .flat_map(|p| config::glob::expand(folder, p))
        .collect();
    let mut groups = match load_files(&paths) {
        Ok(groups) => groups,
        Err(errors) => {
            return Report::failed(errors.iter().map(ToString::to_string).collect());
        }
    };
    let place = |group: &LoadedGroup| {
        file.group_eval_order
            .iter()
            .position(|name| *name == group.name)
            .unwrap_or(0)
    };
    groups.sort_by_key(|group| place(group));
    let mut report = Report::default();
    for test in &file.tests {
        let case = Case {
            file,
            test,
            groups: &groups,
        };
        case.run(&mut report);
    }
    report
}

/// Alerts are read from the rules' state, so nobody needs to be told.
struct Nobody;

impl AlertSink for Nobody {
    fn send(&self, _: &LoadedRule, _: &[Alert], _: Millis) {}
}

struct Case<'a> {
    file: &'a RuleTestFile,
    test: &'a RuleTest,
    groups: &'a [Arc<LoadedGroup>],
}

impl Case<'_> {
    fn run(&self, report: &mut Report) {
        let store = Arc::new(MemStore::new());
        if let Err(reason) = self.load(&store) {
            report.failures.push(self.at(self.test.line, &reason));
            return;
        }
        let engine = Engine::new(store.clone(), EngineOptions::default());
        let pairs = self.test.external_labels.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let options = Options {
            interval: self.file.evaluation_interval,
            external_labels: Labels::from_pairs(pairs),
            external_url: self.test.external_url.clone(),
            // Rules under test begin with nothing behind them.
            outage_tolerance: 0,
            // Verdicts are promtool's.
            hold_missing: false,
            ..Options::default()
        };
        let manager = Manager::new(Arc::new(engine.clone()), store, Arc::new(Nobody), options.clone());
        manager.apply(self.groups, options, self.test.start);
        self.turn_time(&manager, report);
        for case in &self.test.expressions {
            if case.expected.iter().any(|sample| !sample.histogram.is_empty()) {
                report
                    .skipped
                    .push(self.at(case.line, "native histograms are not supported yet"));
                continue;
            }
            self.judge(case.line, self.check_expression(&engine, case), report);
        }
    }

    fn at(&self, line: usize, reason: &str) -> String {
        let name = if self.test.name.is_empty() {
            String::new()
        } else {
            format!("{}: ", self.test.name)
        };
        format!("{}:{line}: {name}{reason}", self.file.path)
    }

    fn judge(&self, line: usize, outcome: Result<(), String>, report: &mut Report) {
        match outcome {
            Ok(()) => report.passed += 1,
            Err(reason) => report.failures.push(self.at(line, &reason)),
        }
    }

    fn load(&self, store: &MemStore) -> Result<(), String> {
        for input in &self.test.input_series {
            let labels = parse_metric(&input.series).map_err(|e| e.to_string())?;
            let points = parse_points(&input.values).map_err(|e| e.to_string())?;
            let mut time = self.test.start;
            for point in points {
                if let Point::Float(value) = point {
                    store.add(&labels, time, value);
                }
                time += self.test.interval;
            }
        }
        Ok(())
    }

    /// Evaluates the rules from the start to the last moment that a case names, judging alerts on the way.
    fn turn_time(&self, manager: &Manager, report: &mut Report) {
        let mut waiting: Vec<&AlertTest> = self.test.alerts.iter().collect();
        waiting.sort_by_key(|case| case.eval_time);
        let expressions = self.test.expressions.iter().map(|case| case.eval_time);
        let last = waiting
            .iter()
            .map(|case| case.eval_time)
            .chain(expressions)
            .max()
            .unwrap_or(0);
        let interval = self.file.evaluation_interval.max(1);
        let mut waiting = waiting.into_iter().peekable();
        let mut passed = 0;
        while passed <= last {
            manager.run_all(self.test.start + passed);
            let errors = rule_errors(manager);
            if !errors.is_empty() {
                report
                    .failures
                    .extend(errors.iter().map(|e| self.at(self.test.line, e)));
                return;
            }
            // A case between two evaluations sees the earlier one.
            while let Some(case) = waiting.next_if(|case| case.eval_time < passed + interval) {
                self.judge(case.line, check_alerts(manager, case), report);
            }
            passed += interval;
        }
    }

    fn check_expression(&self, engine: &Engine, case: &ExpressionTest) -> Result<(), String> {
        let time = self.test.start + case.eval_time;
        let outcome = engine
            .instant(&case.expr, time, &Deadline::never())
            .map_err(|e| format!("{}: {e}", case.expr))?;
        let mut got = match outcome.value {
            Value::Vector(samples) => samples
                .into_iter()
                .map(|(labels, sample)| (labels, sample.value))
                .collect(),
            Value::Scalar(sample) => vec![(Labels::empty(), sample.value)],
            other => return Err(format!("{}: a {} cannot be compared", case.expr, other.type_name())),
        };
        let mut want = case.expected.iter().map(expected).collect::<Result<Vec<_>, _>>()?;
        got.sort_by(|a, b| a.0.cmp(&b.0));
        want.sort_by(|a, b| a.0.cmp(&b.0));
        let equal = got.len() == want.len()
            && got
                .iter()
                .zip(&want)
                .all(|(g, w)| g.0 == w.0 && same(g.1, w.1, self.file.fuzzy_compare));
        if equal {
            return Ok(());
        }
        Err(format!(
            "{} at {}:\n  expected {}\n  got      {}",
            case.expr,
            minutes(case.eval_time),
            list(&want),
            list(&got)
        ))
    }
}

fn rule_errors(manager: &Manager) -> Vec<String> {
    let groups = manager.status();
    let rules = groups.iter().flat_map(|g| &g.rules);
    rules
        .filter_map(|r| Some(format!("rule {:?}: {}", r.rule.name, r.last_error.as_ref()?)))
        .collect()
}
