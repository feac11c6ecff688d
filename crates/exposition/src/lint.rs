//! What is legal but unwise: names, units, types, missing help.

use std::collections::BTreeSet;

use model::{Kind, Labels};

use crate::check::Remark;

/// What a check has learned of a family.
#[derive(Debug)]
pub(crate) struct Facts {
    pub name: String,
    pub kind: Option<Kind>,
    pub help: bool,
    pub samples: usize,
    pub duplicates: usize,
    labels: BTreeSet<String>,
}

impl Facts {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            help: false,
            samples: 0,
            duplicates: 0,
            labels: BTreeSet::new(),
        }
    }

    pub(crate) fn sample(&mut self, labels: &Labels, new: bool) {
        self.samples += 1;
        self.duplicates += usize::from(!new);
        for (name, _) in labels {
            if !self.labels.contains(name) {
                self.labels.insert(name.to_owned());
            }
        }
    }
}

/// Words for a unit that has a base unit, with the base unit.
const UNITS: [(&str, &str); 26] = [
    ("ampere", "amperes"),
    ("milliamperes", "amperes"),
    ("bit", "bytes"),
    ("bits", "bytes"),
    ("calorie", "joules"),
    ("calories", "joules"),
    ("day", "seconds"),
    ("days", "seconds"),
    ("fahrenheit", "celsius"),
    ("hour", "seconds"),
    ("hours", "seconds"),
    ("inch", "meters"),
    ("inches", "meters"),
    ("mile", "meters"),
    ("miles", "meters"),
    ("minute", "seconds"),
    ("minutes", "seconds"),
    ("ounce", "grams"),
    ("ounces", "grams"),
    ("pound", "grams"),
    ("pounds", "grams"),
    ("rankine", "celsius"),
    ("week", "seconds"),
    ("weeks", "seconds"),
    ("yard", "meters"),
    ("yards", "meters"),
];

/// Units that are base units themselves and take a prefix.
const BASES: [&str; 11] = [
    "amperes", "bytes", "celsius", "grams", "joules", "kelvin", "meters", "metres", "seconds", "volts", "watts",
];

const PREFIXES: [&str; 18] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega", "mebi", "giga", "gibi",
    "tera", "tebi", "peta", "pebi",
];

/// Units too short to be understood.
const ABBREVIATIONS: [&str; 14] = [
    "s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d",
];

/// Types that a name should not tell: the `TYPE` line does.
const TYPES: [&str; 4] = ["counter", "gauge", "histogram", "summary"];

/// The remarks on one family.
pub(crate) fn judge(facts: &Facts) -> Vec<Remark> {
    let mut texts = Vec::new();
    let kind = facts.kind.unwrap_or_default();
    if !facts.help {
        texts.push("has no HELP text".to_owned());
    }
    if let Some((unit, base)) = unwise_unit(&facts.name) {
        texts.push(format!("is in {unit}, where {base} is the base unit"));
    }
    judge_type(facts, kind, &mut texts);
    let lower = facts.name.to_ascii_lowercase();
    if let Some(word) = TYPES.iter().find(|word| has_word(&lower, word)) {
        texts.push(format!("has a type, {word:?}, in its name"));
    }
    if facts.name.contains(':') {
        texts.push("has a colon in its name, which is kept for recording rules".to_owned());
    }
    if camel_case(&facts.name) {
        texts.push("is written in camelCase, not in snake_case".to_owned());
    }
    for label in facts.labels.iter().filter(|l| camel_case(l)) {
        texts.push(format!("has a label {label:?} in camelCase, not in snake_case"));
    }
    if let Some(short) = ABBREVIATIONS.iter().find(|a| has_word(&lower, a)) {
        texts.push(format!("abbreviates its unit as {short:?}"));
    }
    if facts.duplicates > 0 {
        texts.push("the same series stands on the page more than once".to_owned());
    }
    let remark = |text| Remark {
        metric: facts.name.clone(),
        text,
    };
    texts.into_iter().map(remark).collect()
}

fn judge_type(facts: &Facts, kind: Kind, texts: &mut Vec<String>) {
    if kind == Kind::Unknown {
        return;
    }
    let name = &facts.name;
    let total = name.ends_with("_total");
    if kind == Kind::Counter && !total {
        texts.push("is a counter, so its name should end in _total".to_owned());
    }
    if kind != Kind::Counter && total {
        texts.push("is no counter, so its name should not end in _total".to_owned());
    }
    let histogram = matches!(kind, Kind::Histogram | Kind::GaugeHistogram);
    let summary = kind == Kind::Summary;
    if !histogram && name.ends_with("_bucket") {
        texts.push("is no histogram, so its name should not end in _bucket".to_owned());
    }
    for suffix in ["_count", "_sum"] {
        if !histogram && !summary && name.ends_with(suffix) {
            texts.push(format!(
                "is neither histogram nor summary, so its name should not end in {suffix}"
            ));
        }
    }
    if !histogram && facts.labels.contains("le") {
        texts.push("is no histogram, so it should have no label \"le\"".to_owned());
    }
    if !summary && facts.labels.contains("quantile") {
        texts.push("is no summary, so it should have no label \"quantile\"".to_owned());
    }
}

/// Whether `_word` stands inside or at the end of `name`.
fn has_word(name: &str, word: &str) -> bool {
    name.split('_').skip(1).any(|w| w == word)
}

fn camel_case(name: &str) -> bool {
    name.as_bytes()
        .windows(2)
        .any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase())
}

/// The first unit in a name, with its base unit, if it is not itself one.
fn unwise_unit(name: &str) -> Option<(&str, &'static str)> {
    for word in name.split('_') {
        if BASES.contains(&word) {
            return None;
        }
        let plain = PREFIXES.iter().find_map(|p| word.strip_prefix(p)).unwrap_or(word);
        if let Some(base) = BASES.iter().find(|b| **b == plain) {
            return Some((word, base));
        }
        if let Some((_, base)) = UNITS.iter().find(|(unit, _)| *unit == plain) {
            return Some((word, base));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, kind: Kind, label: &str, want: &[&str]) {
        let mut facts = Facts::new(name);
        facts.help = true;
        facts.kind = Some(kind);
        facts.sample(&Labels::from_pairs([(label, "1")]), true);
        let got: Vec<String> = judge(&facts).into_iter().map(|r| r.text).collect();
        assert_eq!(got, want, "{name}");
    }

    #[test]
    fn names_are_judged_by_unit_type_and_form() {
        check("a_seconds", Kind::Gauge, "x", &[]);
        check(
            "a_milliseconds",
            Kind::Gauge,
            "x",
            &["is in milliseconds, where seconds is the base unit"],
        );
        check(
            "a_minutes",
            Kind::Gauge,
            "x",
            &["is in minutes, where seconds is the base unit"],
        );
        check(
            "a_total",
            Kind::Gauge,
            "x",
            &["is no counter, so its name should not end in _total"],
        );
        check("a_bucket", Kind::Unknown, "le", &[]);
        check(
            "a",
            Kind::Gauge,
            "le",
            &["is no histogram, so it should have no label \"le\""],
        );
        check("a_gauge_c", Kind::Gauge, "x", &["has a type, \"gauge\", in its name"]);
        check(
            "a:b",
            Kind::Gauge,
            "x",
            &["has a colon in its name, which is kept for recording rules"],
        );
        check(
            "someThing",
            Kind::Gauge,
            "aB",
            &[
                "is written in camelCase, not in snake_case",
                "has a label \"aB\" in camelCase, not in snake_case",
            ],
        );
        check("wait_ms", Kind::Gauge, "x", &["abbreviates its unit as \"ms\""]);
    }
}
