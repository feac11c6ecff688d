//! How a GPU is now: work, memory, heat, clocks, power.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{
    Answer, INVALID_ARGUMENT, NOT_SUPPORTED, VERSION_MISMATCH, code, getters, getters_by, getters_pair, put,
    structure_version,
};
use crate::load::round_u32;
use crate::state::reason;

getters! {
    nvmlDeviceGetUtilizationRates: raw::nvmlUtilization_t =
        |gpu| {
            let gpu_util = gpu.told(|still| still.gpu_util, gpu.state.gpu_util)?;
            let memory = gpu.told(|still| still.memory_util, gpu.state.memory_util)?;
            Ok(raw::nvmlUtilization_t { gpu: gpu_util, memory })
        };
    nvmlDeviceGetMemoryInfo: raw::nvmlMemory_t = memory_v1;
    nvmlDeviceGetBAR1MemoryInfo: raw::nvmlBAR1Memory_t = bar1;
    nvmlDeviceGetFanSpeed: c_uint = |gpu| fan_speed(gpu, 0);
    nvmlDeviceGetNumFans: c_uint = |gpu| gpu.told(|still| Some(u32::from(still.fan_speed.is_some())), gpu.kind().fans);
    nvmlDeviceGetPerformanceState: raw::nvmlPstates_t =
        |gpu| gpu.told(|still| still.pstate, raw::nvmlPStates_enum_NVML_PSTATE_0);
    nvmlDeviceGetPowerState: raw::nvmlPstates_t =
        |gpu| gpu.told(|still| still.pstate, raw::nvmlPStates_enum_NVML_PSTATE_0);
    nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = |gpu| gpu.told(|still| still.reasons, gpu.state.reasons);
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = |gpu| gpu.told(|still| still.reasons, gpu.state.reasons);
    nvmlDeviceGetSupportedClocksEventReasons: c_ulonglong = |_| Ok(reason::SUPPORTED);
    nvmlDeviceGetSupportedClocksThrottleReasons: c_ulonglong = |_| Ok(reason::SUPPORTED);
    nvmlDeviceGetPowerManagementMode: raw::nvmlEnableState_t = |_| Ok(raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED);
    nvmlDeviceGetPowerUsage: c_uint = |gpu| gpu.told(|still| still.power_mw, gpu.state.power_mw);
    nvmlDeviceGetEnforcedPowerLimit: c_uint = |gpu| limit(gpu, Limit::Enforced);
    nvmlDeviceGetPowerManagementLimit: c_uint = |gpu| limit(gpu, Limit::Set);
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = |gpu| limit(gpu, Limit::Default);
    nvmlDeviceGetTotalEnergyConsumption: c_ulonglong = |gpu| gpu.told(|still| still.energy_mj, gpu.state.energy_mj);
}

getters_by! {
    nvmlDeviceGetTemperature: raw::nvmlTemperatureSensors_t => c_uint = temperature;
    nvmlDeviceGetTemperatureThreshold: raw::nvmlTemperatureThresholds_t => c_uint = threshold;
    nvmlDeviceGetFanSpeed_v2: c_uint => c_uint = fan_speed;
    nvmlDeviceGetClockInfo: raw::nvmlClockType_t => c_uint = clock;
    nvmlDeviceGetMaxClockInfo: raw::nvmlClockType_t => c_uint = clock_max;
    nvmlDeviceGetApplicationsClock: raw::nvmlClockType_t => c_uint = clock_max;
    nvmlDeviceGetDefaultApplicationsClock: raw::nvmlClockType_t => c_uint = clock_max;
    nvmlDeviceGetMaxCustomerBoostClock: raw::nvmlClockType_t => c_uint = clock_max;
    nvmlDeviceGetViolationStatus: raw::nvmlPerfPolicyType_t => raw::nvmlViolationTime_t = violation;
}

