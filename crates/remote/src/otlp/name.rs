//! Names: OpenTelemetry's metrics and attributes in the alphabet and manner of Prometheus.

/// How names are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Translation {
    /// Underscores for what the old alphabet lacks; unit and type at the end.
    #[default]
    UnderscoresWithSuffixes,
    /// Underscores, nothing at the end.
    Underscores,
    /// As they are, with unit and type at the end.
    AsTheyAreWithSuffixes,
    /// As they are.
    AsTheyAre,
}

impl Translation {
    /// The strategy of a configuration's word; the empty word is the usual one.
    #[must_use]
    pub fn from_config(word: &str) -> Self {
        match word {
            "UnderscoreEscapingWithoutSuffixes" => Self::Underscores,
            "NoUTF8EscapingWithSuffixes" => Self::AsTheyAreWithSuffixes,
            "NoTranslation" => Self::AsTheyAre,
            _ => Self::UnderscoresWithSuffixes,
        }
    }

    const fn escapes(self) -> bool {
        matches!(self, Self::UnderscoresWithSuffixes | Self::Underscores)
    }
}

/// What the end of a name tells of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Total,
    Ratio,
    None,
}

/// Units with their words.
const UNITS: [(&str, &str); 25] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("TiBy", "tibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("TBy", "terabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
    ("%", "percent"),
];

/// Units behind a slash, in the singular.
const PER: [(&str, &str); 7] = [
    ("s", "second"),
    ("m", "minute"),
    ("h", "hour"),
    ("d", "day"),
    ("w", "week"),
    ("mo", "month"),
    ("y", "year"),
];

fn word<'a>(table: &[(&str, &'a str)], unit: &'a str) -> &'a str {
    table.iter().find(|(u, _)| *u == unit).map_or(unit, |(_, word)| word)
}

/// The words of a unit: what it counts, and per what; empty where there is nothing to say.
fn unit_words(unit: &str) -> (String, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let clean = |text: &str| tokens(text).join("_");
    let usable = |text: &str| !text.is_empty() && !text.contains(['{', '}']);
    let (main, per) = (main.trim(), per.trim());
    let main = if usable(main) && main != "1" {
        clean(word(&UNITS, main))
    } else {
        String::new()
    };
    let per = if usable(per) {
        clean(word(&PER, per))
    } else {
        String::new()
    };
    (main, per)
}

fn tokens(name: &str) -> Vec<&str> {
    name.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'))
        .filter(|t| !t.is_empty())
        .collect()
}

/// The name of a metric.
pub(super) fn metric_name(name: &str, unit: &str, ending: Ending, how: Translation) -> String {
    match how {
        Translation::AsTheyAre => name.to_owned(),
        Translation::Underscores => escaped(name),
        Translation::AsTheyAreWithSuffixes => {
            let mut out = name.to_owned();
            let (main, per) = unit_words(unit);
            let mut put = |word: &str| {
                if !word.is_empty() && !out.ends_with(word) {
                    out.push('_');
                    out.push_str(word);
                }
            };
            put(&main);
            put(&if per.is_empty() { per } else { format!("per_{per}") });
            match ending {
                Ending::Total => put("total"),
                Ending::Ratio => put("ratio"),
                Ending::None => {}
            }
            out
        }
        Translation::UnderscoresWithSuffixes => {
            let (main, per) = unit_words(unit);
            let mut words = tokens(name);
            if !main.is_empty() && !words.contains(&main.as_str()) {
                words.push(&main);
            }
            if !per.is_empty() && !words.contains(&per.as_str()) {
                words.extend(["per", &per]);
            }
            let end = match ending {
                Ending::Total => "total",
                Ending::Ratio => "ratio",
                Ending::None => "",
            };
            if !end.is_empty() {
                words.retain(|w| *w != end);
                words.push(end);
            }
            begun(words.join("_"))
        }
    }
}

fn escaped(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    begun(name.chars().map(|c| if fits(c) { c } else { '_' }).collect())
}

fn begun(name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

/// The name of a label.
pub(super) fn label_name(name: &str, how: Translation) -> String {
    if !how.escapes() || name.is_empty() {
        return name.to_owned();
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let out: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        format!("key_{out}")
    } else if out.starts_with('_') && !out.starts_with("__") {
        format!("key{out}")
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, unit: &str, ending: Ending, want: [&str; 4]) {
        let got = [
            Translation::UnderscoresWithSuffixes,
            Translation::Underscores,
            Translation::AsTheyAreWithSuffixes,
            Translation::AsTheyAre,
        ]
        .map(|how| metric_name(name, unit, ending, how));
        assert_eq!(got, want);
    }

    #[test]
    fn names_tell_unit_and_type() {
        use Ending::{None, Ratio, Total};
        let name = "http.server.duration";
        check(
            name,
            "ms",
            None,
            [
                "http_server_duration_milliseconds",
                "http_server_duration",
                "http.server.duration_milliseconds",
                name,
            ],
        );
        check(
            "io",
            "By/s",
            None,
            ["io_bytes_per_second", "io", "io_bytes_per_second", "io"],
        );
        check("n", "{call}", Total, ["n_total", "n", "n_total", "n"]);
        check(
            "total.calls",
            "1",
            Total,
            ["calls_total", "total_calls", "total.calls_total", "total.calls"],
        );
        check("busy", "1", Ratio, ["busy_ratio", "busy", "busy_ratio", "busy"]);
        check(
            "memory_bytes",
            "By",
            None,
            ["memory_bytes", "memory_bytes", "memory_bytes", "memory_bytes"],
        );
        check("2nd", "", None, ["_2nd", "_2nd", "2nd", "2nd"]);
    }

    #[test]
    fn labels_begin_with_a_letter() {
        for (name, want) in [
            ("http.method", "http_method"),
            ("1st", "key_1st"),
            ("_x", "key_x"),
            ("__x", "__x"),
        ] {
            assert_eq!(label_name(name, Translation::default()), want);
        }
        assert_eq!(label_name("http.method", Translation::AsTheyAre), "http.method");
    }
}
