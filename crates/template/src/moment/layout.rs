//! Go's layouts: a date is written and read after the example `Mon Jan 2 15:04:05 -0700 MST 2006`.

use std::fmt::Write as _;

use jiff::ZonedDateTime;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{Offset, TimeZone};

/// A part of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Literal(&'a str),
    Year,
    YearShort,
    Month {
        is_long: bool,
    },
    MonthNumber {
        is_padded: bool,
    },
    Weekday {
        is_long: bool,
    },
    Day(Pad),
    YearDay(Pad),
    Hour24,
    Hour12 {
        is_padded: bool,
    },
    Minute {
        is_padded: bool,
    },
    Second {
        is_padded: bool,
    },
    /// `.000` always so many digits, `.999` without zeros at the end.
    Fraction {
        mark: char,
        digits: usize,
        is_trimmed: bool,
    },
    HalfDay {
        is_upper: bool,
    },
    /// `Z07:00` writes `Z` for no offset; parts of an hour and of a minute as the layout has them.
    Offset {
        is_z: bool,
        has_colon: bool,
        parts: usize,
    },
    ZoneName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pad {
    None,
    Zero,
    Space,
}

/// The examples, those first that begin like another.
const PARTS: &[(&str, Part<'static>)] = &[
    ("January", Part::Month { is_long: true }),
    ("Jan", Part::Month { is_long: false }),
    ("Monday", Part::Weekday { is_long: true }),
    ("Mon", Part::Weekday { is_long: false }),
    ("MST", Part::ZoneName),
    ("2006", Part::Year),
    ("002", Part::YearDay(Pad::Zero)),
    ("__2", Part::YearDay(Pad::Space)),
    ("01", Part::MonthNumber { is_padded: true }),
    ("02", Part::Day(Pad::Zero)),
    ("03", Part::Hour12 { is_padded: true }),
    ("04", Part::Minute { is_padded: true }),
    ("05", Part::Second { is_padded: true }),
    ("06", Part::YearShort),
    ("15", Part::Hour24),
    ("PM", Part::HalfDay { is_upper: true }),
    ("pm", Part::HalfDay { is_upper: false }),
    ("_2", Part::Day(Pad::Space)),
    ("1", Part::MonthNumber { is_padded: false }),
    ("2", Part::Day(Pad::None)),
    ("3", Part::Hour12 { is_padded: false }),
    ("4", Part::Minute { is_padded: false }),
    ("5", Part::Second { is_padded: false }),
    ("-07:00:00", offset(false, true, 3)),
    ("-070000", offset(false, false, 3)),
    ("-07:00", offset(false, true, 2)),
    ("-0700", offset(false, false, 2)),
    ("-07", offset(false, false, 1)),
    ("Z07:00:00", offset(true, true, 3)),
    ("Z070000", offset(true, false, 3)),
    ("Z07:00", offset(true, true, 2)),
    ("Z0700", offset(true, false, 2)),
    ("Z07", offset(true, false, 1)),
];

const fn offset(is_z: bool, has_colon: bool, parts: usize) -> Part<'static> {
    Part::Offset { is_z, has_colon, parts }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) fn month_name(month: i8) -> &'static str {
    let at = usize::try_from(month - 1).unwrap_or(0);
    MONTHS.get(at).copied().unwrap_or("")
}

pub(super) fn weekday_name(day: Weekday) -> &'static str {
    let at = usize::try_from(day.to_sunday_zero_offset()).unwrap_or(0);
    WEEKDAYS.get(at).copied().unwrap_or("")
}

