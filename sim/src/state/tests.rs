use std::sync::Arc;

use super::*;

fn demo() -> Arc<Scenario> {
    Scenario::parse(Scenario::DEFAULT).unwrap()
}

const HOUR: i64 = 3_600_000;

#[test]
fn a_state_is_a_function_of_scenario_gpu_and_time() {
    let (one, two) = (demo(), demo());
    let late = one.state(3, 90_000);
    let early = one.state(3, -HOUR);
    assert_eq!(two.state(3, -HOUR), early);
    assert_eq!(two.state(3, 90_000), late);
}

#[test]
fn training_draws_500_to_690_watts_at_60_to_75_degrees() {
    let demo = demo();
    for gpu in 0..8 {
        for t in (-20 * HOUR..-19 * HOUR).step_by(17_300) {
            let state = demo.state(gpu, t);
            if state.gpu_util < 50 || demo.power_lately(gpu, t) < 560.0 {
                continue; // a checkpoint, or shortly after one
            }
            assert!(
                (500_000..=690_000).contains(&state.power_mw),
                "GPU {gpu} at {t}: {} mW",
                state.power_mw
            );
            assert!(
                (58..=75).contains(&state.temperature),
                "GPU {gpu} at {t}: {} C",
                state.temperature
            );
            assert!(
                (1860..=1980).contains(&state.sm_clock),
                "GPU {gpu} at {t}: {} MHz",
                state.sm_clock
            );
            assert_eq!(state.reasons, 0);
            assert!(state.memory_used > 70_000 * MIB);
        }
    }
}

#[test]
fn the_night_is_idle_at_70_watts() {
    let demo = demo();
    for gpu in 0..8 {
        let state = demo.state(gpu, -6 * HOUR);
        assert!((64_000..=76_000).contains(&state.power_mw), "{}", state.power_mw);
        assert!((29..=36).contains(&state.temperature), "{}", state.temperature);
        assert_eq!(
            (state.gpu_util, state.sm_clock, state.reasons),
            (0, 345, reason::GPU_IDLE)
        );
        assert!(state.processes.is_empty());
        assert_eq!(state.memory_total, 81_559 * MIB);
    }
}

#[test]
fn a_checkpoint_shows_as_a_dip() {
    let demo = demo();
    let from = demo.jobs()[2].from.ms();
    let before = demo.state(0, from + 90 * 60_000 - 5_000);
    let during = demo.state(0, from + 90 * 60_000 + 20_000);
    assert!(before.gpu_util > 90 && during.gpu_util < 15);
    assert!(during.power_mw < 200_000 && during.memory_used == before.memory_used);
}

#[test]
fn counters_never_fall_and_energy_is_power_over_time() {
    let demo = demo();
    for gpu in 0..8 {
        let mut last = demo.state(gpu, -25 * HOUR);
        for t in (-25 * HOUR..120_000).step_by(97_000) {
            let state = demo.state(gpu, t);
            assert!(state.energy_mj >= last.energy_mj, "GPU {gpu} at {t}");
            assert!(state.nvlink_tx >= last.nvlink_tx && state.pcie_rx >= last.pcie_rx);
            assert!(state.thermal_violation_ns >= last.thermal_violation_ns);
            last = state;
        }
    }
    let (a, b) = (demo.state(0, -HOUR), demo.state(0, -HOUR + 60_000));
    let mean_mw = f64::from(a.power_mw).midpoint(f64::from(b.power_mw));
    let watts = u32::try_from(b.energy_mj - a.energy_mj).map(f64::from).unwrap() / 60.0;
    assert!((watts / mean_mw - 1.0).abs() < 0.1, "{watts} against {mean_mw}");
}

#[test]
fn nothing_is_wrong_before_the_start() {
    let demo = demo();
    for gpu in 0..8 {
        for t in (-24 * HOUR..0).step_by(61_000) {
            let state = demo.state(gpu, t);
            assert!(!state.lost && state.pcie_width == 16 && state.thermal_violation_ns == 0);
            assert!(state.temperature < 77, "GPU {gpu} at {t}: {}", state.temperature);
            assert!(state.reasons & !reason::GPU_IDLE == 0);
        }
    }
}

#[test]
fn the_hot_gpu_throttles_within_seconds() {
    let demo = demo();
    let (before, after) = (demo.state(2, 4_000), demo.state(2, 15_000));
    assert!(
        after.temperature >= 88 && after.temperature < 92,
        "{}",
        after.temperature
    );
    assert_eq!(
        after.reasons,
        reason::SW_THERMAL | reason::HW_SLOWDOWN | reason::HW_THERMAL
    );
    assert!(after.sm_clock < 1100 && before.sm_clock > 1800);
    assert!(after.thermal_violation_ns > before.thermal_violation_ns);
    let later = demo.state(2, 25_000);
    assert_eq!(later.thermal_violation_ns - after.thermal_violation_ns, 10_000_000_000);
    assert!(after.margin <= 0);
}

#[test]
fn the_hung_gpu_is_busy_without_power() {
    let demo = demo();
    let (a, b) = (demo.state(6, 20_000), demo.state(6, 50_000));
    assert_eq!((a.gpu_util, b.gpu_util), (100, 100));
    assert!(a.power_mw < 140_000 && a.sm_clock == 1980);
    assert_eq!(a.memory_used, b.memory_used);
    assert_eq!(a.nvlink_tx, b.nvlink_tx);
    assert!(b.temperature < a.temperature);
}

#[test]
fn the_bad_riser_loses_lanes_and_then_the_gpu() {
    let demo = demo();
    assert_eq!(demo.state(1, 9_900).pcie_width, 16);
    let narrow = demo.state(1, 12_000);
    assert_eq!(narrow.pcie_width, 8);
    assert!(narrow.pcie_replays > 0 && !narrow.lost);
    assert!(!demo.state(1, 44_900).lost && demo.state(1, 45_000).lost);
    assert_eq!((0..8).filter(|gpu| demo.state(*gpu, 60_000).lost).count(), 1);
}
