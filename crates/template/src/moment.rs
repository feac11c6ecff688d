//! Moments and lengths of time, with the methods of Go's `time.Time` and `time.Duration`.

pub(crate) mod layout;

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, ZonedDateTime};
use model::Millis;

use crate::value::{Object, Value};

/// A moment in a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment(Box<ZonedDateTime>);

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(i64);

impl Moment {
    /// Milliseconds since the Unix epoch, in UTC; what lies beyond the years -9999 to 9999 stops there.
    #[must_use]
    pub fn from_millis(millis: Millis) -> Self {
        let limits = (Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
        let millis = millis.clamp(limits.0, limits.1);
        let moment = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
        Self(Box::new(moment.to_zoned_datetime(TimeZone::UTC)))
    }

    /// Go's zero time, the first moment of the year 1: "never", for an alert that has not ended.
    #[must_use]
    pub fn zero() -> Self {
        Self::from_millis(ZERO_MILLIS)
    }

    pub(crate) fn from_zoned(zoned: ZonedDateTime) -> Self {
        Self(Box::new(zoned))
    }

    pub(crate) fn zoned(&self) -> &ZonedDateTime {
        &self.0
    }

    pub(crate) fn in_zone(&self, name: &str) -> Result<Self, String> {
        let zone = match name {
            "" | "UTC" => TimeZone::UTC,
            _ => TimeZone::get(name).map_err(|_| format!("unknown time zone {name}"))?,
        };
        Ok(Self(Box::new(self.0.with_time_zone(zone))))
    }

    /// The time from `earlier` to this.
    pub(crate) fn since(&self, earlier: &Self) -> Span {
        let nanos = self.0.timestamp().as_nanosecond() - earlier.0.timestamp().as_nanosecond();
        Span(clamp(nanos))
    }

    fn nanos(&self) -> i128 {
        self.0.timestamp().as_nanosecond()
    }

    fn add(&self, span: Span) -> Result<Self, String> {
        let moved = self.0.checked_add(SignedDuration::from_nanos(span.0));
        moved.map(Self::from_zoned).map_err(|e| e.to_string())
    }

    /// Calls a method; `None` if there is none of this name.
    pub(crate) fn call(&self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        let zoned = self.zoned();
        let now = zoned.timestamp();
        let value = match (method, args) {
            ("Format", [layout]) => Value::from(layout::format(layout.as_text()?, zoned)),
            ("String", []) => Value::from(self.to_string()),
            ("Unix", []) => Value::Int(now.as_second()),
            ("UnixMilli", []) => Value::Int(now.as_millisecond()),
            ("UnixMicro", []) => Value::Int(now.as_microsecond()),
            ("UnixNano", []) => Value::Int(clamp(now.as_nanosecond())),
            ("Year", []) => Value::Int(zoned.year().into()),
            ("Month", []) => named("time.Month", zoned.month().into(), layout::month_name(zoned.month())),
            ("Day", []) => Value::Int(zoned.day().into()),
            ("YearDay", []) => Value::Int(zoned.day_of_year().into()),
            ("Hour", []) => Value::Int(zoned.hour().into()),
            ("Minute", []) => Value::Int(zoned.minute().into()),
            ("Second", []) => Value::Int(zoned.second().into()),
            ("Nanosecond", []) => Value::Int(zoned.subsec_nanosecond().into()),
            ("Weekday", []) => {
                let day = zoned.weekday();
                named(
                    "time.Weekday",
                    day.to_sunday_zero_offset().into(),
                    layout::weekday_name(day),
                )
            }
            ("IsZero", []) => Value::Bool(*self == Self::zero()),
            ("UTC" | "Local", []) => Value::Moment(Self::from_zoned(zoned.with_time_zone(TimeZone::UTC))),
            ("Add", [Value::Span(span)]) => return Some(self.add(*span).map(Value::Moment)),
            ("AddDate", [Value::Int(years), Value::Int(months), Value::Int(days)]) => {
                return Some(self.add_date(*years, *months, *days));
            }
            ("Sub", [Value::Moment(other)]) => Value::Span(self.since(other)),
            ("Before", [Value::Moment(other)]) => Value::Bool(self.nanos() < other.nanos()),
            ("After", [Value::Moment(other)]) => Value::Bool(self.nanos() > other.nanos()),
            ("Equal", [Value::Moment(other)]) => Value::Bool(self.nanos() == other.nanos()),
            ("Truncate" | "Round", [Value::Span(span)]) => return Some(self.round(*span, method == "Round")),
            (
                "Format" | "Add" | "AddDate" | "Sub" | "Before" | "After" | "Equal" | "Truncate" | "Round" | "Unix"
                | "String" | "UTC",
                _,
            ) => return Some(Err(format!("wrong arguments for {method}"))),
            _ => return None,
        };
        Some(Ok(value))
    }

    fn add_date(&self, years: i64, months: i64, days: i64) -> Result<Value, String> {
        let limit = 100_000;
        if [years, months, days].iter().any(|n| n.abs() > limit) {
            return Err("date out of range".to_owned());
        }
        let moved = self.0.checked_add(years.years().months(months).days(days));
        moved
            .map(|zoned| Value::Moment(Self::from_zoned(zoned)))
            .map_err(|e| e.to_string())
    }

    /// Rounds to a multiple of `span` since the zero time.
    fn round(&self, span: Span, to_nearest: bool) -> Result<Value, String> {
        if span.0 <= 0 {
            return Ok(Value::Moment(self.clone()));
        }
        let step = i128::from(span.0);
        let rest = (self.nanos() - i128::from(ZERO_MILLIS) * 1_000_000).rem_euclid(step);
        let up = to_nearest && rest * 2 >= step;
        let moved = if up { step - rest } else { -rest };
        self.add(Span(clamp(moved))).map(Value::Moment)
    }
}

/// The first moment of the year 1.
const ZERO_MILLIS: Millis = -62_135_596_800_000;

fn clamp(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// `2015-06-23 13:19:44.128 +0000 UTC`
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&layout::format("2006-01-02 15:04:05.999999999 -0700 MST", self.zoned()))
    }
}