/// The parts of a layout, in order.
fn parts(layout: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut literal = 0;
    let mut at = 0;
    while at < layout.len() {
        let rest = &layout[at..];
        if let Some((part, len)) = part_at(layout, at) {
            if literal < at {
                parts.push(Part::Literal(&layout[literal..at]));
            }
            parts.push(part);
            at += len;
            literal = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    if literal < layout.len() {
        parts.push(Part::Literal(&layout[literal..]));
    }
    parts
}

fn part_at(layout: &str, at: usize) -> Option<(Part<'static>, usize)> {
    let rest = &layout[at..];
    if let Some(found) = fraction(rest) {
        return Some(found);
    }
    let (text, part) = PARTS.iter().find(|(text, _)| rest.starts_with(text))?;
    // `_2006` is an underscore and a year; `Jan` within a longer word is none.
    let after = &rest[text.len()..];
    let is_word = matches!(*text, "Jan" | "Mon") && after.starts_with(|c: char| c.is_ascii_lowercase());
    let is_year = *text == "_2" && rest.starts_with("_2006");
    (!is_word && !is_year).then_some((*part, text.len()))
}

fn fraction(rest: &str) -> Option<(Part<'static>, usize)> {
    let mark = rest.chars().next().filter(|c| matches!(c, '.' | ','))?;
    let digit = rest[1..].chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let digits = rest[1..].chars().take_while(|c| *c == digit).count();
    let ends = !rest[1 + digits..].starts_with(|c: char| c.is_ascii_digit());
    let is_trimmed = digit == '9';
    ends.then_some((
        Part::Fraction {
            mark,
            digits,
            is_trimmed,
        },
        1 + digits,
    ))
}

/// Writes a moment after the example of `layout`.
pub(crate) fn format(layout: &str, zoned: &ZonedDateTime) -> String {
    let mut out = String::new();
    for part in parts(layout) {
        // Writing to a text cannot fail.
        let _ = write_part(&mut out, part, zoned);
    }
    out
}

fn write_part(out: &mut String, part: Part<'_>, zoned: &ZonedDateTime) -> std::fmt::Result {
    let hour12 = match zoned.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    match part {
        Part::Literal(text) => write!(out, "{text}"),
        Part::Year => write!(out, "{:04}", zoned.year()),
        Part::YearShort => write!(out, "{:02}", zoned.year().rem_euclid(100)),
        Part::Month { is_long } => write!(out, "{}", short(month_name(zoned.month()), is_long)),
        Part::Weekday { is_long } => write!(out, "{}", short(weekday_name(zoned.weekday()), is_long)),
        Part::MonthNumber { is_padded } => write_number(out, zoned.month(), is_padded),
        Part::Day(Pad::Space) => write!(out, "{:2}", zoned.day()),
        Part::Day(pad) => write_number(out, zoned.day(), pad == Pad::Zero),
        Part::YearDay(Pad::Space) => write!(out, "{:3}", zoned.day_of_year()),
        Part::YearDay(_) => write!(out, "{:03}", zoned.day_of_year()),
        Part::Hour24 => write!(out, "{:02}", zoned.hour()),
        Part::Hour12 { is_padded } => write_number(out, hour12, is_padded),
        Part::Minute { is_padded } => write_number(out, zoned.minute(), is_padded),
        Part::Second { is_padded } => write_number(out, zoned.second(), is_padded),
        Part::HalfDay { is_upper } => {
            let text = if zoned.hour() < 12 { "am" } else { "pm" };
            match is_upper {
                true => write!(out, "{}", text.to_uppercase()),
                false => write!(out, "{text}"),
            }
        }
        Part::Fraction {
            mark,
            digits,
            is_trimmed,
        } => {
            let all = format!("{:09}", zoned.subsec_nanosecond());
            let mut shown = all.get(..digits.min(9)).unwrap_or(&all);
            if is_trimmed {
                shown = shown.trim_end_matches('0');
            }
            match shown.is_empty() {
                true => Ok(()),
                false => write!(out, "{mark}{shown}"),
            }
        }
        Part::Offset { is_z, has_colon, parts } => write_offset(out, zoned.offset().seconds(), is_z, has_colon, parts),
        Part::ZoneName => write!(out, "{}", zone_name(zoned)),
    }
}

fn short(name: &str, is_long: bool) -> &str {
    if is_long { name } else { name.get(..3).unwrap_or(name) }
}

fn write_number(out: &mut String, number: i8, is_padded: bool) -> std::fmt::Result {
    match is_padded {
        true => write!(out, "{number:02}"),
        false => write!(out, "{number}"),
    }
}

fn write_offset(out: &mut String, seconds: i32, is_z: bool, has_colon: bool, parts: usize) -> std::fmt::Result {
    if is_z && seconds == 0 {
        return write!(out, "Z");
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    write!(out, "{sign}{:02}", seconds / 3600)?;
    for part in [seconds / 60 % 60, seconds % 60].iter().take(parts - 1) {
        let colon = if has_colon { ":" } else { "" };
        write!(out, "{colon}{part:02}")?;
    }
    Ok(())
}

fn zone_name(zoned: &ZonedDateTime) -> String {
    zoned.strftime("%Z").to_string()
}

/// Reads a moment written after the example of `layout`; without a zone it is in UTC.
///
/// # Errors
///
/// What does not fit.
pub(crate) fn read(layout: &str, text: &str) -> Result<ZonedDateTime, String> {
    let error = |rest: &str| format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?}");
    let mut found = Found::default();
    let mut rest = text;
    for part in parts(layout) {
        rest = found.read(part, rest).ok_or_else(|| error(rest))?;
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {rest:?}"));
    }
    found
        .zoned()
        .ok_or_else(|| format!("parsing time {text:?}: out of range"))
}

/// What has been read of a date.
struct Found {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    nanos: i32,
    is_afternoon: Option<bool>,
    offset_seconds: i32,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            year: 0,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            nanos: 0,
            is_afternoon: None,
            offset_seconds: 0,
        }
    }
}

