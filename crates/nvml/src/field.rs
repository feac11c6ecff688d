//! Field values: many numbers of one GPU in one call.

#![expect(unsafe_code, reason = "fills an array and reads a tagged union")]

use nvml_wrapper_sys::bindings::{self as raw, field_id};

use crate::device::Device;
use crate::error::{Error, means_absent};
use crate::sentinel::{known_f64, known_i64, known_u32, known_u64};
use crate::symbol::symbol;

/// Which number: the header's `NVML_FI_*` id, and for some a scope (an NVLink, a power domain).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldId {
    /// The header's number.
    pub id: u32,
    /// The link or domain; 0 where there is none, `u32::MAX` for all links.
    pub scope: u32,
}

/// A number as the driver typed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `double`.
    Double(f64),
    /// Any signed integer.
    Signed(i64),
    /// Any unsigned integer.
    Unsigned(u64),
}

/// One answer.
#[derive(Debug)]
pub struct FieldValue {
    /// What was asked.
    pub id: FieldId,
    /// When the driver took it, in microseconds since 1970.
    pub timestamp_us: i64,
    /// The number; `Ok(None)` if this GPU has none.
    pub value: Result<Option<Value>, Error>,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $raw:ident;)*) => {
        impl FieldId {
            $($(#[$doc])* pub const $name: Self = Self::new(field_id::$raw);)*
        }
    };
}

fields! {
    /// Memory temperature, degrees Celsius.
    MEMORY_TEMP = NVML_FI_DEV_MEMORY_TEMP;
    /// Energy since the driver was loaded, millijoules.
    TOTAL_ENERGY_CONSUMPTION = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION;
    /// Power averaged over a second, milliwatts; the scope is 0 GPU, 1 module, 2 memory.
    POWER_AVERAGE = NVML_FI_DEV_POWER_AVERAGE;
    /// Power now, milliwatts; the scope is 0 GPU, 1 module, 2 memory.
    POWER_INSTANT = NVML_FI_DEV_POWER_INSTANT;
    /// ECC on (1) or off (0).
    ECC_CURRENT = NVML_FI_DEV_ECC_CURRENT;
    /// ECC after the next reset.
    ECC_PENDING = NVML_FI_DEV_ECC_PENDING;
    /// Corrected errors since the driver was loaded.
    ECC_SBE_VOL_TOTAL = NVML_FI_DEV_ECC_SBE_VOL_TOTAL;
    /// Uncorrected errors since the driver was loaded.
    ECC_DBE_VOL_TOTAL = NVML_FI_DEV_ECC_DBE_VOL_TOTAL;
    /// Corrected errors over the board's life.
    ECC_SBE_AGG_TOTAL = NVML_FI_DEV_ECC_SBE_AGG_TOTAL;
    /// Uncorrected errors over the board's life.
    ECC_DBE_AGG_TOTAL = NVML_FI_DEV_ECC_DBE_AGG_TOTAL;
    /// Pages retired for single-bit errors.
    RETIRED_SBE = NVML_FI_DEV_RETIRED_SBE;
    /// Pages retired for double-bit errors.
    RETIRED_DBE = NVML_FI_DEV_RETIRED_DBE;
    /// Whether pages wait for retirement.
    RETIRED_PENDING = NVML_FI_DEV_RETIRED_PENDING;
    /// Rows remapped for correctable errors.
    REMAPPED_COR = NVML_FI_DEV_REMAPPED_COR;
    /// Rows remapped for uncorrectable errors.
    REMAPPED_UNC = NVML_FI_DEV_REMAPPED_UNC;
    /// Whether rows wait for a reset to be remapped.
    REMAPPED_PENDING = NVML_FI_DEV_REMAPPED_PENDING;
    /// Whether a remapping failed.
    REMAPPED_FAILURE = NVML_FI_DEV_REMAPPED_FAILURE;
    /// Time under the power limit, nanoseconds.
    PERF_POLICY_POWER = NVML_FI_DEV_PERF_POLICY_POWER;
    /// Time under the thermal limit, nanoseconds.
    PERF_POLICY_THERMAL = NVML_FI_DEV_PERF_POLICY_THERMAL;
    /// Time held to the sync-boost group, nanoseconds.
    PERF_POLICY_SYNC_BOOST = NVML_FI_DEV_PERF_POLICY_SYNC_BOOST;
    /// Time under the board limit, nanoseconds.
    PERF_POLICY_BOARD_LIMIT = NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT;
    /// Time with too little work, nanoseconds.
    PERF_POLICY_LOW_UTILIZATION = NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION;
    /// Time under the reliability limit, nanoseconds.
    PERF_POLICY_RELIABILITY = NVML_FI_DEV_PERF_POLICY_RELIABILITY;
    /// Time in software thermal slowdown, nanoseconds.
    CLOCKS_SW_THERMAL_SLOWDOWN = NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN;
    /// Time in hardware thermal slowdown, nanoseconds.
    CLOCKS_HW_THERMAL_SLOWDOWN = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN;
    /// Time under the power brake, nanoseconds.
    CLOCKS_HW_POWER_BRAKE_SLOWDOWN = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN;
    /// Number of NVLinks.
    NVLINK_LINK_COUNT = NVML_FI_DEV_NVLINK_LINK_COUNT;
    /// Speed of one link (scope), MB/s.
    NVLINK_GET_SPEED = NVML_FI_DEV_NVLINK_GET_SPEED;
    /// Flow-control CRC errors of all links.
    NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL;
    /// Data CRC errors of all links.
    NVLINK_CRC_DATA_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL;
    /// Replays of all links.
    NVLINK_REPLAY_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL;
    /// Recoveries of all links.
    NVLINK_RECOVERY_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL;
    /// Data ECC errors of all links.
    NVLINK_ECC_DATA_ERROR_COUNT_TOTAL = NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL;
    /// Payload sent over a link (scope), KiB.
    NVLINK_THROUGHPUT_DATA_TX = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
    /// Payload received over a link (scope), KiB.
    NVLINK_THROUGHPUT_DATA_RX = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX;
    /// Sent over a link (scope) with protocol, KiB.
    NVLINK_THROUGHPUT_RAW_TX = NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX;
    /// Received over a link (scope) with protocol, KiB.
    NVLINK_THROUGHPUT_RAW_RX = NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX;
    /// PCIe packets sent again.
    PCIE_REPLAY_COUNTER = NVML_FI_DEV_PCIE_REPLAY_COUNTER;
    /// PCIe correctable errors.
    PCIE_COUNT_CORRECTABLE_ERRORS = NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS;
    /// PCIe non-fatal errors.
    PCIE_COUNT_NON_FATAL_ERROR = NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR;
    /// PCIe fatal errors.
    PCIE_COUNT_FATAL_ERROR = NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR;
    /// Bytes sent over PCIe, a counter.
    PCIE_COUNT_TX_BYTES = NVML_FI_DEV_PCIE_COUNT_TX_BYTES;
    /// Bytes received over PCIe, a counter.
    PCIE_COUNT_RX_BYTES = NVML_FI_DEV_PCIE_COUNT_RX_BYTES;
    /// T.Limit margin at which the board powers off, degrees Celsius.
    TEMPERATURE_SHUTDOWN_TLIMIT = NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT;
    /// T.Limit margin at which the hardware cuts the clocks.
    TEMPERATURE_SLOWDOWN_TLIMIT = NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT;
    /// T.Limit margin of the memory's highest operating temperature.
    TEMPERATURE_MEM_MAX_TLIMIT = NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT;
    /// T.Limit margin of the core's highest operating temperature.
    TEMPERATURE_GPU_MAX_TLIMIT = NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT;
    /// Time below the application clocks for any reason, nanoseconds.
    PERF_POLICY_TOTAL_APP_CLOCKS = NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS;
    /// Time below the base clocks for any reason, nanoseconds.
    PERF_POLICY_TOTAL_BASE_CLOCKS = NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS;
    /// Lowest settable power limit, milliwatts; the scope is 0 GPU, 1 module, 2 memory.
    POWER_MIN_LIMIT = NVML_FI_DEV_POWER_MIN_LIMIT;
    /// Highest settable power limit, milliwatts; scope as above.
    POWER_MAX_LIMIT = NVML_FI_DEV_POWER_MAX_LIMIT;
    /// Default power limit, milliwatts; scope as above.
    POWER_DEFAULT_LIMIT = NVML_FI_DEV_POWER_DEFAULT_LIMIT;
    /// Power limit in force, milliwatts; scope as above.
    POWER_CURRENT_LIMIT = NVML_FI_DEV_POWER_CURRENT_LIMIT;
    /// Power limit that was set, milliwatts; scope as above.
    POWER_REQUESTED_LIMIT = NVML_FI_DEV_POWER_REQUESTED_LIMIT;
    /// Speed of the slowest NVLink, MB/s.
    NVLINK_SPEED_MBPS_COMMON = NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON;
    /// Whether a link (scope) is up.
    NVLINK_GET_STATE = NVML_FI_DEV_NVLINK_GET_STATE;
    /// NVLink version of a link (scope).
    NVLINK_GET_VERSION = NVML_FI_DEV_NVLINK_GET_VERSION;
    /// Packets of a link (scope) sent again.
    NVLINK_ERROR_DL_REPLAY = NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY;
    /// Times a link (scope) was brought up again.
    NVLINK_ERROR_DL_RECOVERY = NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY;
    /// CRC errors of a link (scope).
    NVLINK_ERROR_DL_CRC = NVML_FI_DEV_NVLINK_ERROR_DL_CRC;
    /// Packets sent over a link (scope); NVLink 5.
    NVLINK_COUNT_XMIT_PACKETS = NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS;
    /// Bytes sent over a link (scope); NVLink 5.
    NVLINK_COUNT_XMIT_BYTES = NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES;
    /// Packets received over a link (scope); NVLink 5.
    NVLINK_COUNT_RCV_PACKETS = NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS;
    /// Bytes received over a link (scope); NVLink 5.
    NVLINK_COUNT_RCV_BYTES = NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES;
    /// Malformed packets of a link (scope); NVLink 5.
    NVLINK_COUNT_MALFORMED_PACKET_ERRORS = NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS;
    /// Packets of a link (scope) dropped for want of room; NVLink 5.
    NVLINK_COUNT_BUFFER_OVERRUN_ERRORS = NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS;
    /// Packets of a link (scope) with any error; NVLink 5.
    NVLINK_COUNT_RCV_ERRORS = NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS;
    /// Packets of a link (scope) marked bad by the other side; NVLink 5.
    NVLINK_COUNT_RCV_REMOTE_ERRORS = NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS;
    /// Packets of a link (scope) with header errors; NVLink 5.
    NVLINK_COUNT_RCV_GENERAL_ERRORS = NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS;
    /// Times the errors of a link (scope) passed the threshold; NVLink 5.
    NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS = NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS;
    /// Packets that a link (scope) discarded instead of sending; NVLink 5.
    NVLINK_COUNT_XMIT_DISCARDS = NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS;
    /// Successful recoveries of a link (scope); NVLink 5.
    NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS = NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS;
    /// Failed recoveries of a link (scope); NVLink 5.
    NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS = NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS;
    /// All recoveries of a link (scope); NVLink 5.
    NVLINK_COUNT_LINK_RECOVERY_EVENTS = NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS;
    /// Errors of a link (scope) after correction; NVLink 5.
    NVLINK_COUNT_EFFECTIVE_ERRORS = NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS;
    /// Bit error rate of a link (scope) after correction, encoded (mantissa above exponent); NVLink 5.
    NVLINK_COUNT_EFFECTIVE_BER = NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER;
    /// Symbol errors of a link (scope); NVLink 5.
    NVLINK_COUNT_SYMBOL_ERRORS = NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS;
    /// Symbol error rate of a link (scope), encoded as above; NVLink 5.
    NVLINK_COUNT_SYMBOL_BER = NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER;
    /// Times the PCIe replay counter rolled over.
    PCIE_REPLAY_ROLLOVER_COUNTER = NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER;
    /// Times the PCIe link went from L0 into recovery.
    PCIE_L0_TO_RECOVERY_COUNTER = NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER;
    /// PCIe packets that the other side refused.
    PCIE_COUNT_NAKS_RECEIVED = NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED;
    /// PCIe packets refused.
    PCIE_COUNT_NAKS_SENT = NVML_FI_DEV_PCIE_COUNT_NAKS_SENT;
    /// PCIe receiver errors.
    PCIE_COUNT_RECEIVER_ERROR = NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR;
    /// Bad PCIe transaction packets.
    PCIE_COUNT_BAD_TLP = NVML_FI_DEV_PCIE_COUNT_BAD_TLP;
    /// Bad PCIe link packets.
    PCIE_COUNT_BAD_DLLP = NVML_FI_DEV_PCIE_COUNT_BAD_DLLP;
    /// Unsupported PCIe requests.
    PCIE_COUNT_UNSUPPORTED_REQ = NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ;
    /// PCIe link CRC errors.
    PCIE_COUNT_LCRC_ERROR = NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR;
    /// PCIe lane errors.
    PCIE_COUNT_LANE_ERROR = NVML_FI_DEV_PCIE_COUNT_LANE_ERROR;
    /// Number of C2C links.
    C2C_LINK_COUNT = NVML_FI_DEV_C2C_LINK_COUNT;
    /// Whether a C2C link (scope) is up.
    C2C_LINK_GET_STATUS = NVML_FI_DEV_C2C_LINK_GET_STATUS;
    /// The most a C2C link (scope) carries, MB/s.
    C2C_LINK_GET_MAX_BW = NVML_FI_DEV_C2C_LINK_GET_MAX_BW;
    /// Whether the GPU must be reset (1) or not (0).
    RESET_STATUS = NVML_FI_DEV_RESET_STATUS;
    /// Whether it should be drained and reset (1) or not (0).
    DRAIN_AND_RESET_STATUS = NVML_FI_DEV_DRAIN_AND_RESET_STATUS;
    /// Corrected errors in the L1 cache since the driver was loaded.
    ECC_SBE_VOL_L1 = NVML_FI_DEV_ECC_SBE_VOL_L1;
    /// Uncorrected errors in the L1 cache since the driver was loaded.
    ECC_DBE_VOL_L1 = NVML_FI_DEV_ECC_DBE_VOL_L1;
    /// Corrected errors in the L2 cache since the driver was loaded.
    ECC_SBE_VOL_L2 = NVML_FI_DEV_ECC_SBE_VOL_L2;
    /// Uncorrected errors in the L2 cache since the driver was loaded.
    ECC_DBE_VOL_L2 = NVML_FI_DEV_ECC_DBE_VOL_L2;
    /// Corrected errors in device memory since the driver was loaded.
    ECC_SBE_VOL_DEV = NVML_FI_DEV_ECC_SBE_VOL_DEV;
    /// Uncorrected errors in device memory since the driver was loaded.
    ECC_DBE_VOL_DEV = NVML_FI_DEV_ECC_DBE_VOL_DEV;
    /// Corrected errors in the register file since the driver was loaded.
    ECC_SBE_VOL_REG = NVML_FI_DEV_ECC_SBE_VOL_REG;
    /// Uncorrected errors in the register file since the driver was loaded.
    ECC_DBE_VOL_REG = NVML_FI_DEV_ECC_DBE_VOL_REG;
    /// Corrected errors in texture memory since the driver was loaded.
    ECC_SBE_VOL_TEX = NVML_FI_DEV_ECC_SBE_VOL_TEX;
    /// Uncorrected errors in texture memory since the driver was loaded.
    ECC_DBE_VOL_TEX = NVML_FI_DEV_ECC_DBE_VOL_TEX;
    /// Uncorrected errors in the convergence barrier unit since the driver was loaded.
    ECC_DBE_VOL_CBU = NVML_FI_DEV_ECC_DBE_VOL_CBU;
    /// Corrected errors in the L1 cache over the board's life.
    ECC_SBE_AGG_L1 = NVML_FI_DEV_ECC_SBE_AGG_L1;
    /// Uncorrected errors in the L1 cache over the board's life.
    ECC_DBE_AGG_L1 = NVML_FI_DEV_ECC_DBE_AGG_L1;
    /// Corrected errors in the L2 cache over the board's life.
    ECC_SBE_AGG_L2 = NVML_FI_DEV_ECC_SBE_AGG_L2;
    /// Uncorrected errors in the L2 cache over the board's life.
    ECC_DBE_AGG_L2 = NVML_FI_DEV_ECC_DBE_AGG_L2;
    /// Corrected errors in device memory over the board's life.
    ECC_SBE_AGG_DEV = NVML_FI_DEV_ECC_SBE_AGG_DEV;
    /// Uncorrected errors in device memory over the board's life.
    ECC_DBE_AGG_DEV = NVML_FI_DEV_ECC_DBE_AGG_DEV;
    /// Corrected errors in the register file over the board's life.
    ECC_SBE_AGG_REG = NVML_FI_DEV_ECC_SBE_AGG_REG;
    /// Uncorrected errors in the register file over the board's life.
    ECC_DBE_AGG_REG = NVML_FI_DEV_ECC_DBE_AGG_REG;
    /// Corrected errors in texture memory over the board's life.
    ECC_SBE_AGG_TEX = NVML_FI_DEV_ECC_SBE_AGG_TEX;
    /// Uncorrected errors in texture memory over the board's life.
    ECC_DBE_AGG_TEX = NVML_FI_DEV_ECC_DBE_AGG_TEX;
    /// Uncorrected errors in the convergence barrier unit over the board's life.
    ECC_DBE_AGG_CBU = NVML_FI_DEV_ECC_DBE_AGG_CBU;
    /// What the driver asks for to recover.
    GPU_RECOVERY_ACTION = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
}

impl FieldId {
    /// The field with this number, without scope.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self { id, scope: 0 }
    }

    /// The same field of one link or domain.
    #[must_use]
    pub const fn scope(self, scope: u32) -> Self {
        Self { id: self.id, scope }
    }
}

