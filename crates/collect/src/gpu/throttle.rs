//! Seconds a GPU was held back, by reason: the driver's bits between two looks, integrated.

use model::Millis;
use nvml::ClockReasons;

/// Reasons and their names, as in `nvidia-smi` and DCGM. An idle GPU is held back by nothing.
pub const REASONS: [(ClockReasons, &str); 8] = [
    (ClockReasons::APPLICATIONS_CLOCKS_SETTING, "applications_clocks_setting"),
    (ClockReasons::SW_POWER_CAP, "sw_power_cap"),
    (ClockReasons::HW_SLOWDOWN, "hw_slowdown"),
    (ClockReasons::SYNC_BOOST, "sync_boost"),
    (ClockReasons::SW_THERMAL_SLOWDOWN, "sw_thermal_slowdown"),
    (ClockReasons::HW_THERMAL_SLOWDOWN, "hw_thermal_slowdown"),
    (ClockReasons::HW_POWER_BRAKE_SLOWDOWN, "hw_power_brake_slowdown"),
    (ClockReasons::DISPLAY_CLOCK_SETTING, "display_clock_setting"),
];

/// Between looks that lie further apart nobody knows what held the GPU back, in milliseconds.
const GAP_MS: Millis = 10_000;

/// Seconds by reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Throttle {
    last: Option<(Millis, ClockReasons)>,
    seconds: [f64; REASONS.len()],
}

impl Throttle {
    /// Takes a look: the bits seen before held until now.
    pub fn see(&mut self, now: Millis, reasons: ClockReasons) {
        if let Some((at, before)) = self.last {
            let span = now - at;
            if (0..=GAP_MS).contains(&span) {
                for (seconds, (reason, _)) in self.seconds.iter_mut().zip(REASONS) {
                    *seconds += if before.contains(reason) {
                        crate::runner::seconds(span)
                    } else {
                        0.0
                    };
                }
            }
        }
        self.last = Some((now, reasons));
    }

    /// Seconds by reason; none while the board has told no reasons at all.
    pub fn seconds(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let known = self.last.is_some();
        REASONS
            .iter()
            .zip(self.seconds)
            .filter(move |_| known)
            .map(|((_, name), s)| (*name, s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_counts_until_the_next_look_and_a_gap_does_not() {
        let mut throttle = Throttle::default();
        assert_eq!(throttle.seconds().count(), 0);
        throttle.see(0, ClockReasons::SW_POWER_CAP);
        throttle.see(
            1_000,
            ClockReasons(ClockReasons::SW_POWER_CAP.0 | ClockReasons::HW_SLOWDOWN.0),
        );
        throttle.see(1_500, ClockReasons::GPU_IDLE);
        throttle.see(60_000, ClockReasons::GPU_IDLE);
        let of = |name: &str| throttle.seconds().find(|(n, _)| *n == name).map(|(_, s)| s);
        assert_eq!(of("sw_power_cap"), Some(1.5));
        assert_eq!(of("hw_slowdown"), Some(0.5));
        assert_eq!(of("sync_boost"), Some(0.0));
        assert_eq!(of("gpu_idle"), None);
    }
}
