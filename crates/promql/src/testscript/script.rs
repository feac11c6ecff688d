//! The commands of a script, in the present and the older form of expectations.

use model::time::parse_duration;
use model::{Labels, Millis, number::parse_float};
use regex::Regex;

use super::notation::{Point, SeriesLine, parse_series};

/// A command, with the line it begins on, from 1.
#[derive(Debug, Clone)]
pub struct Command {
    /// The line.
    pub line: usize,
    /// What is to be done.
    pub kind: CommandKind,
}

/// The kinds of command.
#[derive(Debug, Clone)]
pub enum CommandKind {
    /// Empties the store.
    Clear,
    /// Adds series.
    Load {
        /// The distance of points, in milliseconds.
        step: Millis,
        /// Whether classic histograms are to be loaded as native ones as well.
        with_nhcb: bool,
        /// The series.
        series: Vec<SeriesLine>,
        /// Whether start timestamps were given.
        start_timestamps: bool,
    },
    /// Evaluates a query.
    Eval(Box<Eval>),
    /// A command that cannot be read.
    Broken(ScriptError),
}

/// A line that is no part of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub String);

/// A query with what is expected of it.
#[derive(Debug, Clone)]
pub struct Eval {
    /// The query.
    pub query: String,
    /// When it is evaluated.
    pub moments: Moments,
    /// What is expected.
    pub expect: Expect,
}

/// The moments of a query, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// An instant query.
    Instant(Millis),
    /// A range query.
    Range {
        /// The first moment.
        start: Millis,
        /// The last moment.
        end: Millis,
        /// The step.
        step: Millis,
    },
}

/// What is expected of a query.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// Whether the order of the result counts.
    pub ordered: bool,
    /// That it fails, and how.
    pub fail: Option<Text>,
    /// Warnings, each of which must appear, and no other.
    pub warn: Vec<Text>,
    /// Infos, likewise.
    pub info: Vec<Text>,
    /// That there is some warning.
    pub any_warn: bool,
    /// That there is some info.
    pub any_info: bool,
    /// That there is no warning.
    pub no_warn: bool,
    /// That there is no info.
    pub no_info: bool,
    /// The text that is the result.
    pub text: Option<String>,
    /// The number that is the result.
    pub scalar: Option<f64>,
    /// The series of the result.
    pub series: Vec<(Labels, Vec<Point>)>,
    /// The moments of a range vector that an instant query gives.
    pub range_vector: Option<(Millis, Millis, Millis)>,
}

/// A text that is expected.
#[derive(Debug, Clone)]
pub enum Text {
    /// Whatever it says.
    Any,
    /// This text.
    Exactly(String),
    /// A text in which this matches.
    Pattern(Regex),
}

impl Text {
    /// Whether `text` is expected.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(want) => want == text,
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Exactly(text) => write!(f, "{text:?}"),
            Self::Pattern(pattern) => write!(f, "/{pattern}/"),
        }
    }
}

/// Reads a script. A command that cannot be read is [`CommandKind::Broken`], the others stand.
#[must_use]
pub fn parse_script(text: &str) -> Vec<Command> {
    let lines: Vec<&str> = text
        .lines()
        .map(|l| if is_comment(l) { "" } else { l.trim() })
        .collect();
    let mut commands = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let number = at + 1;
        at += 1;
        if line.is_empty() {
            continue;
        }
        let body_end = at + lines[at..].iter().take_while(|l| !l.is_empty()).count();
        let word = line.split([' ', '\t']).next().unwrap_or("").to_ascii_lowercase();
        let mut kind = if word == "clear" {
            Ok(CommandKind::Clear)
        } else if word.starts_with("load") {
            let body = &lines[at..body_end];
            at = body_end;
            parse_load(line, body)
        } else if word.starts_with("eval") {
            let body = &lines[at..body_end];
            let (used, parsed) = parse_eval(line, body);
            at += used;
            parsed
        } else {
            Err(ScriptError(format!("invalid command {line:?}")))
        };
        if let Err(error) = kind {
            kind = Ok(CommandKind::Broken(error));
        }
        commands.extend(kind.map(|kind| Command { line: number, kind }));
    }
    commands
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

