//! The last samples of one GPU in memory: the least, the mean and the most since the page before.

use std::collections::VecDeque;

use model::Millis;

use crate::gpu::sample::Sample;

/// A page that comes sooner after another looks back so far: two who ask in turn see whole intervals both.
const LEAST_MS: Millis = 10_000;

/// Nothing older is kept.
const MOST_MS: Millis = 120_000;

/// Nor more than so many; at the quickest interval that is two minutes.
const SAMPLES_MAX: usize = 1_200;

/// What was seen over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The mean of the samples.
    pub mean: f64,
    /// The most.
    pub max: f64,
}

/// The last samples of one GPU.
#[derive(Debug, Default)]
pub struct Window {
    samples: VecDeque<Kept>,
    /// When the last page was made.
    asked: Option<Millis>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    time: Millis,
    power_mw: Option<u32>,
    utilization: Option<u8>,
}

/// Power and utilisation since the page before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spreads {
    /// In watts.
    pub power: Option<Spread>,
    /// As a share of 1.
    pub utilization: Option<Spread>,
}

impl Window {
    /// Takes a sample.
    pub fn add(&mut self, sample: &Sample) {
        while self.samples.len() >= SAMPLES_MAX || self.samples.front().is_some_and(|s| sample.time - s.time > MOST_MS)
        {
            self.samples.pop_front();
        }
        self.samples.push_back(Kept {
            time: sample.time,
            power_mw: sample.power_mw,
            utilization: sample.utilization,
        });
    }

    /// What was seen since the page before, and for ten seconds at least; two minutes at most.
    pub fn since_last(&mut self, now: Millis) -> Spreads {
        let from = self
            .asked
            .map_or(now - MOST_MS, |at| at.min(now - LEAST_MS))
            .max(now - MOST_MS);
        self.asked = Some(now);
        let seen = || self.samples.iter().filter(|kept| (from..=now).contains(&kept.time));
        Spreads {
            power: spread(seen().filter_map(|kept| kept.power_mw).map(|mw| f64::from(mw) / 1000.0)),
            utilization: spread(seen().filter_map(|kept| kept.utilization).map(|p| f64::from(p) / 100.0)),
        }
    }
}

fn spread(numbers: impl Iterator<Item = f64>) -> Option<Spread> {
    let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0_u32);
    for number in numbers {
        min = min.min(number);
        max = max.max(number);
        sum += number;
        count += 1;
    }
    (count > 0).then(|| Spread {
        min,
        mean: sum / f64::from(count),
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(watts: &[u32]) -> Window {
        let mut window = Window::default();
        for (second, watts) in (0..).zip(watts) {
            window.add(&Sample {
                time: second * 1_000,
                power_mw: Some(watts * 1_000),
                ..Sample::default()
            });
        }
        window
    }

    #[track_caller]
    fn check(window: &mut Window, now: Millis, want: Option<(f64, f64, f64)>) {
        let got = window.since_last(now);
        assert_eq!(got.power.map(|s| (s.min, s.mean, s.max)), want);
        assert_eq!(got.utilization, None);
    }

    #[test]
    fn a_page_tells_of_the_time_since_the_page_before() {
        let watts: Vec<u32> = (0..60).collect();
        let mut window = window(&watts);
        check(&mut window, 14_000, Some((0.0, 7.0, 14.0)));
        check(&mut window, 29_000, Some((14.0, 21.5, 29.0)));
        // Somebody else asks a second later: not one sample, but the ten seconds before.
        check(&mut window, 30_000, Some((20.0, 25.0, 30.0)));
        check(&mut window, 44_000, Some((30.0, 37.0, 44.0)));
    }

    #[test]
    fn without_samples_there_is_no_spread_and_memory_is_bounded() {
        check(&mut Window::default(), 0, None);
        let mut window = window(&vec![5; 5_000]);
        assert!(window.samples.len() <= 121);
        check(&mut window, 9_000_000, None);
    }
}
