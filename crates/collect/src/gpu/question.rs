//! What a GPU can be asked, by the words of the field table.
//!
//! One question may answer several words with one call of the driver. A board that lacks a thing answers nothing, which
//! is no error and touches no other question.

use nvml::{
    ClockType, ComputeMode, Device, EccCounter, EccError, Error, FieldId, FieldValue, GpmMetric, PerfPolicy,
    TemperatureThreshold,
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

/// GPUs of the machine.
pub const GPU_COUNT: &str = "gpu_count";
/// The newest CUDA version of the driver, major times 1000 and minor times 10.
pub const CUDA_VERSION: &str = "cuda_version";
/// The driver's index.
pub const INDEX: &str = "index";
/// Memory used of what is not reserved.
pub const MEMORY_USED_RATIO: &str = "memory_used_ratio";

/// What the collector answers itself.
const OWN: [&str; 6] = [
    XID_LAST,
    VGPU_LICENSE,
    GPU_COUNT,
    CUDA_VERSION,
    INDEX,
    MEMORY_USED_RATIO,
];

/// What our own series need, whatever the table shows.
pub const ALWAYS: [&str; 18] = [
    "temperature",
    "margin_temperature",
    "margin_slowdown",
    "threshold_slowdown",
    "clock_reasons",
    "throttle_sw_power_cap",
    "performance_state",
    "utilization_gpu",
    "memory_used",
    "pcie_generation",
    "remapped_pending",
    "retired_pending",
    "recovery_action",
    "power_usage",
    "nvlink_bytes",
    "ecc_current",
    "xid_last",
    "mig_mode",
];

/// Questions to the GPU's own counters, which need two samples.
pub const GPM: [(&str, GpmMetric); 16] = [
    ("gpm_graphics", GpmMetric::GraphicsUtil),
    ("gpm_sm", GpmMetric::SmUtil),
    ("gpm_occupancy", GpmMetric::SmOccupancy),
    ("gpm_tensor", GpmMetric::AnyTensorUtil),
    ("gpm_dram", GpmMetric::DramBwUtil),
    ("gpm_fp64", GpmMetric::Fp64Util),
    ("gpm_fp32", GpmMetric::Fp32Util),
    ("gpm_fp16", GpmMetric::Fp16Util),
    ("gpm_int", GpmMetric::IntegerUtil),
    ("gpm_imma", GpmMetric::ImmaTensorUtil),
    ("gpm_hmma", GpmMetric::HmmaTensorUtil),
    ("gpm_dfma", GpmMetric::DfmaTensorUtil),
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
    slow(&["clock_max_video"], |d| one(d.clock_max(ClockType::Video)?)),
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
    quick(&["power_instant"], |d| one(d.power_instant()?)),
    quick(&["energy_total"], |d| count(d.energy_total()?)),
    quick(&["power_limit_enforced"], |d| one(d.power_limit_enforced()?)),
    slow(&["power_limit"], |d| one(d.power_limit()?)),
    slow(&["power_limit_default"], |d| one(d.power_limit_default()?)),
    slow(&["power_limit_min", "power_limit_max"], |d| {
        let range = d.power_limit_range()?;
        Ok(vec![range.map(|r| r.min.into()), range.map(|r| r.max.into())])
    }),
    quick(&["pcie_replays"], |d| one(d.pcie_replays()?)),
    // The driver counts for 20 ms on each of the two.
    quick(&["pcie_throughput_tx", "pcie_throughput_rx"], |d| {
        let flow = d.pcie_throughput()?;
        Ok(vec![flow.tx.map(f64::from), flow.rx.map(f64::from)])
    }),
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
    quick(&["violation_app_clocks"], |d| violation(d, PerfPolicy::TotalAppClocks)),
    quick(&["violation_base_clocks"], |d| {
        violation(d, PerfPolicy::TotalBaseClocks)
    }),
    quick(
        &[
            "throttle_sw_power_cap",
            "throttle_sync_boost",
            "throttle_sw_thermal",
            "throttle_hw_thermal",
            "throttle_hw_power_brake",
        ],
        |d| {
            let counters = [
                FieldId::PERF_POLICY_POWER,
                FieldId::PERF_POLICY_SYNC_BOOST,
                FieldId::CLOCKS_SW_THERMAL_SLOWDOWN,
                FieldId::CLOCKS_HW_THERMAL_SLOWDOWN,
                FieldId::CLOCKS_HW_POWER_BRAKE_SLOWDOWN,
            ];
            fields(d, &counters)
        },
    ),
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
    quick(&["bar1_used", "bar1_total", "bar1_free"], |d| {
        let bar1 = d.bar1()?;
        let of = |part: fn(&nvml::Bar1) -> u64| bar1.as_ref().map(part).map(to_f64);
        Ok(vec![of(|b| b.used), of(|b| b.total), of(|b| b.free)])
    }),
    slow(&["ecc_current", "ecc_pending"], |d| {
        let mode = d.ecc_mode()?;
        Ok(vec![mode.map(|m| flag(m.current)), mode.map(|m| flag(m.pending))])
    }),
    slow(&["mig_mode"], |d| {
        Ok(vec![d.mig_mode()?.map(|mode| flag(mode.current))])
    }),
    slow(&["minor_number"], |d| one(d.minor_number()?)),
    slow(&["persistence_mode"], |d| Ok(vec![d.persistence_mode()?.map(flag)])),
    slow(&["compute_mode"], |d| {
        let number = |mode| match mode {
            ComputeMode::Default => 0.0,
            ComputeMode::ExclusiveThread => 1.0,
            ComputeMode::Prohibited => 2.0,
            ComputeMode::ExclusiveProcess => 3.0,
        };
        Ok(vec![d.compute_mode()?.map(number)])
    }),
    quick(&["recovery_action"], |d| one(d.recovery_action()?)),
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
            let counters = [
                FieldId::NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_REPLAY_ERROR_COUNT_TOTAL,
                FieldId::NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
            ];
            fields(d, &counters)
        },
    ),
    quick(&["nvlink_bytes"], |d| link_bytes(d, None)),
    quick(
        &[
            "nvlink_bytes_l0",
            "nvlink_bytes_l1",
            "nvlink_bytes_l2",
            "nvlink_bytes_l3",
            "nvlink_bytes_l4",
            "nvlink_bytes_l5",
            "nvlink_bytes_l6",
            "nvlink_bytes_l7",
            "nvlink_bytes_l8",
            "nvlink_bytes_l9",
            "nvlink_bytes_l10",
            "nvlink_bytes_l11",
            "nvlink_bytes_l12",
            "nvlink_bytes_l13",
            "nvlink_bytes_l14",
            "nvlink_bytes_l15",
            "nvlink_bytes_l16",
            "nvlink_bytes_l17",
        ],
        |d| {
            let links = d.nvlink_count()?.unwrap_or(0);
            let each = (0..18).map(|link| {
                if link < links {
                    Ok(link_bytes(d, Some(link))?.pop().flatten())
                } else {
                    Ok(None)
                }
            });
            each.collect()
        },
    ),
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
    self::word(word).is_some_and(|word| !is_text(word))
}

