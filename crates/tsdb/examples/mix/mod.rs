//! Series as an eight-GPU server gives them, made up.

#![allow(dead_code, reason = "each example uses its part")]

use model::{Labels, Millis};

/// Between samples, in milliseconds.
pub const STEP: Millis = 15_000;
/// The first sample.
pub const START: Millis = 1_699_999_200_000;

/// A kind of series: its name, its share of the mix in per cent, and its next value.
pub struct Kind {
    /// What it is.
    pub name: &'static str,
    /// Per cent.
    pub share: u32,
    /// The value after one.
    pub next: fn(&mut fastrand::Rng, f64, i64) -> f64,
}

/// All kinds.
pub const KINDS: [Kind; 12] = [
    Kind {
        name: "constant",
        share: 46,
        next: |_, last, _| if last == 0.0 { 81_559.0 } else { last },
    },
    Kind {
        name: "step clock",
        share: 6,
        next: |r, last, _| {
            if last == 0.0 || r.u8(0..40) == 0 {
                1200.0 + 15.0 * f64::from(r.u8(0..52))
            } else {
                last
            }
        },
    },
    Kind {
        name: "memory MiB",
        share: 6,
        next: |r, last, _| {
            if last == 0.0 || r.u8(0..90) == 0 {
                f64::from(r.u32(20_000..80_000))
            } else {
                last
            }
        },
    },
    Kind {
        name: "temperature",
        share: 6,
        next: |r, last, _| {
            if last == 0.0 {
                61.0
            } else {
                (last + [0.0, 0.0, 0.0, 0.0, 1.0, -1.0][r.usize(0..6)]).clamp(30.0, 90.0)
            }
        },
    },
    Kind {
        name: "power, 3 dec.",
        share: 3,
        next: |r, last, _| {
            round(
                if last == 0.0 {
                    480.0
                } else {
                    last * 0.9 + 48.0 + normal(r) * 12.0
                },
                1e3,
            )
        },
    },
    Kind {
        name: "util, 3 dec.",
        share: 2,
        next: |r, _, _| round((0.93 + normal(r) * 0.02).clamp(0.0, 1.0), 1e3),
    },
    Kind {
        name: "util, 6 dec.",
        share: 4,
        next: |r, _, _| round((0.61 + normal(r) * 0.03).clamp(0.0, 1.0), 1e6),
    },
    Kind {
        name: "full float",
        share: 1,
        next: |r, last, _| last + r.f64(),
    },
    Kind {
        name: "counter ns",
        share: 3,
        next: |r, last, _| last + (15e9 + normal(r) * 50_000.0).round(),
    },
    Kind {
        name: "counter bytes",
        share: 7,
        next: |r, last, _| last + (2e9 + normal(r) * 3e8).round().max(0.0),
    },
    Kind {
        name: "cpu seconds",
        share: 6,
        next: |r, last, _| round(last + 9.0 + r.f64() * 4.0, 1e2),
    },
    Kind {
        name: "bucket",
        share: 10,
        next: |r, last, _| last + if r.u8(0..10) < 3 { f64::from(r.u8(0..9)) } else { 0.0 },
    },
];

fn round(value: f64, power: f64) -> f64 {
    (value * power).round() / power
}

fn normal(rng: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// The labels of a series of a server.
pub fn labels(server: u64, i: u64) -> Labels {
    let (name, instance, gpu) = (
        format!("metric_{}", i / 8),
        format!("gpu-node-{server:04}"),
        format!("{}", i % 8),
    );
    let uuid = format!("GPU-{:08x}-4f3a-9d1e-0000-{server:012}", i % 8);
    Labels::from_pairs([
        ("__name__", name.as_str()),
        ("Hostname", &instance),
        ("UUID", &uuid),
        ("device", &format!("nvidia{gpu}")),
        ("gpu", &gpu),
        ("instance", &instance),
        ("job", "dcgm"),
        ("modelName", "NVIDIA H100 80GB HBM3"),
        ("pci_bus_id", &format!("00000000:{:02X}:00.0", i % 8)),
    ])
}

/// Series of a server.
pub const SERIES: u64 = 1707;

/// A kind, as often as its share says.
pub fn pick(rng: &mut fastrand::Rng) -> &'static Kind {
    let mut at = rng.u32(0..100);
    KINDS
        .iter()
        .find(|kind| {
            let found = at < kind.share;
            at = at.saturating_sub(kind.share);
            found
        })
        .unwrap_or(&KINDS[0])
}

/// Memory of this process, in bytes.
pub fn rss_bytes() -> std::io::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    Ok(pages * 4096)
}