type Parsed<T> = Result<T, ScriptError>;

fn error<T>(text: impl Into<String>) -> Parsed<T> {
    Err(ScriptError(text.into()))
}

fn parse_load(line: &str, body: &[&str]) -> Parsed<CommandKind> {
    let (command, step) = word(line);
    let with_nhcb = match command.to_ascii_lowercase().as_str() {
        "load" => false,
        "load_with_nhcb" => true,
        _ => return error("a load command is load or load_with_nhcb with a step"),
    };
    let is_start_timestamps = |line: &str| line.split([' ', '\t']).next().is_some_and(|w| w.ends_with("@st"));
    let start_timestamps = body.iter().any(|l| is_start_timestamps(l));
    let series = body
        .iter()
        .filter(|l| !is_start_timestamps(l))
        .map(|l| parse_series(l).map_err(|e| ScriptError(e.to_string())))
        .collect::<Parsed<Vec<_>>>()?;
    Ok(CommandKind::Load {
        step: duration(step)?,
        with_nhcb,
        series,
        start_timestamps,
    })
}

/// Reads an evaluation; tells how many lines of the body belong to it.
fn parse_eval(line: &str, body: &[&str]) -> (usize, Parsed<CommandKind>) {
    let mut used = body.len();
    let parsed = parse_eval_line(line).and_then(|mut eval| {
        let old_fail = eval.expect.fail.is_some();
        for (i, line) in body.iter().enumerate() {
            let last = parse_expectation(line, old_fail, &mut eval)?;
            if last {
                used = i + 1;
                break;
            }
        }
        Ok(CommandKind::Eval(Box::new(eval)))
    });
    (used, parsed)
}

fn parse_eval_line(line: &str) -> Parsed<Eval> {
    let (command, rest) = word(line);
    let mut expect = Expect::default();
    match command.to_ascii_lowercase().as_str() {
        "eval" => {}
        "eval_ordered" => expect.ordered = true,
        "eval_fail" => expect.fail = Some(Text::Any),
        "eval_warn" => expect.any_warn = true,
        "eval_info" => expect.any_info = true,
        other => return error(format!("invalid evaluation command {other:?}")),
    }
    let (kind, rest) = word(rest);
    let (moments, query) = match kind {
        "instant" => {
            let rest = keyword(rest, "at")?;
            let (at, query) = word(rest);
            (Moments::Instant(duration(at)?), query)
        }
        "range" => {
            let (start, rest) = word(keyword(rest, "from")?);
            let (end, rest) = word(keyword(rest, "to")?);
            let (step, query) = word(keyword(rest, "step")?);
            let (start, end, step) = (duration(start)?, duration(end)?, duration(step)?);
            if end < start {
                return error("the end of the range lies before its start");
            }
            (Moments::Range { start, end, step }, query)
        }
        _ => return error("an evaluation is instant or range"),
    };
    if query.is_empty() {
        return error("an evaluation needs a query");
    }
    Ok(Eval {
        query: query.to_owned(),
        moments,
        expect,
    })
}

/// Reads one line below an evaluation; `true` when no line can follow.
fn parse_expectation(line: &str, old_fail: bool, eval: &mut Eval) -> Parsed<bool> {
    let expect = &mut eval.expect;
    if old_fail && let Some(message) = line.strip_prefix("expected_fail_message") {
        expect.fail = Some(Text::Exactly(message.trim().to_owned()));
        return Ok(true);
    }
    if old_fail && let Some(pattern) = line.strip_prefix("expected_fail_regexp") {
        expect.fail = Some(Text::Pattern(regex(pattern.trim())?));
        return Ok(true);
    }
    if let Some(rest) = line.strip_prefix("expect range vector") {
        let (start, rest) = word(keyword(rest, "from")?);
        let (end, rest) = word(keyword(rest, "to")?);
        let step = keyword(rest, "step")?;
        expect.range_vector = Some((duration(start)?, duration(end)?, duration(step)?));
        return Ok(false);
    }
    if let Some(rest) = line.strip_prefix("expect string") {
        expect.text = Some(quoted(rest.trim())?);
        return Ok(false);
    }
    if line == "expect" || line.starts_with("expect ") {
        parse_expect(line["expect".len()..].trim(), expect)?;
        return Ok(false);
    }
    if let Some(number) = parse_float(line) {
        expect.scalar = Some(number);
        return Ok(true);
    }
    let SeriesLine { labels, points } = parse_series(line).map_err(|e| ScriptError(e.to_string()))?;
    let instant = matches!(eval.moments, Moments::Instant(_)) && expect.range_vector.is_none();
    if instant && points.len() > 1 {
        return error("an instant query gives one value a series; \"expect range vector\" allows more");
    }
    expect.series.retain(|(had, _)| *had != labels);
    expect.series.push((labels, points));
    Ok(false)
}