impl Found {
    fn read<'a>(&mut self, part: Part<'_>, rest: &'a str) -> Option<&'a str> {
        match part {
            Part::Literal(text) => rest.strip_prefix(text),
            Part::Year => digits(rest, 4, 4, &mut self.year),
            Part::YearShort => {
                let left = digits(rest, 2, 2, &mut self.year)?;
                self.year += if self.year >= 69 { 1900 } else { 2000 };
                Some(left)
            }
            Part::Month { is_long } => {
                let (at, left) = name(&MONTHS, is_long, rest)?;
                self.month = i8::try_from(at).ok()? + 1;
                Some(left)
            }
            Part::Weekday { is_long } => name(&WEEKDAYS, is_long, rest).map(|found| found.1),
            Part::MonthNumber { is_padded } => digits(rest, 1 + usize::from(is_padded), 2, &mut self.month),
            Part::Day(Pad::Zero) => digits(rest, 2, 2, &mut self.day),
            Part::Day(Pad::None) => digits(rest, 1, 2, &mut self.day),
            Part::Day(Pad::Space) => digits(rest.trim_start_matches(' '), 1, 2, &mut self.day),
            Part::YearDay(_) => None,
            Part::Hour24 => digits(rest, 2, 2, &mut self.hour),
            Part::Hour12 { is_padded } => digits(rest, 1 + usize::from(is_padded), 2, &mut self.hour),
            Part::Minute { is_padded } => digits(rest, 1 + usize::from(is_padded), 2, &mut self.minute),
            Part::Second { is_padded } => {
                let left = digits(rest, 1 + usize::from(is_padded), 2, &mut self.second)?;
                // A fraction may follow although the layout has none.
                self.fraction(left)
            }
            Part::Fraction { .. } => self.fraction(rest),
            Part::HalfDay { .. } => {
                self.is_afternoon = Some(rest.get(..2)?.eq_ignore_ascii_case("pm"));
                (rest[..2].eq_ignore_ascii_case("am") || self.is_afternoon == Some(true)).then_some(&rest[2..])
            }
            Part::Offset { is_z, has_colon, parts } => self.offset(rest, is_z, has_colon, parts),
            Part::ZoneName => {
                let len = rest.bytes().take_while(u8::is_ascii_uppercase).count();
                (len >= 3).then_some(&rest[len..])
            }
        }
    }

    fn fraction<'a>(&mut self, rest: &'a str) -> Option<&'a str> {
        let Some(body) = rest.strip_prefix(['.', ',']) else {
            return Some(rest);
        };
        let len = body.bytes().take_while(u8::is_ascii_digit).count();
        let shown = body.get(..len.min(9))?;
        self.nanos = format!("{shown:0<9}").parse().ok()?;
        Some(&body[len..])
    }

    fn offset<'a>(&mut self, rest: &'a str, is_z: bool, has_colon: bool, parts: usize) -> Option<&'a str> {
        if let (true, Some(left)) = (is_z, rest.strip_prefix('Z')) {
            return Some(left);
        }
        let sign = match rest.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let mut left = &rest[1..];
        let mut seconds = 0;
        for (at, unit) in [3600, 60, 1].into_iter().take(parts).enumerate() {
            if has_colon && at > 0 {
                left = left.strip_prefix(':')?;
            }
            let mut count = 0_i32;
            left = digits(left, 2, 2, &mut count)?;
            seconds += count * unit;
        }
        self.offset_seconds = sign * seconds;
        Some(left)
    }

    fn zoned(&self) -> Option<ZonedDateTime> {
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let date = Date::new(self.year, self.month, self.day).ok()?;
        let time = Time::new(hour, self.minute, self.second, self.nanos).ok()?;
        let zone = match self.offset_seconds {
            0 => TimeZone::UTC,
            seconds => TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
        };
        date.to_datetime(time).to_zoned_datetime(zone).ok()
    }
}

fn digits<'a, T: std::str::FromStr>(rest: &'a str, least: usize, most: usize, into: &mut T) -> Option<&'a str> {
    let len = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if len < least {
        return None;
    }
    *into = rest[..len].parse().ok()?;
    Some(&rest[len..])
}

fn name<'a>(names: &[&str], is_long: bool, rest: &'a str) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(at, name)| {
        let name = short(name, is_long);
        let head = rest.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (at, &rest[name.len()..]))
    })
}
