//! Chance that is the same every time: noise as a function of seed, channel and time.

/// Mixes a seed and numbers into 64 random-looking bits (the finaliser of SplitMix64).
pub(crate) fn hash(seed: u64, channel: u64, index: i64) -> u64 {
    let mut x =
        seed ^ channel.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.cast_unsigned().wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number in [0, 1) for seed, channel and index.
#[expect(clippy::cast_precision_loss, reason = "53 bits are kept on purpose")]
pub(crate) fn unit(seed: u64, channel: u64, index: i64) -> f64 {
    (hash(seed, channel, index) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Smooth noise in [-1, 1]: random values every `period_ms`, a cosine between them.
#[expect(clippy::cast_precision_loss, reason = "periods are minutes")]
pub(crate) fn smooth(seed: u64, channel: u64, t_ms: i64, period_ms: i64) -> f64 {
    let index = t_ms.div_euclid(period_ms);
    let fraction = t_ms.rem_euclid(period_ms) as f64 / period_ms as f64;
    let (a, b) = (unit(seed, channel, index), unit(seed, channel, index + 1));
    let blend = (1.0 - (fraction * std::f64::consts::PI).cos()) / 2.0;
    (a + (b - a) * blend) * 2.0 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_every_time_and_differs_by_channel() {
        assert!((smooth(7, 1, 123_456, 5000) - smooth(7, 1, 123_456, 5000)).abs() < f64::EPSILON);
        assert!((smooth(7, 1, 123_456, 5000) - smooth(7, 2, 123_456, 5000)).abs() > 1e-9);
    }

    #[test]
    fn noise_is_bounded_and_continuous_across_zero() {
        let mut last = smooth(7, 3, -20_000, 5000);
        for t in (-20_000..20_000).step_by(10) {
            let value = smooth(7, 3, t, 5000);
            assert!((-1.0..=1.0).contains(&value));
            assert!((value - last).abs() < 0.02, "jump at {t}");
            last = value;
        }
    }
}
