//! How fast the GPU runs, and why not faster.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::sentinel::{known_u32, known_u64};
use crate::symbol::symbol;

/// A clock domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockType {
    /// Graphics.
    Graphics,
    /// Streaming multiprocessors.
    Sm,
    /// Device memory.
    Memory,
    /// Video engines.
    Video,
}

impl ClockType {
    fn raw(self) -> raw::nvmlClockType_t {
        match self {
            Self::Graphics => raw::nvmlClockType_enum_NVML_CLOCK_GRAPHICS,
            Self::Sm => raw::nvmlClockType_enum_NVML_CLOCK_SM,
            Self::Memory => raw::nvmlClockType_enum_NVML_CLOCK_MEM,
            Self::Video => raw::nvmlClockType_enum_NVML_CLOCK_VIDEO,
        }
    }
}

/// Why the clocks are not higher: a set of bits, the same in NVML, `nvidia-smi` and DCGM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReasons(pub u64);

impl ClockReasons {
    /// Nothing runs.
    pub const GPU_IDLE: Self = Self(0x1);
    /// Someone set the clocks.
    pub const APPLICATIONS_CLOCKS_SETTING: Self = Self(0x2);
    /// The software keeps the board under its power limit.
    pub const SW_POWER_CAP: Self = Self(0x4);
    /// The hardware cut the clocks by two or more: heat, power brake or fast power protection.
    pub const HW_SLOWDOWN: Self = Self(0x8);
    /// Held to the clocks of its sync-boost group.
    pub const SYNC_BOOST: Self = Self(0x10);
    /// Core or memory above the highest operating temperature.
    pub const SW_THERMAL_SLOWDOWN: Self = Self(0x20);
    /// The hardware cut the clocks because of heat.
    pub const HW_THERMAL_SLOWDOWN: Self = Self(0x40);
    /// The power supply pulled the brake.
    pub const HW_POWER_BRAKE_SLOWDOWN: Self = Self(0x80);
    /// Limited by the display clock.
    pub const DISPLAY_CLOCK_SETTING: Self = Self(0x100);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What holds the GPU back, as a time counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfPolicy {
    /// The power limit.
    Power,
    /// Heat.
    Thermal,
    /// The sync-boost group.
    SyncBoost,
    /// The board's current or voltage limit.
    BoardLimit,
    /// Too little work.
    LowUtilization,
    /// The reliability limit of the voltage.
    Reliability,
    /// Below the application clocks, for any reason.
    TotalAppClocks,
    /// Below the base clocks, for any reason.
    TotalBaseClocks,
}

/// How long a policy has held the GPU back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was read: microseconds of the driver's clock.
    pub reference_us: u64,
    /// The time held back since the driver was loaded: nanoseconds, a counter.
    pub violation_ns: u64,
}

impl Device {
    /// A clock, in MHz.
    ///
    /// Source: `nvmlDeviceGetClockInfo`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn clock(&self, clock: ClockType) -> Result<Option<u32>, Error> {
        let mhz = symbol!(self.library, nvmlDeviceGetClockInfo).read_by(self.handle, clock.raw(), 0)?;
        Ok(mhz.and_then(known_u32))
    }

    /// The highest clock of a domain, in MHz.
    ///
    /// Source: `nvmlDeviceGetMaxClockInfo`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn clock_max(&self, clock: ClockType) -> Result<Option<u32>, Error> {
        let mhz = symbol!(self.library, nvmlDeviceGetMaxClockInfo).read_by(self.handle, clock.raw(), 0)?;
        Ok(mhz.and_then(known_u32))
    }

    /// Why the clocks are not higher now.
    ///
    /// Source: `nvmlDeviceGetCurrentClocksEventReasons`, before driver 535 `...ThrottleReasons`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn clock_reasons(&self) -> Result<Option<ClockReasons>, Error> {
        let new = symbol!(self.library, nvmlDeviceGetCurrentClocksEventReasons);
        let old = symbol!(self.library, nvmlDeviceGetCurrentClocksThrottleReasons);
        let bits = if new.function().is_some() {
            new.read(self.handle, 0)
        } else {
            old.read(self.handle, 0)
        }?;
        Ok(bits.and_then(known_u64).map(ClockReasons))
    }

    /// Which reasons this board can give.
    ///
    /// Source: `nvmlDeviceGetSupportedClocksEventReasons`, before driver 535 `...ThrottleReasons`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn clock_reasons_supported(&self) -> Result<Option<ClockReasons>, Error> {
        let new = symbol!(self.library, nvmlDeviceGetSupportedClocksEventReasons);
        let old = symbol!(self.library, nvmlDeviceGetSupportedClocksThrottleReasons);
        let bits = if new.function().is_some() {
            new.read(self.handle, 0)
        } else {
            old.read(self.handle, 0)
        }?;
        Ok(bits.and_then(known_u64).map(ClockReasons))
    }

    /// How long a policy has held the GPU back, in nanoseconds.
    ///
    /// Source: `nvmlDeviceGetViolationStatus`.
    ///
    /// # Errors
    ///
    /// [`Error::NoPermission`] on some drivers for users other than root.
    pub fn violation(&self, policy: PerfPolicy) -> Result<Option<Violation>, Error> {
        let policy = match policy {
            PerfPolicy::Power => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER,
            PerfPolicy::Thermal => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL,
            PerfPolicy::SyncBoost => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_SYNC_BOOST,
            PerfPolicy::BoardLimit => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_BOARD_LIMIT,
            PerfPolicy::LowUtilization => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_LOW_UTILIZATION,
            PerfPolicy::Reliability => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_RELIABILITY,
            PerfPolicy::TotalAppClocks => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_APP_CLOCKS,
            PerfPolicy::TotalBaseClocks => raw::nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_BASE_CLOCKS,
        };
        let empty = raw::nvmlViolationTime_t {
            referenceTime: 0,
            violationTime: 0,
        };
        let time = symbol!(self.library, nvmlDeviceGetViolationStatus).read_by(self.handle, policy, empty)?;
        Ok(time.and_then(|time| {
            Some(Violation {
                reference_us: time.referenceTime,
                violation_ns: known_u64(time.violationTime)?,
            })
        }))
    }

    /// The performance state: 0 is the fastest (P0), 15 the slowest.
    ///
    /// Source: `nvmlDeviceGetPerformanceState`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn performance_state(&self) -> Result<Option<u32>, Error> {
        let state = symbol!(self.library, nvmlDeviceGetPerformanceState).read(self.handle, 0)?;
        Ok(state.filter(|state| *state <= 15))
    }
}
