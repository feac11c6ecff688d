//! Counters: integrals of rates over the scenario's time, the same whoever asks first.
//!
//! A counter's value at a time is the sum of its rate over fixed steps from a fixed start. Whole
//! minutes are added up once and kept ([`Prefix`]). Sums are integers (thousandths of the unit), so
//! the order of adding does not matter and a counter cannot fall by a rounding. What is kept is a
//! cache, not a state: no value depends on which times were asked before.

/// Rates of one GPU or of the host, per second; what each slot counts is its owner's business.
pub(crate) type Rates = [f64; 8];
/// Integrals of rates, in whole units.
pub(crate) type Counts = [u64; 8];

/// Where adding begins: a day and some of history. Before it a counter grows evenly.
const HISTORY_MS: i64 = -26 * 3_600_000;
const BUCKET_MS: i64 = 60_000;
/// Steps where nothing sudden happens that a counter must show at once.
const STEP_LONG_MS: i64 = 5_000;
const STEP_MS: i64 = 1_000;
/// Between these times steps are short: here the faults of a demonstration happen.
const PRESENT_MS: std::ops::Range<i64> = -120_000..3_600_000;
/// After a month counters grow evenly again, so that neither memory nor the time of a first
/// question has no bound.
const END_MS: i64 = 30 * 86_400_000;

/// Sums up to the end of each whole minute since the start, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// Where the first minute begins; known once there is a sum.
    start_ms: i64,
    sums: Vec<Counts>,
}

impl Prefix {
    /// The sums that do not depend on what happens from a time on.
    pub(crate) fn until(&self, t_ms: i64) -> Self {
        // The first sum ends a minute after the start of the history, or later: that many are certainly before.
        let certain = usize::try_from(t_ms.saturating_sub(self.start_ms) / BUCKET_MS).unwrap_or(0);
        Self {
            start_ms: self.start_ms,
            sums: self.sums.iter().take(certain).copied().collect(),
        }
    }

    /// The integrals from `origin_ms` (when the counters were zero) to `t_ms`.
    ///
    /// Before the history they grow with `even`, after it with `rate`.
    pub(crate) fn integral(&mut self, origin_ms: i64, t_ms: i64, even: &Rates, rate: impl Fn(i64) -> Rates) -> Counts {
        self.thousandths(origin_ms, t_ms, even, rate).map(|sum| sum / 1000)
    }

    fn thousandths(&mut self, origin_ms: i64, t_ms: i64, even: &Rates, rate: impl Fn(i64) -> Rates) -> Counts {
        let start = HISTORY_MS.max(origin_ms.next_multiple_of_bucket());
        if t_ms <= start {
            return times(even, t_ms - origin_ms);
        }
        let mut sum = times(even, start - origin_ms);
        add(&mut sum, &times(even, t_ms - END_MS));
        let t_ms = t_ms.min(END_MS.max(start));
        let whole = usize::try_from((t_ms - start) / BUCKET_MS).unwrap_or(0);
        self.start_ms = start;
        let mut last = self.sums.last().copied().unwrap_or_default();
        while self.sums.len() < whole {
            let from = start + ms(self.sums.len()) * BUCKET_MS;
            add(&mut last, &steps(from, from + BUCKET_MS, &rate));
            self.sums.push(last);
        }
        if let Some(done) = whole.checked_sub(1).and_then(|index| self.sums.get(index)) {
            add(&mut sum, done);
        }
        add(&mut sum, &steps(start + ms(whole) * BUCKET_MS, t_ms, &rate));
        sum
    }
}

trait Bucket {
    fn next_multiple_of_bucket(self) -> Self;
}

impl Bucket for i64 {
    fn next_multiple_of_bucket(self) -> Self {
        self.div_euclid(BUCKET_MS) * BUCKET_MS + if self.rem_euclid(BUCKET_MS) == 0 { 0 } else { BUCKET_MS }
    }
}

/// The integral from the start of a bucket to a time within it: the rate in the middle of each
/// step times the step, the last step in part. It never falls, whatever the rate.
fn steps(from: i64, to: i64, rate: &impl Fn(i64) -> Rates) -> Counts {
    let step = if PRESENT_MS.contains(&from) {
        STEP_MS
    } else {
        STEP_LONG_MS
    };
    let mut sum = Counts::default();
    let mut at = from;
    while at < to {
        add(&mut sum, &times(&rate(at + step / 2), step.min(to - at)));
        at += step;
    }
    sum
}

/// Rates per second times milliseconds: thousandths of the unit, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are far below 2^53 ms; the product is not negative and saturates"
)]
fn times(rates: &Rates, ms: i64) -> Counts {
    let ms = ms.max(0) as f64;
    rates.map(|rate| (rate.max(0.0) * ms) as u64)
}

fn add(sum: &mut Counts, more: &Counts) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

fn ms(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(t: i64) -> Rates {
        [if t < 0 { 1.0 } else { 2.0 }; 8]
    }

    const ORIGIN: i64 = -30 * 3_600_000;

    #[test]
    fn a_value_does_not_depend_on_what_was_asked_before() {
        let mut forwards = Prefix::default();
        let early = forwards.integral(ORIGIN, -50_000, &[1.0; 8], rate);
        let late = forwards.integral(ORIGIN, 90_500, &[1.0; 8], rate);
        let mut backwards = Prefix::default();
        assert_eq!(backwards.integral(ORIGIN, 90_500, &[1.0; 8], rate), late);
        assert_eq!(backwards.integral(ORIGIN, -50_000, &[1.0; 8], rate), early);
    }

    #[test]
    fn a_counter_is_the_area_under_its_rate() {
        let value = Prefix::default().integral(ORIGIN, 90_500, &[1.0; 8], rate)[0];
        assert_eq!(value, 30 * 3600 + 181);
        assert_eq!(Prefix::default().integral(ORIGIN, ORIGIN, &[1.0; 8], rate)[0], 0);
    }

    #[test]
    fn a_time_out_of_all_range_is_answered_at_once() {
        let started = std::time::Instant::now();
        let mut prefix = Prefix::default();
        let far = prefix.integral(ORIGIN, 1_800_000_000_000, &[1.0; 8], rate)[0];
        assert!(far > prefix.integral(ORIGIN, 1_700_000_000_000, &[1.0; 8], rate)[0]);
        assert!(prefix.sums.len() < 50_000);
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn a_counter_never_falls_even_where_its_rate_is_zero() {
        let sometimes = |t: i64| {
            if t.rem_euclid(7_000) < 3_000 {
                [0.1; 8]
            } else {
                [0.0; 8]
            }
        };
        let mut prefix = Prefix::default();
        let mut last = 0;
        for t in (-61_000..121_000).step_by(7) {
            let value = prefix.thousandths(ORIGIN, t, &[1.0; 8], sometimes)[0];
            assert!(value >= last, "at {t}");
            last = value;
        }
    }
}
