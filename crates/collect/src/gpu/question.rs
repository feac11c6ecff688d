//! What a GPU can be asked, by the words of the field table.
//!
//! One question may answer several words with one call of the driver. A board that lacks a thing answers nothing, which
//! is no error and touches no other question.

use nvml::{
    ClockType, Device, EccCounter, EccError, Error, FieldId, FieldValue, GpmMetric, PerfPolicy, TemperatureThreshold,
};

use crate::source::to_f64;

/// A call, or several that belong together.
pub struct Question {
    /// The words it answers.
    pub words: &'static [&'static str],
    /// Whether the answer changes only by hand, so that it may be asked once a minute.
    pub is_slow: bool,
    /// Asks; the answers stand in the order of the words.
    pub ask: fn(&Device) -> Result<Vec<Option<f64>>, Error>,
}

/// Words that the collector answers itself.
pub const XID_LAST: &str = "xid_last";
/// Whether a vGPU has its license.
pub const VGPU_LICENSE: &str = "vgpu_license";

/// Questions to the GPU's own counters, which need two samples.
pub const GPM: [(&str, GpmMetric); 12] = [
    ("gpm_graphics", GpmMetric::GraphicsUtil),
    ("gpm_sm", GpmMetric::SmUtil),
    ("gpm_occupancy", GpmMetric::SmOccupancy),
    ("gpm_tensor", GpmMetric::AnyTensorUtil),
    ("gpm_dram", GpmMetric::DramBwUtil),
    ("gpm_fp64", GpmMetric::Fp64Util),
    ("gpm_fp32", GpmMetric::Fp32Util),
    ("gpm_fp16", GpmMetric::Fp16Util),
    ("gpm_pcie_tx", GpmMetric::PcieTxPerSec),
    ("gpm_pcie_rx", GpmMetric::PcieRxPerSec),
    ("gpm_nvlink_tx", GpmMetric::NvlinkTotalTxPerSec),
    ("gpm_nvlink_rx", GpmMetric::NvlinkTotalRxPerSec),
];

