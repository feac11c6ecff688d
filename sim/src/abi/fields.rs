//! Field values: any number by its id.

use std::ffi::c_int;

use nvml_wrapper_sys::bindings::{self as raw, field_id, nvmlDevice_t, nvmlReturn_t};

use super::call;
use super::readings::{Limit, limit};
use super::simulator::{self, Gpu};
use super::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, code, errors, links};
use crate::load::round_u64;
use crate::scenario::NoNumber;
use crate::state::LinkState;

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
    let gpu = Gpu::open("nvmlDeviceGetFieldValues", device)?;
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
        let spoilt = call::field(&gpu.scenario, value.fieldId, gpu.index, gpu.t_ms);
        value.nvmlReturn = match spoilt.and_then(|spoilt| Ok((field(&gpu, value.fieldId, value.scopeId)?, spoilt))) {
            Ok((answer, spoilt)) => {
                (value.valueType, value.value) = answer.spoilt(spoilt.or(gpu.no_number)).raw();
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
    /// A number that means none, of the same type.
    fn spoilt(self, no_number: Option<NoNumber>) -> Self {
        match (no_number, self) {
            (None, number) => number,
            (Some(NoNumber::Ones), Self::Uint(_)) => Self::Uint(u32::MAX),
            (Some(NoNumber::Ones), Self::Ullong(_)) => Self::Ullong(u64::MAX),
            (Some(NoNumber::Ones), Self::Int(_)) => Self::Int(i32::MAX),
            (Some(NoNumber::Blank), Self::Ullong(_)) => Self::Ullong(super::INT64_BLANK),
            (Some(NoNumber::Blank), Self::Uint(_)) => Self::Uint(super::INT32_BLANK),
            (Some(NoNumber::Blank), Self::Int(_)) => Self::Int(super::INT32_BLANK.cast_signed()),
        }
    }

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
    use Number::{Uint, Ullong};
    let state = &gpu.state;
    let kind = gpu.kind();
    let datacenter = |number: Number| {
        if kind.datacenter {
            Ok(number)
        } else {
            Err(NOT_SUPPORTED)
        }
    };
    let played = |number: Number| {
        if gpu.still().is_none() {
            Ok(number)
        } else {
            Err(NOT_SUPPORTED)
        }
    };
    match id {
        field_id::NVML_FI_DEV_ECC_CURRENT => {
            gpu.told(|still| Some(Uint(still.ecc_mode?.0.into())), datacenter(Uint(1))?)
        }
        field_id::NVML_FI_DEV_ECC_PENDING => {
            gpu.told(|still| Some(Uint(still.ecc_mode?.1.into())), datacenter(Uint(1))?)
        }
        field_id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL..=field_id::NVML_FI_DEV_ECC_DBE_AGG_CBU => ecc(gpu, id),
        field_id::NVML_FI_DEV_RETIRED_SBE
        | field_id::NVML_FI_DEV_RETIRED_DBE
        | field_id::NVML_FI_DEV_RETIRED_PENDING => {
            let (single, double, waits) = errors::retired(gpu)?;
            Ok(Uint(match id {
                field_id::NVML_FI_DEV_RETIRED_SBE => single,
                field_id::NVML_FI_DEV_RETIRED_DBE => double,
                _ => waits.into(),
            }))
        }
        field_id::NVML_FI_DEV_MEMORY_TEMP => {
            let played = || datacenter(Uint(state.memory_temperature.cast_unsigned()));
            match gpu.still() {
                Some(still) => still
                    .memory_temperature
                    .map(|t| Uint(t.cast_unsigned()))
                    .ok_or(NOT_SUPPORTED),
                None => played(),
            }
        }
        field_id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => {
            gpu.told(|still| still.energy_mj, state.energy_mj).map(Ullong)
        }
        field_id::NVML_FI_DEV_POWER_AVERAGE..=field_id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => power(gpu, id, scope),
        field_id::NVML_FI_DEV_PERF_POLICY_POWER => played(Ullong(state.power_violation_ns)),
        field_id::NVML_FI_DEV_PERF_POLICY_THERMAL => played(Ullong(state.thermal_violation_ns)),
        field_id::NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS | field_id::NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS => {
            played(Ullong(state.power_violation_ns + state.thermal_violation_ns))
        }
        field_id::NVML_FI_DEV_PERF_POLICY_SYNC_BOOST
        | field_id::NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT
        | field_id::NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION
        | field_id::NVML_FI_DEV_PERF_POLICY_RELIABILITY
        | field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN => played(Ullong(0)),
        field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN => played(Ullong(state.thermal_violation_ns)),
        field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN => played(Ullong(state.hw_thermal_ns)),
        field_id::NVML_FI_DEV_REMAPPED_COR..=field_id::NVML_FI_DEV_REMAPPED_FAILURE => {
            let (correctable, uncorrectable, pending, failure) = errors::remapped(gpu)?;
            Ok(Uint(match id {
                field_id::NVML_FI_DEV_REMAPPED_COR => correctable,
                field_id::NVML_FI_DEV_REMAPPED_UNC => uncorrectable,
                field_id::NVML_FI_DEV_REMAPPED_PENDING => pending.into(),
                _ => failure.into(),
            }))
        }
        field_id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => gpu.told(|still| still.pcie_replays, state.pcie_replays).map(Uint),
        field_id::NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS | field_id::NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED => {
            played(Uint(state.pcie_replays))
        }
        field_id::NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR..=field_id::NVML_FI_DEV_PCIE_COUNT_LANE_ERROR
        | field_id::NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER
        | field_id::NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER => played(Uint(0)),
        field_id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES => played(Ullong(state.pcie_tx)),
        field_id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES => played(Ullong(state.pcie_rx)),
        field_id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT..=field_id::NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT => {
            margin(gpu, id)
        }
        field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION => {
            gpu.told(|still| still.recovery_action, state.recovery_action).map(Uint)
        }
        field_id::NVML_FI_DEV_RESET_STATUS => played(Uint((state.recovery_action == 1).into())),
        field_id::NVML_FI_DEV_DRAIN_AND_RESET_STATUS => played(Uint((state.recovery_action == 4).into())),
        id => nvlink(gpu, id, scope),
    }
}

/// Errors by place: all together, in device memory, in the L2 cache; other places are not told apart from Ampere on.
fn ecc(gpu: &Gpu, id: u32) -> Answer<Number> {
    let corrected = raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED;
    let uncorrected = raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
    let volatile = raw::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
    let aggregate = raw::nvmlEccCounterType_enum_NVML_AGGREGATE_ECC;
    let total = |error, counter| errors::total(gpu, error, counter).map(Number::Ullong);
    let device = |error, counter| {
        Ok(Number::Ullong(
            errors::total(gpu, error, counter)? - errors::in_sram(gpu, error, counter)?,
        ))
    };
    match id {
        field_id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL => total(corrected, volatile),
        field_id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL => total(uncorrected, volatile),
        field_id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL => total(corrected, aggregate),
        field_id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL => total(uncorrected, aggregate),
        field_id::NVML_FI_DEV_ECC_SBE_VOL_DEV => device(corrected, volatile),
        field_id::NVML_FI_DEV_ECC_DBE_VOL_DEV => device(uncorrected, volatile),
        field_id::NVML_FI_DEV_ECC_SBE_AGG_DEV => device(corrected, aggregate),
        field_id::NVML_FI_DEV_ECC_DBE_AGG_DEV => device(uncorrected, aggregate),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Of the GPU; of the module only what a capture tells.
fn power(gpu: &Gpu, id: u32, scope: u32) -> Answer<Number> {
    let of_module = |told: Option<u32>| told.map(Number::Uint).ok_or(NOT_SUPPORTED);
    match (scope, gpu.still()) {
        (0, _) => {}
        (1, Some(still)) => {
            return of_module(match id {
                field_id::NVML_FI_DEV_POWER_AVERAGE | field_id::NVML_FI_DEV_POWER_INSTANT => still.module_power_mw,
                field_id::NVML_FI_DEV_POWER_CURRENT_LIMIT => still.module_limit_mw,
                _ => None,
            });
        }
        _ => return Err(NOT_SUPPORTED),
    }
    let milliwatts = match id {
        field_id::NVML_FI_DEV_POWER_AVERAGE => gpu.told(|still| still.power_mw, gpu.state.power_mw),
        field_id::NVML_FI_DEV_POWER_INSTANT => {
            gpu.told(|still| still.power_instant_mw.or(still.power_mw), gpu.state.power_mw)
        }
        field_id::NVML_FI_DEV_POWER_MIN_LIMIT => limit(gpu, Limit::Min),
        field_id::NVML_FI_DEV_POWER_MAX_LIMIT => limit(gpu, Limit::Max),
        field_id::NVML_FI_DEV_POWER_DEFAULT_LIMIT => limit(gpu, Limit::Default),
        field_id::NVML_FI_DEV_POWER_CURRENT_LIMIT => limit(gpu, Limit::Enforced),
        field_id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => limit(gpu, Limit::Set),
        _ => Err(NOT_SUPPORTED),
    };
    milliwatts.map(Number::Uint)
}

/// The margins at which something happens, from Ada on.
fn margin(gpu: &Gpu, id: u32) -> Answer<Number> {
    let kind = gpu.kind();
    let at = (id - field_id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT) as usize;
    if let Some(still) = gpu.still() {
        let told = still.margin_thresholds.get(at).copied().flatten();
        return told.map(Number::Int).ok_or(NOT_SUPPORTED);
    }
    if kind.architecture < raw::NVML_DEVICE_ARCH_ADA {
        return Err(NOT_SUPPORTED);
    }
    let limits = [
        kind.temperature.shutdown,
        kind.temperature.slowdown,
        kind.temperature.gpu_max,
        kind.temperature.gpu_max,
    ];
    limits
        .get(at)
        .map(|limit| Number::Int(kind.temperature.gpu_max - limit))
        .ok_or(NOT_SUPPORTED)
}

fn nvlink(gpu: &Gpu, id: u32, scope: u32) -> Answer<Number> {
    use Number::{Uint, Ullong};
    let (state, kind) = (&gpu.state, gpu.kind());
    if kind.nvlinks == 0 && (1..field_id::NVML_FI_MAX).contains(&id) {
        return Err(NOT_SUPPORTED);
    }
    let link = || links::link(gpu, scope);
    let sum = |count: fn(&LinkState) -> u64| Ok(Ullong(state.links.iter().map(count).sum()));
    match id {
        field_id::NVML_FI_DEV_NVLINK_LINK_COUNT => Ok(Uint(kind.nvlinks)),
        field_id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON => Ok(Uint(kind.nvlink_mbps)),
        field_id::NVML_FI_DEV_NVLINK_GET_SPEED => link().and_then(|link| {
            if link.down {
                Err(NOT_SUPPORTED)
            } else {
                Ok(Uint(kind.nvlink_mbps))
            }
        }),
        field_id::NVML_FI_DEV_NVLINK_GET_STATE => link().map(|link| Uint((!link.down).into())),
        field_id::NVML_FI_DEV_NVLINK_GET_VERSION => link().map(|_| Uint(links::version(gpu))),
        field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL => sum(|link| link.crc),
        field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL => sum(|link| link.replay),
        field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL => sum(|link| link.recovery),
        field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
        | field_id::NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL => Ok(Ullong(0)),
        field_id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY => link().map(|link| Ullong(link.replay)),
        field_id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY => link().map(|link| Ullong(link.recovery)),
        field_id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC => link().map(|link| Ullong(link.crc)),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX => throughput(gpu, scope, state.nvlink_tx, 1.0),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX => throughput(gpu, scope, state.nvlink_rx, 1.0),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX => throughput(gpu, scope, state.nvlink_tx, RAW_OVER_DATA),
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX => throughput(gpu, scope, state.nvlink_rx, RAW_OVER_DATA),
        field_id::NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS..=field_id::NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER => {
            nvlink5(gpu, id, scope)
        }
        1..field_id::NVML_FI_MAX => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// What only links of the fifth generation count.
fn nvlink5(gpu: &Gpu, id: u32, scope: u32) -> Answer<Number> {
    if links::version(gpu) < 5 || gpu.still().is_some() {
        return Err(NOT_SUPPORTED);
    }
    let link = links::link(gpu, scope)?;
    let share = |bytes: u64| bytes / u64::from(gpu.kind().nvlinks.max(1));
    Ok(Number::Ullong(match id {
        field_id::NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES => share(gpu.state.nvlink_tx),
        field_id::NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES => share(gpu.state.nvlink_rx),
        field_id::NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS => share(gpu.state.nvlink_tx) / PACKET_BYTES,
        field_id::NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS => share(gpu.state.nvlink_rx) / PACKET_BYTES,
        field_id::NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS => link.crc,
        field_id::NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS
        | field_id::NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS => link.recovery,
        _ => 0,
    }))
}

const PACKET_BYTES: u64 = 256;

/// Headers and checksums on the wire.
const RAW_OVER_DATA: f64 = 1.08;

/// In KiB; all links carry the same.
fn throughput(gpu: &Gpu, scope: u32, bytes: u64, factor: f64) -> Answer<Number> {
    let links = gpu.kind().nvlinks;
    if gpu.still().is_some() {
        return Err(NOT_SUPPORTED);
    }
    #[expect(clippy::cast_precision_loss, reason = "a simulated counter")]
    let kib = bytes as f64 * factor / 1024.0;
    if scope == ALL_LINKS && links > 0 {
        return Ok(Number::Ullong(round_u64(kib)));
    }
    links::link(gpu, scope)?;
    Ok(Number::Ullong(round_u64(kib / f64::from(links))))
}