getters_pair! {
    nvmlDeviceGetEncoderUtilization: c_uint = |gpu| Ok((gpu.told(|still| still.encoder_util, 0)?, SAMPLING_PERIOD_US));
    nvmlDeviceGetDecoderUtilization: c_uint = |gpu| Ok((gpu.told(|still| still.decoder_util, 0)?, SAMPLING_PERIOD_US));
    nvmlDeviceGetJpgUtilization: c_uint = |gpu| Ok((gpu.told(|still| still.jpeg_util, 0)?, SAMPLING_PERIOD_US));
    nvmlDeviceGetOfaUtilization: c_uint = |gpu| Ok((gpu.told(|still| still.optical_flow_util, 0)?, SAMPLING_PERIOD_US));
    nvmlDeviceGetPowerManagementLimitConstraints: c_uint =
        |gpu| Ok((limit(gpu, Limit::Min)?, limit(gpu, Limit::Max)?));
}

const SAMPLING_PERIOD_US: c_uint = 167_000;

/// The power limits of a board, in the order in which a capture has them.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    Enforced,
    Set,
    Default,
    Min,
    Max,
}

/// In milliwatts.
pub(super) fn limit(gpu: &Gpu, which: Limit) -> Answer<c_uint> {
    let power = &gpu.kind().power;
    let played = match which {
        Limit::Enforced | Limit::Set => gpu.state.power_limit_mw,
        Limit::Default | Limit::Max => round_u32(power.limit_max * 1000.0),
        Limit::Min => round_u32(power.limit_min * 1000.0),
    };
    gpu.told(|still| still.limits_mw[which as usize], played)
}