/// Every question.
pub const QUESTIONS: &[Question] = &[
    quick(&["clock_sm"], |d| one(d.clock(ClockType::Sm)?)),
    quick(&["clock_memory"], |d| one(d.clock(ClockType::Memory)?)),
    quick(&["clock_video"], |d| one(d.clock(ClockType::Video)?)),
    slow(&["clock_max_sm"], |d| one(d.clock_max(ClockType::Sm)?)),
    slow(&["clock_max_memory"], |d| one(d.clock_max(ClockType::Memory)?)),
    quick(&["clock_reasons"], |d| {
        Ok(vec![d.clock_reasons()?.map(|r| to_f64(r.0))])
    }),
    quick(&["performance_state"], |d| one(d.performance_state()?)),
    quick(&["temperature"], |d| one(d.temperature()?)),
    quick(&["memory_temperature"], |d| one(d.memory_temperature()?)),
    quick(&["margin_temperature"], |d| one(d.margin_temperature()?)),
    slow(&["margin_slowdown"], |d| one(d.margin_thresholds()?.slowdown)),
    slow(&["threshold_slowdown"], |d| {
        one(d.temperature_threshold(TemperatureThreshold::Slowdown)?)
    }),
    slow(&["threshold_shutdown"], |d| {
        one(d.temperature_threshold(TemperatureThreshold::Shutdown)?)
    }),
    slow(&["threshold_gpu_max"], |d| {
        one(d.temperature_threshold(TemperatureThreshold::GpuMax)?)
    }),
    slow(&["threshold_memory_max"], |d| {
        one(d.temperature_threshold(TemperatureThreshold::MemoryMax)?)
    }),
    quick(&["fan_speed"], |d| one(d.fan_speed()?)),
    quick(&["power_usage"], |d| one(d.power_usage()?)),
    quick(&["energy_total"], |d| count(d.energy_total()?)),
    quick(&["power_limit_enforced"], |d| one(d.power_limit_enforced()?)),
    slow(&["power_limit"], |d| one(d.power_limit()?)),
    slow(&["power_limit_default"], |d| one(d.power_limit_default()?)),
    slow(&["power_limit_min", "power_limit_max"], |d| {
        let range = d.power_limit_range()?;
        Ok(vec![range.map(|r| r.min.into()), range.map(|r| r.max.into())])
    }),
    quick(&["pcie_replays"], |d| one(d.pcie_replays()?)),
    quick(
        &["pcie_generation", "pcie_width", "pcie_generation_max", "pcie_width_max"],
        |d| {
            let link = d.pcie_link()?;
            let all = [link.generation, link.width, link.generation_max, link.width_max];
            Ok(all.map(|n| n.map(f64::from)).into())
        },
    ),
    quick(&["utilization_gpu", "utilization_memory"], |d| {
        let busy = d.utilization()?;
        let (gpu, memory) = busy.map_or((None, None), |b| (b.gpu, b.memory));
        Ok(vec![gpu.map(f64::from), memory.map(f64::from)])
    }),
    quick(&["utilization_encoder"], |d| one(d.encoder_utilization()?)),
    quick(&["utilization_decoder"], |d| one(d.decoder_utilization()?)),
    quick(&["violation_power"], |d| violation(d, PerfPolicy::Power)),
    quick(&["violation_thermal"], |d| violation(d, PerfPolicy::Thermal)),
    quick(&["violation_sync_boost"], |d| violation(d, PerfPolicy::SyncBoost)),
    quick(&["violation_board_limit"], |d| violation(d, PerfPolicy::BoardLimit)),
    quick(&["violation_low_utilization"], |d| {
        violation(d, PerfPolicy::LowUtilization)
    }),
    quick(&["violation_reliability"], |d| violation(d, PerfPolicy::Reliability)),
    quick(
        &["memory_total", "memory_free", "memory_used", "memory_reserved"],
        |d| {
            let memory = d.memory()?;
            let of = |part: fn(&nvml::Memory) -> Option<u64>| memory.as_ref().and_then(part).map(to_f64);
            Ok(vec![
                of(|m| Some(m.total)),
                of(|m| Some(m.free)),
                of(|m| Some(m.used)),
                of(|m| m.reserved),
            ])
        },
    ),
    quick(&["bar1_used", "bar1_total"], |d| {
        let bar1 = d.bar1()?;
        Ok(vec![bar1.map(|b| to_f64(b.used)), bar1.map(|b| to_f64(b.total))])
    }),
    slow(&["ecc_current"], |d| {
        Ok(vec![d.ecc_mode()?.map(|mode| flag(mode.current))])
    }),
    quick(&["ecc_corrected_volatile"], |d| {
        ecc(d, EccError::Corrected, EccCounter::Volatile)
    }),
    quick(&["ecc_uncorrected_volatile"], |d| {
        ecc(d, EccError::Uncorrected, EccCounter::Volatile)
    }),
    quick(&["ecc_corrected_aggregate"], |d| {
        ecc(d, EccError::Corrected, EccCounter::Aggregate)
    }),
    quick(&["ecc_uncorrected_aggregate"], |d| {
        ecc(d, EccError::Uncorrected, EccCounter::Aggregate)
    }),
    quick(&["retired_single_bit", "retired_double_bit", "retired_pending"], |d| {
        let pages = d.retired_pages()?;
        Ok(vec![
            pages.and_then(|p| p.single_bit).map(f64::from),
            pages.and_then(|p| p.double_bit).map(f64::from),
            pages.and_then(|p| p.pending).map(flag),
        ])
    }),
    quick(
        &["nvlink_crc_flit", "nvlink_crc_data", "nvlink_replay", "nvlink_recovery"],
        |d| {
            let values = d.field_values(&[
                FieldId::NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_REPLAY_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
            ])?;
            let mut values = values.iter().map(FieldValue::as_f64);
            Ok((0..4).map(|_| values.next().flatten()).collect())
        },
    ),
    quick(&["nvlink_bytes"], |d| {
        let sum = d.nvlink_throughput(None)?;
        Ok(vec![
            sum.data_tx.zip(sum.data_rx).map(|(tx, rx)| to_f64(tx) + to_f64(rx)),
        ])
    }),
    quick(
        &[
            "remapped_correctable",
            "remapped_uncorrectable",
            "remapped_pending",
            "remapped_failure",
        ],
        |d| {
            let rows = d.remapped_rows()?;
            Ok(vec![
                rows.map(|r| r.correctable.into()),
                rows.map(|r| r.uncorrectable.into()),
                rows.map(|r| flag(r.pending)),
                rows.map(|r| flag(r.failure)),
            ])
        },
    ),
];

/// Whether anybody answers this word.
pub fn is_known(word: &str) -> bool {
    let asked = QUESTIONS.iter().flat_map(|q| q.words).any(|w| *w == word);
    asked || word == XID_LAST || word == VGPU_LICENSE || GPM.iter().any(|(w, _)| *w == word)
}

type Ask = fn(&Device) -> Result<Vec<Option<f64>>, Error>;

const fn quick(words: &'static [&'static str], ask: Ask) -> Question {
    let is_slow = false;
    Question { words, is_slow, ask }
}

const fn slow(words: &'static [&'static str], ask: Ask) -> Question {
    let is_slow = true;
    Question { words, is_slow, ask }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of every question")]
fn one(number: Option<impl Into<f64>>) -> Result<Vec<Option<f64>>, Error> {
    Ok(vec![number.map(Into::into)])
}

#[expect(clippy::unnecessary_wraps, reason = "the form of every question")]
fn count(number: Option<u64>) -> Result<Vec<Option<f64>>, Error> {
    Ok(vec![number.map(to_f64)])
}

fn violation(device: &Device, policy: PerfPolicy) -> Result<Vec<Option<f64>>, Error> {
    count(device.violation(policy)?.map(|v| v.violation_ns))
}

fn ecc(device: &Device, error: EccError, counter: EccCounter) -> Result<Vec<Option<f64>>, Error> {
    count(device.ecc_errors(error, counter)?)
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
