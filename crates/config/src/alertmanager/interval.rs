//! Times of the week, month and year, with names.

use jiff::tz::TimeZone;

use crate::yaml::{Decode, Node, Result};

/// A name for some times.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeInterval {
    /// The name that routes use.
    pub name: String,
    /// A moment is inside when it is in one of these.
    pub intervals: Vec<Interval>,
}

/// Conditions that must all hold; `None` is no condition, an empty list is never.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interval {
    /// Times of the day.
    pub times: Option<Vec<TimeRange>>,
    /// Days of the week, first and last; 0 is Sunday.
    pub weekdays: Option<Vec<(i32, i32)>>,
    /// Days of the month, first and last; negative ones count from the end, -1 being the last.
    pub days_of_month: Option<Vec<(i32, i32)>>,
    /// Months, first and last; 1 is January.
    pub months: Option<Vec<(i32, i32)>>,
    /// Years, first and last.
    pub years: Option<Vec<(i32, i32)>>,
    /// Where; `None` is UTC.
    pub zone: Option<TimeZone>,
}

/// A part of the day, in minutes since midnight: start included, end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First minute.
    pub start: i32,
    /// One past the last minute; 1440 is the end of the day.
    pub end: i32,
}

const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl TimeInterval {
    /// Reads a named interval; `what` stands in messages.
    pub(super) fn read(node: &Node, what: &str) -> Result<Self> {
        let mut fields = node.fields()?;
        let name: String = fields.or_empty("name")?;
        if name.is_empty() {
            return Err(fields.fault(format!("missing name in {what}")));
        }
        let intervals = fields.or_empty("time_intervals")?;
        fields.finish()?;
        Ok(Self { name, intervals })
    }
}

impl Decode for Interval {
    fn decode(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let interval = Self {
            times: fields.part("times").map(Node::read).transpose()?,
            weekdays: fields.part("weekdays").map(|n| ranges(n, weekday_range)).transpose()?,
            days_of_month: fields.part("days_of_month").map(|n| ranges(n, day_range)).transpose()?,
            months: fields.part("months").map(|n| ranges(n, month_range)).transpose()?,
            years: fields.part("years").map(|n| ranges(n, year_range)).transpose()?,
            zone: fields.part("location").map(zone).transpose()?,
        };
        fields.finish()?;
        Ok(interval)
    }
}

impl Decode for TimeRange {
    fn decode(node: &Node) -> Result<Self> {
        let mut fields = node.fields()?;
        let start: String = fields.or_empty("start_time")?;
        let end: String = fields.or_empty("end_time")?;
        fields.finish()?;
        if start.is_empty() || end.is_empty() {
            return Err(node.fault("both start and end times must be provided"));
        }
        let start = minutes(&start).map_err(|m| fields.fault_at("start_time", m))?;
        let end = minutes(&end).map_err(|m| fields.fault_at("end_time", m))?;
        if start >= end {
            return Err(node.fault("start time cannot be equal or greater than end time"));
        }
        Ok(Self { start, end })
    }
}

/// `09:30` in minutes since midnight; `24:00` is the end of the day.
fn minutes(text: &str) -> std::result::Result<i32, String> {
    let digits = |part: &str| {
        part.parse::<i32>()
            .ok()
            .filter(|_| part.bytes().all(|b| b.is_ascii_digit()))
    };
    let parts = text.split_once(':').filter(|(h, m)| h.len() == 2 && m.len() == 2);
    let time = parts.and_then(|(h, m)| Some((digits(h)?, digits(m)?)));
    match time {
        Some((24, 0)) => Ok(1440),
        Some((hour @ 0..24, minute @ 0..60)) => Ok(hour * 60 + minute),
        _ => Err(format!("couldn't parse timestamp {text}, invalid format")),
    }
}

type Range = std::result::Result<(i32, i32), String>;

/// Reads `a` or `a:b` in every place of a list.
fn ranges(node: &Node, read: fn(&str) -> Range) -> Result<Vec<(i32, i32)>> {
    let read = |place: &Node| {
        let text: String = place.read()?;
        read(&text.to_lowercase()).map_err(|message| place.fault(message))
    };
    node.list()?.iter().map(read).collect()
}

fn range(text: &str, member: impl Fn(&str) -> std::result::Result<i32, String>) -> Range {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [one] => member(one).map(|n| (n, n)),
        [first, last] => Ok((member(first)?, member(last)?)),
        _ => Err(format!("couldn't parse range {text}, invalid format")),
    }
}

fn number(text: &str) -> std::result::Result<i32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn weekday_range(text: &str) -> Range {
    let day = |text: &str| match WEEKDAYS.iter().position(|day| *day == text) {
        Some(at) => Ok(i32::try_from(at).unwrap_or(0)),
        None => Err(format!("{text} is not a valid weekday")),
    };
    let (first, last) = range(text, day)?;
    if first > last {
        return Err("start day cannot be before end day".to_owned());
    }
    Ok((first, last))
}

fn day_range(text: &str) -> Range {
    let (first, last) = range(text, number)?;
    for day in [first, last] {
        if day == 0 || !(-31..=31).contains(&day) {
            return Err(format!("{day} is not a valid day of the month: out of range"));
        }
    }
    if first < 0 && last > 0 {
        return Err("end day must be negative if start day is negative".to_owned());
    }
    // The shortest month decides whether a range from the end can ever hold a day.
    let placed = |day: i32| if day < 0 { 28 + day } else { day };
    if placed(first) > placed(last) {
        return Err(format!("end day {last} is always before start day {first}"));
    }
    Ok((first, last))
}

fn month_range(text: &str) -> Range {
    let month = |text: &str| match MONTHS.iter().position(|month| *month == text) {
        Some(at) => Ok(i32::try_from(at).unwrap_or(0) + 1),
        None => text.parse().map_err(|_| format!("{text} is not a valid month")),
    };
    let (first, last) = range(text, month)?;
    if first > last {
        let name = |n: i32| usize::try_from(n - 1).ok().and_then(|n| MONTHS.get(n)).unwrap_or(&"");
        return Err(format!(
            "end month {} is before start month {}",
            name(last),
            name(first)
        ));
    }
    Ok((first, last))
}

fn year_range(text: &str) -> Range {
    let (first, last) = range(text, number)?;
    if first > last {
        return Err(format!("end year {last} is before start year {first}"));
    }
    Ok((first, last))
}

/// Finds a zone; the empty name is UTC and `Local` this machine's.
fn zone(node: &Node) -> Result<TimeZone> {
    let name: String = node.read()?;
    match name.as_str() {
        "" | "UTC" => Ok(TimeZone::UTC),
        "Local" => Ok(TimeZone::system()),
        _ => TimeZone::get(&name).map_err(|_| node.fault(format!("unknown time zone {name}"))),
    }
}
