//! Whether a moment lies in a named time.

use config::alertmanager::{Interval, TimeInterval};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::Millis;

/// Whether one of the interval's parts holds at a moment.
#[must_use]
pub fn contains(interval: &TimeInterval, at: Millis) -> bool {
    interval.intervals.iter().any(|part| holds(part, at))
}

/// Whether every condition of a part holds at a moment, in the part's zone.
#[must_use]
pub fn holds(part: &Interval, at: Millis) -> bool {
    // A moment outside of what the calendar can name is in no interval.
    let Ok(moment) = Timestamp::from_millisecond(at) else {
        return false;
    };
    let local = part.zone.as_ref().unwrap_or(&TimeZone::UTC).to_datetime(moment);
    let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
    let weekday = i32::from(local.date().weekday().to_sunday_zero_offset());
    let times = part.times.as_ref();
    times.is_none_or(|times| times.iter().any(|t| (t.start..t.end).contains(&minute)))
        && day_of_month(part, &local)
        && within(part.months.as_deref(), i32::from(local.month()))
        && within(part.weekdays.as_deref(), weekday)
        && within(part.years.as_deref(), i32::from(local.year()))
}

fn within(ranges: Option<&[(i32, i32)]>, value: i32) -> bool {
    ranges.is_none_or(|ranges| ranges.iter().any(|(first, last)| (*first..=*last).contains(&value)))
}

/// Negative days count from the month's end; what lies outside of the month is brought to its edge.
fn day_of_month(part: &Interval, local: &DateTime) -> bool {
    let Some(ranges) = &part.days_of_month else {
        return true;
    };
    let days = i32::from(local.date().days_in_month());
    let day = i32::from(local.day());
    let placed = |n: i32| if n < 0 { days + n + 1 } else { n };
    ranges.iter().any(|(first, last)| {
        let (first, last) = (placed(*first), placed(*last));
        first <= days && (first.max(-days)..=last.clamp(-days, days)).contains(&day)
    })
}
