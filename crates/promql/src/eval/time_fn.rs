//! Parts of dates, in UTC.

use model::Millis;

use crate::plan::Calendar;

const DAY_S: i64 = 86_400;

/// A date of the Gregorian calendar with the seconds of its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: i64,
    month: u32,
    day: u32,
    /// Days since 1970-01-01.
    days: i64,
    second: i64,
}

impl Date {
    /// The date at `seconds` since the epoch.
    fn at(seconds: i64) -> Self {
        let days = seconds.div_euclid(DAY_S);
        // Years that begin in March, so that the leap day is the last of its year.
        let from_march_0 = days + 719_468;
        let era = from_march_0.div_euclid(146_097);
        let day_of_era = from_march_0.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Self {
            year,
            month: small(month),
            day: small(day),
            days,
            second: seconds.rem_euclid(DAY_S),
        }
    }

    fn is_leap(self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    fn days_in_month(self) -> u32 {
        match self.month {
            2 if self.is_leap() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn day_of_year(self) -> u32 {
        const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let before = BEFORE.get(self.month as usize - 1).copied().unwrap_or(0);
        before + self.day + u32::from(self.month > 2 && self.is_leap())
    }
}

/// A month or day, which is small.
fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(1)
}

/// A part of the date at `seconds` since the epoch; NaN where there is no such date.
pub(super) fn part(calendar: Calendar, seconds: f64) -> f64 {
    /// Some three hundred million years: years stay exact in a float.
    const LIMIT: f64 = 1e16;
    if seconds.is_nan() || seconds.abs() > LIMIT {
        return f64::NAN;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the limit; the fraction is dropped on purpose"
    )]
    let date = Date::at(seconds as i64);
    match calendar {
        Calendar::DayOfMonth => f64::from(date.day),
        Calendar::DayOfWeek => (date.days + 4).rem_euclid(7) as f64,
        Calendar::DayOfYear => f64::from(date.day_of_year()),
        Calendar::DaysInMonth => f64::from(date.days_in_month()),
        Calendar::Hour => (date.second / 3600) as f64,
        Calendar::Minute => (date.second / 60 % 60) as f64,
        Calendar::Month => f64::from(date.month),
        Calendar::Year => date.year as f64,
    }
}

/// `2006-01-02T15:04:05Z`, milliseconds cut off.
pub(super) fn rfc3339(time: Millis) -> String {
    let date = Date::at(time / 1000);
    let (hour, minute, second) = (date.second / 3600, date.second / 60 % 60, date.second % 60);
    format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z",
        date.year, date.month, date.day
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, text: &str, day_of_week: f64, day_of_year: f64, days_in_month: f64) {
        assert_eq!(rfc3339(seconds * 1000), text);
        let part = |c| part(c, seconds as f64);
        assert_eq!(part(Calendar::DayOfWeek), day_of_week, "{text}");
        assert_eq!(part(Calendar::DayOfYear), day_of_year, "{text}");
        assert_eq!(part(Calendar::DaysInMonth), days_in_month, "{text}");
    }

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        check(0, "1970-01-01T00:00:00Z", 4.0, 1.0, 31.0);
        check(-1, "1969-12-31T23:59:59Z", 3.0, 365.0, 31.0);
        check(951_782_400, "2000-02-29T00:00:00Z", 2.0, 60.0, 29.0);
        check(951_868_800, "2000-03-01T00:00:00Z", 3.0, 61.0, 31.0);
        check(4_107_542_400, "2100-03-01T00:00:00Z", 1.0, 60.0, 31.0);
        check(1_136_239_445, "2006-01-02T22:04:05Z", 1.0, 2.0, 31.0);
        check(-62_135_596_800, "0001-01-01T00:00:00Z", 1.0, 1.0, 31.0);
    }
}