impl Span {
    /// So many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    pub(crate) fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub(crate) fn call(self, method: &str, args: &[Value]) -> Option<Result<Value, String>> {
        let value = match (method, args) {
            ("String", []) => Value::from(self.to_string()),
            ("Hours", []) => Value::Float(self.seconds() / 3600.0),
            ("Minutes", []) => Value::Float(self.seconds() / 60.0),
            ("Seconds", []) => Value::Float(self.seconds()),
            ("Milliseconds", []) => Value::Int(self.0 / 1_000_000),
            ("Microseconds", []) => Value::Int(self.0 / 1_000),
            ("Nanoseconds", []) => Value::Int(self.0),
            ("Abs", []) => Value::Span(Self(self.0.saturating_abs())),
            ("Truncate", [Value::Span(step)]) if step.0 > 0 => Value::Span(Self(self.0 - self.0 % step.0)),
            ("Round", [Value::Span(step)]) if step.0 > 0 => {
                let half = step.0 / 2 * self.0.signum();
                let near = self.0.saturating_add(half);
                Value::Span(Self(near - near % step.0))
            }
            ("Truncate" | "Round", [Value::Span(_)]) => Value::Span(self),
            _ => return None,
        };
        Some(Ok(value))
    }
}

/// `1h2m3.5s`, `30m0s`, `1.5ms`, `0s`
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", nanos as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{}ms", nanos as f64 / 1e6),
            _ => {
                let (whole, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
                let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{seconds}")?;
                if fraction > 0 {
                    let digits = format!("{fraction:09}");
                    write!(f, ".{}", digits.trim_end_matches('0'))?;
                }
                f.write_str("s")
            }
        }
    }
}

/// A number that prints as a name.
#[derive(Debug)]
struct Named {
    type_name: &'static str,
    number: i64,
    name: &'static str,
}

fn named(type_name: &'static str, number: i64, name: &'static str) -> Value {
    Value::Object(std::sync::Arc::new(Named {
        type_name,
        number,
        name,
    }))
}

impl Object for Named {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Int(self.number))
    }

    fn text(&self) -> Option<String> {
        Some(self.name.to_owned())
    }

    fn call(&self, method: &str, _args: &[Value]) -> Option<Result<Value, String>> {
        (method == "String").then(|| Ok(Value::text(self.name)))
    }
}
