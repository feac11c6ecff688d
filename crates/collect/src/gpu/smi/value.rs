//! One value as nvidia-smi prints it: `433.78 W`, `16x`, `0x0000000000000004`, `N/A`, `[Unknown Error]`.

use serde::Deserialize;

use crate::gpu::reading::{Absence, GpuState};

/// What a value counts; the number is kept in NVML's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Measure {
    /// Megahertz.
    MHz,
    /// Milliwatts.
    #[serde(rename = "mW")]
    Milliwatts,
    /// Degrees Celsius of a sensor or a threshold.
    #[serde(rename = "C")]
    Celsius,
    /// Degrees Celsius between two, which may be below zero.
    #[serde(rename = "margin")]
    Margin,
    /// 0 to 100.
    #[serde(rename = "percent")]
    Percent,
    /// Percent of a fan's intended speed, which may be above 100.
    #[serde(rename = "fan")]
    Fan,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Kilobytes in a second.
    #[serde(rename = "KB/s")]
    KilobytesPerSecond,
    /// A plain count.
    #[serde(rename = "count")]
    Count,
    /// A set of bits.
    #[serde(rename = "bits")]
    Bits,
    /// `P0` to `P15`.
    #[serde(rename = "state")]
    State,
    /// `Yes`, `Enabled`, `Active`, or their opposites.
    #[serde(rename = "bool")]
    Bool,
    /// `Default`, `Exclusive_Process` and so on.
    #[serde(rename = "compute mode")]
    ComputeMode,
    /// `None`, `Reset` and so on.
    #[serde(rename = "action")]
    Action,
}

/// Why there is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// This value only.
    Absent(Absence),
    /// The GPU as a whole does not answer.
    Gone(GpuState),
}

/// Sentinels that stand for "no value": all ones, and the blanks of DCGM.
fn is_sentinel(n: f64) -> bool {
    let int32 = 2_147_483_632.0..=2_147_483_635.0;
    let double = 140_737_488_355_328.0..=140_737_488_355_331.0;
    int32.contains(&n) || double.contains(&n) || n == 4_294_967_295.0 || n >= 9.2e18
}

/// Reads a value; `unit` is the one of its column, for values without one.
pub fn number(text: &str, unit: &str, measure: Measure) -> Result<f64, Missing> {
    let text = text.trim();
    if let Some(missing) = missing(text) {
        return Err(missing);
    }
    let word = text.to_ascii_lowercase();
    let unreadable = Missing::Absent(Absence::Unreadable);
    let number = match measure {
        Measure::Bool => return flag(&word).ok_or(unreadable),
        Measure::ComputeMode => return compute_mode(&word).ok_or(unreadable),
        Measure::Action => return action(&word).ok_or(unreadable),
        Measure::Bits => bits(&word).ok_or(unreadable)?,
        Measure::State => word
            .strip_prefix('p')
            .unwrap_or(&word)
            .parse()
            .map_err(|_| unreadable)?,
        _ => scaled(text, unit, measure).ok_or(unreadable)?,
    };
    let is_possible = !is_sentinel(number) && possible(measure).contains(&number);
    if is_possible {
        Ok(number)
    } else {
        Err(Missing::Absent(Absence::OutOfRange))
    }
}

/// What says that there is no value; `None` for a text that may be one.
pub fn missing(text: &str) -> Option<Missing> {
    let inner = text
        .trim()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .trim()
        .to_ascii_lowercase();
    let absent = |why| Some(Missing::Absent(why));
    match inner.as_str() {
        "n/a" | "not supported" | "not available" | "not found" | "insufficient size" => absent(Absence::Unsupported),
        "" => absent(Absence::Unreadable),
        "-" => absent(Absence::Unsupported),
        _ if inner.contains("deprecated") && !inner.starts_with(|c: char| c.is_ascii_digit()) => {
            absent(Absence::Unsupported)
        }
        _ if inner.contains("gpu is lost") || inner.contains("fallen off the bus") => {
            Some(Missing::Gone(GpuState::Lost))
        }
        _ if inner.contains("requires reset") || inner.contains("reset required") => {
            Some(Missing::Gone(GpuState::ResetRequired))
        }
        _ if inner.contains("permission") || inner.contains("requires root") => absent(Absence::Denied),
        _ if inner.contains("err!") || inner.contains("error") || inner.contains("timeout") || inner == "failed" => {
            absent(Absence::Failed)
        }
        _ => None,
    }
}

fn flag(word: &str) -> Option<f64> {
    match word {
        "yes" | "enabled" | "active" | "on" | "1" | "true" => Some(1.0),
        "no" | "disabled" | "not active" | "off" | "0" | "false" => Some(0.0),
        _ => None,
    }
}

fn compute_mode(word: &str) -> Option<f64> {
    match word.replace([' ', '.'], "_").as_str() {
        "default" => Some(0.0),
        "exclusive_thread" | "e__thread" => Some(1.0),
        "prohibited" => Some(2.0),
        "exclusive_process" | "e__process" => Some(3.0),
        _ => None,
    }
}

fn action(word: &str) -> Option<f64> {
    let has = |part: &str| word.contains(part);
    match word {
        "none" => Some(0.0),
        _ if has("drain") && has("p2p") => Some(3.0),
        _ if has("drain") && has("reset") => Some(4.0),
        _ if has("reboot") => Some(2.0),
        _ if has("reset") => Some(1.0),
        _ => None,
    }
}

fn bits(word: &str) -> Option<f64> {
    let bits = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => word.parse().ok()?,
    };
    Some(crate::source::to_f64(bits))
}