impl Value {
    /// As a double; exact up to 2^53.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "documented")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Double(value) => value,
            Self::Signed(value) => value as f64,
            Self::Unsigned(value) => value as f64,
        }
    }

    /// As an unsigned integer; `None` if negative or not whole.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(value),
            Self::Signed(value) => u64::try_from(value).ok(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole, and in the range of 53 bits"
            )]
            Self::Double(value) => {
                (value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value)).then_some(value as u64)
            }
        }
    }

    /// As a signed 32-bit integer; `None` beyond its range. An unsigned number with the top bit
    /// set is taken as the negative it stands for: some drivers type temperatures as unsigned.
    #[must_use]
    pub fn as_i32(self) -> Option<i32> {
        match self {
            Self::Signed(value) => i32::try_from(value).ok(),
            Self::Unsigned(value) => u32::try_from(value).ok().map(u32::cast_signed),
            Self::Double(_) => None,
        }
    }
}

impl FieldValue {
    /// The number as an unsigned integer; `None` if absent, failed or negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.known()?.as_u64()
    }

    /// The number as a signed integer; `None` if absent, failed or out of range.
    #[must_use]
    pub fn as_i32(&self) -> Option<i32> {
        self.known()?.as_i32()
    }

    /// The number as a double; `None` if absent or failed.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        Some(self.known()?.as_f64())
    }

    fn known(&self) -> Option<Value> {
        self.value.as_ref().ok().copied().flatten()
    }
}