/// What names a GPU or its software, in words.
const TEXTS: [&str; 13] = [
    "driver_version",
    "nvml_version",
    "brand",
    "model",
    "uuid",
    "pci_bus_id",
    "serial",
    "vbios_version",
    "board_part_number",
    "inforom_image_version",
    "inforom_oem_version",
    "inforom_ecc_version",
    "inforom_power_version",
];

/// The word as it is written in the program; `None` for one that nobody asks for.
pub fn word(text: &str) -> Option<&'static str> {
    numbers().chain(OWN).chain(TEXTS).find(|word| *word == text)
}

/// The words of all numbers that a GPU is asked for.
pub fn numbers() -> impl Iterator<Item = &'static str> {
    let asked = QUESTIONS.iter().flat_map(|q| q.words.iter().copied());
    asked.chain(GPM.iter().map(|(word, _)| *word))
}

/// Whether this word is a text.
pub fn is_text(word: &str) -> bool {
    TEXTS.contains(&word)
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

/// Numbers that NVML has as field values, asked for in one call.
fn fields(device: &Device, ids: &[FieldId]) -> Result<Vec<Option<f64>>, Error> {
    let values = device.field_values(ids)?;
    let mut values = values.iter().map(FieldValue::as_f64);
    Ok(ids.iter().map(|_| values.next().flatten()).collect())
}

/// Payload in both directions.
fn link_bytes(device: &Device, link: Option<u32>) -> Result<Vec<Option<f64>>, Error> {
    let sum = device.nvlink_throughput(link)?;
    let bytes = sum.data_tx.zip(sum.data_rx).map(|(tx, rx)| to_f64(tx) + to_f64(rx));
    Ok(vec![bytes])
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
