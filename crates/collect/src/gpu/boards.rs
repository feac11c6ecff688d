//! What the driver does not tell of a board, from `data/gpu_boards.yml`.

use serde::Deserialize;

use super::reading::{Instance, Reading};
use crate::Error;
use crate::source::to_f64;

/// The table that comes with the program.
const BOARDS: &str = include_str!("../../../../data/gpu_boards.yml");

const FILE: &str = "gpu_boards.yml";

const MIB: f64 = 1_048_576.0;

/// What is known of boards by name, and what counts as load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boards {
    limits: Vec<Limit>,
    mig: Vec<Slice>,
    load: Load,
    idle: Idle,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    model: String,
    slowdown: f64,
    #[serde(rename = "source")]
    _source: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slice {
    model: String,
    multiprocessors: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    utilization_percent: f64,
    power_limit_percent: f64,
    performance_state_max: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Idle {
    memory_mib: f64,
}

impl Boards {
    /// The table that comes with the program.
    ///
    /// # Errors
    ///
    /// [`Error::Data`]; a test keeps that from being shipped.
    pub fn embedded() -> Result<Self, Error> {
        serde_saphyr::from_str(BOARDS).map_err(|err| Error::Data {
            file: FILE,
            message: err.to_string(),
        })
    }

    /// Degrees left before the hardware cuts the clocks: by the board's own margin where it has one, else by the threshold
    /// it tells, else by the table.
    pub fn margin(&self, reading: &Reading) -> Option<f64> {
        let number = |word: &str| reading.number(word);
        let by_margin = number("margin_temperature").zip(number("margin_slowdown"));
        let threshold = || number("threshold_slowdown").or_else(|| self.slowdown(&reading.identity.model));
        let by_threshold = || threshold().zip(number("temperature"));
        by_margin.or_else(by_threshold).map(|(above, below)| above - below)
    }

    fn slowdown(&self, model: &str) -> Option<f64> {
        let limit = self.limits.iter().find(|limit| model.contains(&limit.model))?;
        Some(limit.slowdown)
    }

    /// Whether the GPU works hard enough that link and clocks are up; `None` where it does not tell.
    pub fn is_loaded(&self, reading: &Reading) -> Option<bool> {
        let state = reading.number("performance_state");
        if state.is_some_and(|state| state > self.load.performance_state_max) {
            return Some(false);
        }
        let share = |part: Option<f64>, of: Option<f64>, percent: f64| Some(part? >= of? * percent / 100.0);
        let by_use = share(
            reading.number("utilization_gpu"),
            Some(100.0),
            self.load.utilization_percent,
        );
        let by_power = || {
            let power = reading.number("power_usage");
            share(
                power,
                reading.number("power_limit_enforced"),
                self.load.power_limit_percent,
            )
        };
        by_use.or_else(by_power)
    }

    /// Device memory, in bytes, that nobody needs to answer for.
    pub fn idle_memory(&self) -> f64 {
        self.idle.memory_mib * MIB
    }

    /// `3g.40gb` for an instance whose profile nobody told; empty where its board is not known.
    ///
    /// Memory is handed out in eighths of the board's, multiprocessors in slices of a fixed size.
    pub fn profile(&self, reading: &Reading, instance: &Instance) -> String {
        let slice = self
            .mig
            .iter()
            .find(|slice| reading.identity.model.contains(&slice.model));
        let board = reading.number("memory_total");
        let parts = (slice, instance.multiprocessors, board, instance.memory_total);
        let (Some(slice), Some(processors), Some(board), Some(memory)) = parts else {
            return String::new();
        };
        let eighths = (to_f64(memory) / (board / 8.0)).round();
        let gigabytes = ((board / MIB / 1024.0).round() * eighths / 8.0).round();
        let slices = (processors / slice.multiprocessors).min(7);
        if slices == 0 || gigabytes < 1.0 {
            return String::new();
        }
        format!("{slices}g.{gigabytes}gb")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::identity::Identity;
    use crate::gpu::reading::GpuState;

    fn reading(model: &str, numbers: &[(&'static str, f64)]) -> Reading {
        let who = Identity {
            model: model.to_owned(),
            ..Identity::default()
        };
        Reading {
            numbers: numbers.iter().copied().collect(),
            ..Reading::without(who, GpuState::Ok)
        }
    }

    #[track_caller]
    fn check_margin(model: &str, numbers: &[(&'static str, f64)], want: Option<f64>) {
        let boards = Boards::embedded().expect("our own table");
        assert_eq!(boards.margin(&reading(model, numbers)), want);
    }

    #[test]
    fn a_margin_is_the_boards_own_or_by_threshold_or_by_table() {
        let told = [
            ("margin_temperature", 24.0),
            ("margin_slowdown", -2.0),
            ("temperature", 53.0),
        ];
        check_margin("NVIDIA H100 80GB HBM3", &told, Some(26.0));
        let threshold = [("threshold_slowdown", 89.0), ("temperature", 36.0)];
        check_margin("NVIDIA A100-SXM4-40GB", &threshold, Some(53.0));
        check_margin("NVIDIA GeForce RTX 5090", &[("temperature", 80.0)], Some(7.0));
        check_margin("NVIDIA Something", &[("temperature", 80.0)], None);
    }

    #[test]
    fn an_idle_gpu_is_not_loaded_and_a_silent_one_is_unknown() {
        let boards = Boards::embedded().expect("our own table");
        let loaded = |numbers: &[(&'static str, f64)]| boards.is_loaded(&reading("x", numbers));
        assert_eq!(
            loaded(&[("utilization_gpu", 97.0), ("performance_state", 0.0)]),
            Some(true)
        );
        assert_eq!(
            loaded(&[("utilization_gpu", 97.0), ("performance_state", 8.0)]),
            Some(false)
        );
        assert_eq!(loaded(&[("utilization_gpu", 3.0)]), Some(false));
        assert_eq!(
            loaded(&[("power_usage", 433.0), ("power_limit_enforced", 700.0)]),
            Some(true)
        );
        assert_eq!(loaded(&[]), None);
    }

    #[test]
    fn a_profile_follows_from_multiprocessors_and_memory() {
        let boards = Boards::embedded().expect("our own table");
        let profile = |model: &str, board_mib: u32, processors: u32, memory_mib: u64| {
            let reading = reading(model, &[("memory_total", f64::from(board_mib) * MIB)]);
            let instance = Instance {
                multiprocessors: Some(processors),
                memory_total: Some(memory_mib << 20),
                ..Instance::default()
            };
            boards.profile(&reading, &instance)
        };
        assert_eq!(profile("NVIDIA H100 80GB HBM3", 81_559, 60, 40_448), "3g.40gb");
        assert_eq!(profile("NVIDIA H100 80GB HBM3", 81_559, 16, 9_984), "1g.10gb");
        assert_eq!(profile("NVIDIA A100-PCIE-40GB", 40_960, 56, 19_968), "4g.20gb");
        assert_eq!(profile("NVIDIA A100-PCIE-40GB", 40_960, 14, 9_856), "1g.10gb");
        assert_eq!(profile("NVIDIA A100-SXM4-80GB", 81_920, 98, 80_384), "7g.80gb");
        assert_eq!(profile("NVIDIA H200", 144_384, 60, 72_704), "3g.71gb");
        assert_eq!(profile("NVIDIA L40S", 46_068, 16, 9_984), "");
    }
}