impl Device {
    /// Many numbers in one call, in the order asked; each has its own outcome.
    ///
    /// Empty if the library has no field values at all.
    /// Source: `nvmlDeviceGetFieldValues`.
    ///
    /// # Errors
    ///
    /// Only if the call as a whole failed, as for a lost GPU.
    pub fn field_values(&self, ids: &[FieldId]) -> Result<Vec<FieldValue>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetFieldValues);
        let Some(function) = symbol.function() else {
            return Ok(Vec::new());
        };
        let mut values: Vec<raw::nvmlFieldValue_t> = ids.iter().map(question).collect();
        let Ok(count) = i32::try_from(values.len()) else {
            return Ok(Vec::new());
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: `count` is the number of structures at the array pointer.
        let code = unsafe { function(self.handle.0, count, values.as_mut_ptr()) };
        if !symbol.outcome(code)? {
            return Ok(Vec::new());
        }
        Ok(values.iter().map(answer).collect())
    }

    /// One number as an unsigned integer.
    pub(crate) fn field_u64(&self, id: FieldId) -> Result<Option<u64>, Error> {
        Ok(self.field_value(id)?.and_then(Value::as_u64))
    }

    /// One number as a signed integer.
    pub(crate) fn field_i32(&self, id: FieldId) -> Result<Option<i32>, Error> {
        Ok(self.field_value(id)?.and_then(Value::as_i32))
    }

    fn field_value(&self, id: FieldId) -> Result<Option<Value>, Error> {
        self.field_values(&[id])?.pop().map_or(Ok(None), |value| value.value)
    }
}