/// Digits and unit apart, the number in NVML's unit. Powers of ten go into the digits, so that nothing is rounded twice.
fn scaled(text: &str, unit: &str, measure: Measure) -> Option<f64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
        .unwrap_or(text.len());
    let (digits, own) = text.split_at(end);
    let own = own.trim();
    let unit = if own.is_empty() { unit.trim() } else { own };
    let (power, times) = match (measure, unit.to_ascii_lowercase().as_str()) {
        (Measure::MHz, "ghz") | (Measure::Milliwatts, "w" | "") => (3, 1.0),
        (Measure::Milliwatts, "kw") => (6, 1.0),
        (Measure::Bytes, "kib") => (0, 1024.0),
        (Measure::Bytes, "mib" | "") => (0, 1_048_576.0),
        (Measure::Bytes, "gib") => (0, 1_073_741_824.0),
        (Measure::Nanoseconds, "us" | "µs" | "") | (Measure::KilobytesPerSecond, "mb/s") => (3, 1.0),
        (Measure::Nanoseconds, "ms") | (Measure::KilobytesPerSecond, "gb/s") => (6, 1.0),
        (Measure::Nanoseconds, "s") => (9, 1.0),
        (Measure::MHz, "mhz" | "")
        | (Measure::Milliwatts, "mw")
        | (Measure::Celsius | Measure::Margin, "c" | "")
        | (Measure::Percent | Measure::Fan, "%" | "")
        | (Measure::Bytes, "b" | "bytes")
        | (Measure::Nanoseconds, "ns")
        | (Measure::KilobytesPerSecond, "kb/s" | "")
        | (Measure::Count, "" | "x" | "bank(s)") => (0, 1.0),
        _ => return None,
    };
    let number: f64 = format!("{digits}e{power}").parse().ok()?;
    (number.is_finite()).then_some(number * times)
}

/// What a board can measure; wide on purpose, it only keeps garbage out.
fn possible(measure: Measure) -> std::ops::RangeInclusive<f64> {
    match measure {
        Measure::MHz => 0.0..=100_000.0,
        Measure::Milliwatts => 0.0..=100_000_000.0,
        Measure::Celsius => -60.0..=250.0,
        Measure::Margin => -250.0..=250.0,
        Measure::Percent => 0.0..=100.0,
        Measure::Fan => 0.0..=300.0,
        Measure::Bytes => 0.0..=1e15,
        Measure::State => 0.0..=15.0,
        Measure::KilobytesPerSecond => 0.0..=1e12,
        Measure::Count | Measure::Bits | Measure::Nanoseconds => 0.0..=9.2e18,
        Measure::Bool | Measure::ComputeMode | Measure::Action => 0.0..=16.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, unit: &str, measure: Measure, want: f64) {
        assert_eq!(number(text, unit, measure), Ok(want), "{text}");
    }

    #[track_caller]
    fn check_absent(text: &str, measure: Measure, why: Absence) {
        assert_eq!(number(text, "", measure), Err(Missing::Absent(why)), "{text}");
    }

    #[test]
    fn numbers_come_in_the_drivers_unit() {
        check("433.78 W", "", Measure::Milliwatts, 433_780.0);
        check("433.78", "W", Measure::Milliwatts, 433_780.0);
        check(" 66.84 W ", "", Measure::Milliwatts, 66_840.0);
        check("11125 MiB", "", Measure::Bytes, 11_125.0 * 1_048_576.0);
        check("11125MiB", "", Measure::Bytes, 11_125.0 * 1_048_576.0);
        check("16x", "", Measure::Count, 16.0);
        check("15814235622 us", "", Measure::Nanoseconds, 15_814_235_622_000.0);
        check("9139 KB/s", "", Measure::KilobytesPerSecond, 9139.0);
        check("-2 C", "", Measure::Margin, -2.0);
        check("31C", "", Measure::Celsius, 31.0);
        check("120 %", "", Measure::Fan, 120.0);
        check("P8", "", Measure::State, 8.0);
        check("0x0000000000000004", "", Measure::Bits, 4.0);
        check("Not Active", "", Measure::Bool, 0.0);
        check("Exclusive_Process", "", Measure::ComputeMode, 3.0);
        check("Drain and Reset", "", Measure::Action, 4.0);
    }

    #[test]
    fn what_is_no_number_has_a_reason() {
        for text in [
            "N/A",
            "[N/A]",
            "[Not Supported]",
            "Requested functionality has been deprecated",
            "-",
        ] {
            check_absent(text, Measure::Celsius, Absence::Unsupported);
        }
        for text in ["ERR!", "[Unknown Error]", "Unknown Error", "[Timeout]"] {
            check_absent(text, Measure::Celsius, Absence::Failed);
        }
        check_absent("[Insufficient Permissions]", Measure::Bytes, Absence::Denied);
        check_absent("[Requires Root]", Measure::Milliwatts, Absence::Denied);
        check_absent("", Measure::Celsius, Absence::Unreadable);
        check_absent("warm", Measure::Celsius, Absence::Unreadable);
        check_absent("31 F", Measure::Celsius, Absence::Unreadable);
        assert_eq!(
            number("[GPU is lost]", "", Measure::Celsius),
            Err(Missing::Gone(GpuState::Lost))
        );
    }

    #[test]
    fn what_no_board_can_measure_is_out_of_range() {
        check_absent("65535 C", Measure::Celsius, Absence::OutOfRange);
        check_absent("101 %", Measure::Percent, Absence::OutOfRange);
        check_absent("9223372036854775794", Measure::Count, Absence::OutOfRange);
        check_absent("4294967295", Measure::Count, Absence::OutOfRange);
        check_absent("2147483634", Measure::Count, Absence::OutOfRange);
        check_absent("-5 W", Measure::Milliwatts, Absence::OutOfRange);
    }
}
