//! Field values: any number by its id.

use std::ffi::c_int;

use nvml_wrapper_sys::bindings::{self as raw, field_id, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, code, errors, links};
use crate::load::{round_u32, round_u64};

/// Vendor's function of this name: each field has its own outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut raw::nvmlFieldValue_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for so many structures.
    code(unsafe { fill(device, count, values) })
}

/// # Safety
///
/// There are `count` structures at `values`, if that is not null.
unsafe fn fill(device: nvmlDevice_t, count: c_int, values: *mut raw::nvmlFieldValue_t) -> Answer<()> {
    let gpu = Gpu::open(device)?;
    let Ok(count @ 1..) = usize::try_from(count) else {
        return Err(INVALID_ARGUMENT);
    };
    if values.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: so many structures, by the caller's promise.
    for value in unsafe { std::slice::from_raw_parts_mut(values, count) } {
        value.timestamp = i64::try_from(simulator::now_us()).unwrap_or(i64::MAX);
        value.latencyUsec = 0;
        value.nvmlReturn = match field(&gpu, value.fieldId, value.scopeId) {
            Ok(answer) => {
                (value.valueType, value.value) = answer.raw();
                SUCCESS
            }
            Err(code) => code,
        };
    }
    Ok(())
}

/// A number and the type that the driver gives it.
enum Number {
    Uint(u32),
    Ullong(u64),
    Int(i32),
}

impl Number {
    fn raw(self) -> (raw::nvmlValueType_t, raw::nvmlValue_t) {
        // The whole union is written first: a client may print any member.
        let mut value = raw::nvmlValue_t { ullVal: 0 };
        match self {
            Self::Uint(number) => {
                value.uiVal = number;
                (raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, value)
            }
            Self::Ullong(number) => {
                value.ullVal = number;
                (raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, value)
            }
            Self::Int(number) => {
                value.siVal = number;
                (raw::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT, value)
            }
        }
    }
}

const ALL_LINKS: u32 = u32::MAX;