fn question(id: &FieldId) -> raw::nvmlFieldValue_t {
    raw::nvmlFieldValue_t {
        fieldId: id.id,
        scopeId: id.scope,
        timestamp: 0,
        latencyUsec: 0,
        valueType: raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
        // An answer that the library forgot to fill in must not look like a zero.
        nvmlReturn: raw::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        value: raw::nvmlValue_t { ullVal: 0 },
    }
}

fn answer(value: &raw::nvmlFieldValue_t) -> FieldValue {
    FieldValue {
        id: FieldId {
            id: value.fieldId,
            scope: value.scopeId,
        },
        timestamp_us: value.timestamp,
        value: outcome(value),
    }
}

fn outcome(value: &raw::nvmlFieldValue_t) -> Result<Option<Value>, Error> {
    let unknown_field = value.nvmlReturn == raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    if unknown_field || means_absent(value.nvmlReturn) {
        return Ok(None);
    }
    match Error::from_code(value.nvmlReturn, "nvmlDeviceGetFieldValues") {
        Some(err) => Err(err),
        None => Ok(number(value.valueType, value.value)),
    }
}

fn number(kind: raw::nvmlValueType_t, value: raw::nvmlValue_t) -> Option<Value> {
    let signed = |value: i64| known_i64(value).map(Value::Signed);
    let unsigned = |value: u64| known_u64(value).map(Value::Unsigned);
    // SAFETY: every member of the union is a plain number for which any bits are valid; the type says which was written.
    unsafe {
        match kind {
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE => known_f64(value.dVal).map(Value::Double),
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => {
                known_u32(value.uiVal).and_then(|value| unsigned(value.into()))
            }
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG => unsigned(value.ulVal),
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => unsigned(value.ullVal),
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG => signed(value.sllVal),
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT => {
                crate::sentinel::known_i32(value.siVal).and_then(|value| signed(value.into()))
            }
            raw::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT => unsigned(value.usVal.into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(kind: raw::nvmlValueType_t, value: raw::nvmlValue_t, code: u32) -> Result<Option<Value>, Error> {
        outcome(&raw::nvmlFieldValue_t {
            valueType: kind,
            value,
            nvmlReturn: code,
            ..question(&FieldId::MEMORY_TEMP)
        })
    }

    #[test]
    fn each_type_reads_its_own_member() {
        use raw::*;
        let of = |kind, value| answered(kind, value, 0).unwrap();
        assert_eq!(
            of(nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE, nvmlValue_t { dVal: 1.5 }),
            Some(Value::Double(1.5))
        );
        assert_eq!(
            of(nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT, nvmlValue_t { siVal: -3 }),
            Some(Value::Signed(-3))
        );
        assert_eq!(
            of(
                nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT,
                nvmlValue_t {
                    ullVal: 0xdead_beef_0000_0042
                }
            ),
            Some(Value::Unsigned(0x42))
        );
    }

    #[test]
    fn sentinels_and_unsupported_fields_are_absent() {
        let kind = raw::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG;
        let blank = raw::nvmlValue_t {
            sllVal: 9_223_372_036_854_775_794,
        };
        assert_eq!(answered(kind, blank, 0).unwrap(), None);
        assert_eq!(answered(kind, raw::nvmlValue_t { sllVal: 0 }, 3).unwrap(), None);
        assert_eq!(answered(kind, raw::nvmlValue_t { sllVal: 0 }, 2).unwrap(), None);
    }

    #[test]
    fn a_lost_gpu_is_an_error_and_not_absent() {
        let kind = raw::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG;
        assert!(matches!(
            answered(kind, raw::nvmlValue_t { sllVal: 0 }, 15),
            Err(Error::GpuLost)
        ));
    }

    #[test]
    fn a_temperature_typed_as_unsigned_may_be_negative() {
        assert_eq!(Value::Unsigned(0xffff_fffe).as_i32(), Some(-2));
        assert_eq!(Value::Signed(-2).as_i32(), Some(-2));
    }
}