fn parse_expect(text: &str, expect: &mut Expect) -> Parsed<()> {
    let (kind, rest) = word(text);
    let want = if rest.is_empty() {
        Text::Any
    } else if let Some(message) = rest.strip_prefix("msg:") {
        Text::Exactly(message.trim().to_owned())
    } else if let Some(pattern) = rest.strip_prefix("regex:") {
        Text::Pattern(regex(pattern.trim())?)
    } else {
        return error(format!("expect {kind} takes msg: or regex:, not {rest:?}"));
    };
    match kind {
        "ordered" => expect.ordered = true,
        "fail" if expect.fail.is_some() => return error("expect fail stands twice"),
        "fail" => expect.fail = Some(want),
        "warn" => expect.warn.push(want),
        "info" => expect.info.push(want),
        "no_warn" => expect.no_warn = true,
        "no_info" => expect.no_info = true,
        other => return error(format!("expect does not know {other:?}")),
    }
    if (expect.no_warn && !expect.warn.is_empty()) || (expect.no_info && !expect.info.is_empty()) {
        return error("an annotation is both expected and not");
    }
    Ok(())
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// What follows a word that must stand there.
fn keyword<'a>(text: &'a str, want: &str) -> Parsed<&'a str> {
    match word(text) {
        (got, rest) if got == want => Ok(rest),
        (got, _) => error(format!("expected {want:?}, not {got:?}")),
    }
}

fn duration(text: &str) -> Parsed<Millis> {
    parse_duration(text.trim()).map_err(|e| ScriptError(e.to_string()))
}

fn regex(pattern: &str) -> Parsed<Regex> {
    Regex::new(pattern).map_err(|e| ScriptError(e.to_string()))
}

/// A quoted text, read as the language reads it.
fn quoted(text: &str) -> Parsed<String> {
    match crate::parse(text).map(|e| e.kind) {
        Ok(crate::ast::ExprKind::Text(text)) => Ok(text),
        _ => error(format!("expected a quoted string, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> CommandKind {
        let mut commands = parse_script(text);
        assert_eq!(commands.len(), 1, "{commands:?}");
        commands.remove(0).kind
    }

    #[test]
    fn an_evaluation_takes_old_and_new_expectations() {
        let CommandKind::Eval(eval) = only("eval_fail instant at 5m x\n\texpected_fail_message no\n") else {
            panic!("not an evaluation");
        };
        assert!(eval.expect.fail.is_some_and(|f| f.accepts("no") && !f.accepts("yes")));
        assert_eq!(eval.moments, Moments::Instant(300_000));
        let text = "eval range from 0 to 1m step 10s sum(x)\n  expect warn regex: a+\n  expect no_info\n  {} 1x6\n";
        let CommandKind::Eval(eval) = only(text) else {
            panic!("not an evaluation");
        };
        assert_eq!(eval.query, "sum(x)");
        assert!(eval.expect.no_info && eval.expect.warn[0].accepts("baa"));
        assert_eq!(eval.expect.series[0].1.len(), 7);
    }

    #[test]
    fn a_broken_command_leaves_the_others_alone() {
        let commands = parse_script("what is this\n\nload 5m\n  x 1 2\n\neval instant at 1m\n\nclear");
        let kinds: Vec<bool> = commands
            .iter()
            .map(|c| matches!(c.kind, CommandKind::Broken(_)))
            .collect();
        assert_eq!(kinds, [true, false, true, false]);
        assert_eq!(commands[1].line, 3);
    }
}