fn field(gpu: &Gpu, id: u32, scope: u32) -> Answer<Number> {
    use Number::{Int, Uint, Ullong};
    let state = &gpu.state;
    let kind = gpu.scenario.kind();
    let datacenter = |number: Number| {
        if kind.datacenter {
            Ok(number)
        } else {
            Err(NOT_SUPPORTED)
        }
    };
    let ecc = |error, counter| errors::total(gpu, error, counter).map(Ullong);
    let limit = |limit: i32| Int(kind.temperature.gpu_max - limit);
    let corrected = raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED;
    let uncorrected = raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
    let volatile = raw::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
    let aggregate = raw::nvmlEccCounterType_enum_NVML_AGGREGATE_ECC;
    match id {
        field_id::NVML_FI_DEV_ECC_CURRENT | field_id::NVML_FI_DEV_ECC_PENDING => datacenter(Uint(1)),
        field_id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL | field_id::NVML_FI_DEV_ECC_SBE_VOL_DEV => ecc(corrected, volatile),
        field_id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL | field_id::NVML_FI_DEV_ECC_DBE_VOL_DEV => ecc(uncorrected, volatile),
        field_id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL | field_id::NVML_FI_DEV_ECC_SBE_AGG_DEV => ecc(corrected, aggregate),
        field_id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL | field_id::NVML_FI_DEV_ECC_DBE_AGG_DEV => ecc(uncorrected, aggregate),
        field_id::NVML_FI_DEV_MEMORY_TEMP => datacenter(Uint(state.memory_temperature.cast_unsigned())),
        field_id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => Ok(Ullong(state.energy_mj)),
        field_id::NVML_FI_DEV_POWER_AVERAGE | field_id::NVML_FI_DEV_POWER_INSTANT if scope == 0 => {
            Ok(Uint(state.power_mw))
        }
        field_id::NVML_FI_DEV_POWER_MIN_LIMIT => Ok(Uint(round_u32(kind.power.limit_min * 1000.0))),
        field_id::NVML_FI_DEV_POWER_MAX_LIMIT | field_id::NVML_FI_DEV_POWER_DEFAULT_LIMIT => {
            Ok(Uint(round_u32(kind.power.limit_max * 1000.0)))
        }
        field_id::NVML_FI_DEV_POWER_CURRENT_LIMIT | field_id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => {
            Ok(Uint(round_u32(kind.power.limit * 1000.0)))
        }
        field_id::NVML_FI_DEV_PERF_POLICY_POWER => Ok(Ullong(state.power_violation_ns)),
        field_id::NVML_FI_DEV_PERF_POLICY_THERMAL => Ok(Ullong(state.thermal_violation_ns)),
        field_id::NVML_FI_DEV_PERF_POLICY_SYNC_BOOST
        | field_id::NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT
        | field_id::NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION
        | field_id::NVML_FI_DEV_PERF_POLICY_RELIABILITY
        | field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN => Ok(Ullong(0)),
        field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN => Ok(Ullong(state.thermal_violation_ns)),
        field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN => Ok(Ullong(state.hw_thermal_ns)),
        field_id::NVML_FI_DEV_NVLINK_LINK_COUNT => match kind.nvlinks {
            0 => Err(NOT_SUPPORTED),
            count => Ok(Uint(count)),
        },
        field_id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON if kind.nvlinks > 0 => Ok(Uint(kind.nvlink_mbps)),
        field_id::NVML_FI_DEV_NVLINK_GET_SPEED => links::link(gpu, scope).map(|()| Uint(kind.nvlink_mbps)),
        field_id::NVML_FI_DEV_NVLINK_GET_STATE => links::link(gpu, scope).map(|()| Uint(1)),
        field_id::NVML_FI_DEV_NVLINK_GET_VERSION => links::link(gpu, scope).map(|()| Uint(4)),
        field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
        | field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
        | field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
        | field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL
        | field_id::NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL
            if kind.nvlinks > 0 =>
        {
            Ok(Ullong(0))
        }
        field_id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY
        | field_id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY
        | field_id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC => links::link(gpu, scope).map(|()| Ullong(0)),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX => throughput(gpu, scope, state.nvlink_tx, 1.0),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX => throughput(gpu, scope, state.nvlink_rx, 1.0),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX => throughput(gpu, scope, state.nvlink_tx, RAW_OVER_DATA),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX => throughput(gpu, scope, state.nvlink_rx, RAW_OVER_DATA),
        field_id::NVML_FI_DEV_REMAPPED_COR => datacenter(Uint(state.remapped_correctable)),
        field_id::NVML_FI_DEV_REMAPPED_UNC => datacenter(Uint(state.remapped_uncorrectable)),
        field_id::NVML_FI_DEV_REMAPPED_PENDING => datacenter(Uint(state.remapped_pending.into())),
        field_id::NVML_FI_DEV_REMAPPED_FAILURE => datacenter(Uint(state.remapped_failure.into())),
        field_id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => Ok(Uint(state.pcie_replays)),
        field_id::NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS | field_id::NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED => {
            Ok(Uint(state.pcie_replays))
        }
        field_id::NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR | field_id::NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR => Ok(Uint(0)),
        field_id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES => Ok(Ullong(state.pcie_tx)),
        field_id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES => Ok(Ullong(state.pcie_rx)),
        field_id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT => Ok(limit(kind.temperature.shutdown)),
        field_id::NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT => Ok(limit(kind.temperature.slowdown)),
        field_id::NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT | field_id::NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT => {
            Ok(Int(0))
        }
        field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION => Ok(Uint(recovery_action(gpu))),
        1..field_id::NVML_FI_MAX => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Headers and checksums on the wire.
const RAW_OVER_DATA: f64 = 1.08;

/// In KiB; all links carry the same.
fn throughput(gpu: &Gpu, scope: u32, bytes: u64, factor: f64) -> Answer<Number> {
    let links = gpu.scenario.kind().nvlinks;
    #[expect(clippy::cast_precision_loss, reason = "a simulated counter")]
    let kib = bytes as f64 * factor / 1024.0;
    if scope == ALL_LINKS && links > 0 {
        return Ok(Number::Ullong(round_u64(kib)));
    }
    links::link(gpu, scope)?;
    Ok(Number::Ullong(round_u64(kib / f64::from(links))))
}

/// Nothing, or a reset for rows that wait.
fn recovery_action(gpu: &Gpu) -> u32 {
    if gpu.state.remapped_pending {
        raw::nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_GPU_RESET
    } else {
        raw::nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_NONE
    }
}
