//! From a rule file's text to rules that can be evaluated: structure, expressions and templates checked.

use std::path::Path;
use std::sync::Arc;

use config::relabel::NameScheme;
pub use config::rules::OnMissing;
use config::rules::RuleFile;
use model::{Labels, Millis};

use crate::error::Error;
use crate::expand::AlertTexts;

/// A group as its file gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedGroup {
    /// The file it comes from.
    pub file: String,
    /// Its name.
    pub name: String,
    /// How often it is evaluated; `None` takes the global interval.
    pub interval: Option<Millis>,
    /// How far in the past it looks; `None` takes the global offset.
    pub query_offset: Option<Millis>,
    /// The most series or alerts a rule may give; 0 is no limit.
    pub limit: usize,
    /// What becomes of its alerts when their data is missing.
    pub on_missing: OnMissing,
    /// Its rules, in order.
    pub rules: Vec<LoadedRule>,
}

/// A rule as its file gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedRule {
    /// The recorded series' name, or the alert's.
    pub name: String,
    /// The expression as written.
    pub expr: String,
    /// Labels; templates in an alerting rule.
    pub labels: Vec<(String, String)>,
    /// Recording or alerting.
    pub kind: RuleKind,
}

/// What a rule makes.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleKind {
    /// A series.
    Recording,
    /// Alerts.
    Alerting {
        /// How long the expression must hold before the alert fires.
        hold: Millis,
        /// How long the alert goes on firing after the expression stops to hold.
        keep_firing: Millis,
        /// Annotations: templates.
        annotations: Vec<(String, String)>,
    },
}

/// Reads the files, in order.
///
/// # Errors
///
/// The first problem of each file, all files judged: nothing may be used when there is one.
pub fn load_files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Arc<LoadedGroup>>, Vec<Error>> {
    let mut groups = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match std::fs::read_to_string(path) {
            Ok(text) => match check_text(&path.display().to_string(), &text) {
                Ok(found) => groups.extend(found.into_iter().map(Arc::new)),
                Err(found) => errors.extend(found),
            },
            Err(source) => errors.push(Error::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }
    if errors.is_empty() { Ok(groups) } else { Err(errors) }
}

/// Judges one file's text as a start would.
///
/// # Errors
///
/// Every wrong rule of the file, or the one error that keeps it from being read at all.
pub fn check_text(file: &str, text: &str) -> Result<Vec<LoadedGroup>, Vec<Error>> {
    let parsed = RuleFile::parse(file, text, NameScheme::Utf8).map_err(|e| vec![Error::File(e)])?;
    let mut errors = Vec::new();
    let mut groups: Vec<LoadedGroup> = Vec::new();
    for group in &parsed.groups {
        let mut rules = Vec::new();
        for (index, rule) in group.rules.iter().enumerate() {
            let loaded = load_rule(group, rule);
            errors.extend(check_rule(&parsed, group, index, rule, &loaded));
            rules.push(loaded);
        }
        groups.push(LoadedGroup {
            file: file.to_owned(),
            name: group.name.clone(),
            interval: group.interval,
            query_offset: group.query_offset,
            limit: usize::try_from(group.limit).unwrap_or(usize::MAX),
            on_missing: group.on_missing,
            rules,
        });
    }
    if errors.is_empty() { Ok(groups) } else { Err(errors) }
}

/// The rule with its group's labels below its own.
fn load_rule(group: &config::rules::Group, rule: &config::rules::Rule) -> LoadedRule {
    let mut labels = group.labels.clone();
    labels.extend(rule.labels.clone());
    let kind = match &rule.kind {
        config::rules::RuleKind::Record(_) => RuleKind::Recording,
        config::rules::RuleKind::Alert(alert) => RuleKind::Alerting {
            hold: alert.hold,
            keep_firing: alert.keep_firing_for,
            annotations: alert.annotations.clone().into_iter().collect(),
        },
    };
    LoadedRule {
        name: rule.name().to_owned(),
        expr: rule.expr.clone(),
        labels: labels.into_iter().collect(),
        kind,
    }
}

/// Everything wrong with the expression and the templates of one rule.
fn check_rule(
    file: &RuleFile,
    group: &config::rules::Group,
    index: usize,
    rule: &config::rules::Rule,
    loaded: &LoadedRule,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Err(error) = promql::parse(&rule.expr) {
        let message = format!(
            "group {:?}, rule {}, {:?}: could not parse expression: {}",
            group.name,
            index + 1,
            loaded.name,
            error.message()
        );
        errors.push(Error::File(file.error_in(rule, error.span(), &message)));
    }
    for reason in AlertTexts::parse(loaded).err().into_iter().flatten() {
        errors.push(Error::Rule {
            file: file.path.clone(),
            line: rule.line,
            group: group.name.clone(),
            index: index + 1,
            rule: loaded.name.clone(),
            reason,
        });
    }
    errors
}

/// The labels of a recording rule as a set.
#[must_use]
pub fn label_set(pairs: &[(String, String)]) -> Labels {
    Labels::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())))
}