/// In percent: a fan follows the temperature.
fn fan_speed(gpu: &Gpu, fan: c_uint) -> Answer<c_uint> {
    if let Some(still) = gpu.still() {
        return still.fan_speed.filter(|_| fan == 0).ok_or(NOT_SUPPORTED);
    }
    match gpu.kind().fans {
        0 => Err(NOT_SUPPORTED),
        fans if fan < fans => Ok((gpu.state.temperature - 10).clamp(30, 100).unsigned_abs()),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFanSpeedRPM(
    device: nvmlDevice_t,
    out: *mut raw::nvmlFanSpeedInfo_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with version and fan filled in.
    code(unsafe { fan_rpm(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with version and fan filled in.
unsafe fn fan_rpm(device: nvmlDevice_t, out: *mut raw::nvmlFanSpeedInfo_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetFanSpeedRPM", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let asked = unsafe { *out };
    if asked.version != structure_version::<raw::nvmlFanSpeedInfo_v1_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    if gpu.still().is_some() {
        return Err(NOT_SUPPORTED);
    }
    // At full speed so many turns a minute.
    let speed = fan_speed(&gpu, asked.fan)? * 32;
    // SAFETY: as above.
    unsafe { put(out, raw::nvmlFanSpeedInfo_t { speed, ..asked }) }
}

/// Vendor's function of this name: the version must be that of the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    out: *mut raw::nvmlMemory_v2_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with its version filled in.
    code(unsafe { memory_v2(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with its version filled in.
unsafe fn memory_v2(device: nvmlDevice_t, out: *mut raw::nvmlMemory_v2_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetMemoryInfo_v2", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let version = unsafe { (*out).version };
    if version != structure_version::<raw::nvmlMemory_v2_t>(2) {
        return Err(VERSION_MISMATCH);
    }
    let [total, reserved, used, free] = memory(&gpu)?;
    let memory = raw::nvmlMemory_v2_t {
        version,
        total,
        reserved,
        free,
        used,
    };
    // SAFETY: as above.
    unsafe { put(out, memory) }
}

/// Vendor's function of this name: the version must be that of the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMarginTemperature(
    device: nvmlDevice_t,
    out: *mut raw::nvmlMarginTemperature_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with its version filled in.
    code(unsafe { margin(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with its version filled in.
unsafe fn margin(device: nvmlDevice_t, out: *mut raw::nvmlMarginTemperature_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetMarginTemperature", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let version = unsafe { (*out).version };
    if version != structure_version::<raw::nvmlMarginTemperature_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    // SAFETY: as above.
    unsafe {
        put(
            out,
            raw::nvmlMarginTemperature_t {
                version,
                marginTemperature: gpu.told(|still| still.margin, gpu.state.margin)?,
            },
        )
    }
}

/// Vendor's function of this name: the version must be that of the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperatureV(
    device: nvmlDevice_t,
    out: *mut raw::nvmlTemperature_t,
) -> nvmlReturn_t {
    // SAFETY: the header asks for a pointer to this structure with version and sensor filled in.
    code(unsafe { temperature_v(device, out) })
}

/// # Safety
///
/// `out` is null or points to a structure with version and sensor filled in.
unsafe fn temperature_v(device: nvmlDevice_t, out: *mut raw::nvmlTemperature_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceGetTemperatureV", device)?;
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and readable by the caller's promise.
    let asked = unsafe { *out };
    if asked.version != structure_version::<raw::nvmlTemperature_t>(1) {
        return Err(VERSION_MISMATCH);
    }
    let celsius = temperature(&gpu, asked.sensorType)?;
    // SAFETY: as above.
    unsafe {
        put(
            out,
            raw::nvmlTemperature_t {
                temperature: celsius.cast_signed(),
                ..asked
            },
        )
    }
}

/// Vendor's function of this name: current clocks only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClock(
    device: nvmlDevice_t,
    domain: raw::nvmlClockType_t,
    id: raw::nvmlClockId_t,
    out: *mut c_uint,
) -> nvmlReturn_t {
    let get = |gpu: &Gpu| match id {
        raw::nvmlClockId_enum_NVML_CLOCK_ID_CURRENT => clock(gpu, domain),
        raw::nvmlClockId_enum_NVML_CLOCK_ID_CUSTOMER_BOOST_MAX => clock_max(gpu, domain),
        _ => Err(NOT_SUPPORTED),
    };
    // SAFETY: the header asks for a pointer to an unsigned int.
    code(unsafe { super::get("nvmlDeviceGetClock", device, out, get) })
}

/// Vendor's function of this name: no encoder sessions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEncoderStats(
    device: nvmlDevice_t,
    sessions: *mut c_uint,
    fps: *mut c_uint,
    latency: *mut c_uint,
) -> nvmlReturn_t {
    // SAFETY: the header asks for three pointers to unsigned int.
    code(Gpu::open("nvmlDeviceGetEncoderStats", device).and_then(|_| unsafe {
        put(sessions, 0)?;
        put(fps, 0)?;
        put(latency, 0)
    }))
}

/// Total, reserved, used, free: of the instance that was asked, or of the board.
fn memory(gpu: &Gpu) -> Answer<[u64; 4]> {
    if let Some(mig) = &gpu.mig {
        return Ok([
            mig.instance.memory,
            mig.memory_reserved,
            mig.memory_used,
            mig.memory_free(),
        ]);
    }
    let state = &gpu.state;
    let played = [
        state.memory_total,
        state.memory_reserved,
        state.memory_used,
        state.memory_free,
    ];
    gpu.told(
        |still| {
            let [total, reserved, used, free] = still.memory;
            Some([total?, reserved.unwrap_or(0), used?, free?])
        },
        played,
    )
}

fn memory_v1(gpu: &Gpu) -> Answer<raw::nvmlMemory_t> {
    let [total, reserved, used, free] = memory(gpu)?;
    // The first version counts what is reserved as used.
    Ok(raw::nvmlMemory_t {
        total,
        free,
        used: used + reserved,
    })
}

fn bar1(gpu: &Gpu) -> Answer<raw::nvmlBAR1Memory_t> {
    const MIB: u64 = 1024 * 1024;
    let total = gpu.kind().bar1_mib * MIB;
    let used = if gpu.state.load.busy { 6 * MIB } else { 2 * MIB }.min(total);
    let (total, used) = gpu.told(|still| still.bar1, (total, used))?;
    // An instance has its slices' share of the window.
    let (total, used) = match &gpu.mig {
        Some(mig) => (total / 8 * u64::from(mig.instance.profile.slices), 0),
        None => (total, used),
    };
    Ok(raw::nvmlBAR1Memory_t {
        bar1Total: total,
        bar1Free: total - used,
        bar1Used: used,
    })
}

fn temperature(gpu: &Gpu, sensor: raw::nvmlTemperatureSensors_t) -> Answer<c_uint> {
    match sensor {
        raw::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU => gpu
            .told(|still| still.temperature, gpu.state.temperature)
            .map(i32::cast_unsigned),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn threshold(gpu: &Gpu, kind: raw::nvmlTemperatureThresholds_t) -> Answer<c_uint> {
    let limits = &gpu.kind().temperature;
    let celsius: c_int = match kind {
        raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN => limits.shutdown,
        raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN => limits.slowdown,
        raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_GPU_MAX => limits.gpu_max,
        raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_MEM_MAX if gpu.kind().datacenter => {
            limits.memory_max
        }
        kind if kind < raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_COUNT => {
            return Err(NOT_SUPPORTED);
        }
        _ => return Err(INVALID_ARGUMENT),
    };
    // The captured ones stand in the order in which the header numbers the four.
    let captured = gpu.told(|still| still.thresholds.get(kind as usize).copied().flatten(), celsius)?;
    Ok(captured.cast_unsigned())
}

fn clock(gpu: &Gpu, domain: raw::nvmlClockType_t) -> Answer<c_uint> {
    if let Some(still) = gpu.still() {
        return still
            .clocks
            .get(domain as usize)
            .ok_or(INVALID_ARGUMENT)?
            .ok_or(NOT_SUPPORTED);
    }
    match domain {
        raw::nvmlClockType_enum_NVML_CLOCK_GRAPHICS | raw::nvmlClockType_enum_NVML_CLOCK_SM => Ok(gpu.state.sm_clock),
        raw::nvmlClockType_enum_NVML_CLOCK_MEM => Ok(gpu.state.memory_clock),
        raw::nvmlClockType_enum_NVML_CLOCK_VIDEO => Ok(gpu.state.video_clock),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn clock_max(gpu: &Gpu, domain: raw::nvmlClockType_t) -> Answer<c_uint> {
    if let Some(still) = gpu.still() {
        return still
            .clocks_max
            .get(domain as usize)
            .ok_or(INVALID_ARGUMENT)?
            .ok_or(NOT_SUPPORTED);
    }
    let clocks = &gpu.kind().clocks;
    match domain {
        raw::nvmlClockType_enum_NVML_CLOCK_GRAPHICS | raw::nvmlClockType_enum_NVML_CLOCK_SM => Ok(clocks.sm_max),
        raw::nvmlClockType_enum_NVML_CLOCK_MEM => Ok(clocks.memory),
        raw::nvmlClockType_enum_NVML_CLOCK_VIDEO => Ok(clocks.video_max),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn violation(gpu: &Gpu, policy: raw::nvmlPerfPolicyType_t) -> Answer<raw::nvmlViolationTime_t> {
    if gpu.still().is_some() {
        return Err(NOT_SUPPORTED);
    }
    let state = &gpu.state;
    let violation = match policy {
        raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER => state.power_violation_ns,
        raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL => state.thermal_violation_ns,
        raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_SYNC_BOOST
        | raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_BOARD_LIMIT
        | raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_LOW_UTILIZATION
        | raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_RELIABILITY => 0,
        raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_APP_CLOCKS
        | raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_BASE_CLOCKS => {
            state.power_violation_ns + state.thermal_violation_ns
        }
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok(raw::nvmlViolationTime_t {
        referenceTime: simulator::now_us(),
        violationTime: violation,
    })
}
