//! What the GPU draws, and what it may draw.

use crate::device::Device;
use crate::error::Error;
use crate::field::FieldId;
use crate::sentinel::{known_u32, known_u64};
use crate::symbol::symbol;

/// What the power limit can be set to, in milliwatts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLimitRange {
    /// The lowest settable limit.
    pub min: u32,
    /// The highest settable limit.
    pub max: u32,
}

/// What a power figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerScope {
    /// The GPU, or the whole board where there is no module.
    Gpu,
    /// The module: GPU, its processor (Grace) and memory.
    Module,
    /// The device memory.
    Memory,
}

impl PowerScope {
    fn raw(self) -> u32 {
        match self {
            Self::Gpu => 0,
            Self::Module => 1,
            Self::Memory => 2,
        }
    }
}

/// Draw and limits of one scope, in milliwatts; what the board does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopedPower {
    /// Averaged over a second.
    pub average: Option<u32>,
    /// Of this moment.
    pub instant: Option<u32>,
    /// The limit in force.
    pub limit_enforced: Option<u32>,
    /// The limit that was set.
    pub limit: Option<u32>,
    /// The limit it starts with.
    pub limit_default: Option<u32>,
    /// The lowest settable limit.
    pub limit_min: Option<u32>,
    /// The highest settable limit.
    pub limit_max: Option<u32>,
}

/// No board draws 100 kW; what says so is not a measurement (a lost GPU reads as all ones).
const POWER_MW_MAX: u32 = 100_000_000;

fn known_power(milliwatts: u32) -> Option<u32> {
    known_u32(milliwatts).filter(|milliwatts| *milliwatts < POWER_MW_MAX)
}

impl Device {
    /// The power draw, in milliwatts: of the board, averaged over a second on Ampere and later.
    ///
    /// Source: `nvmlDeviceGetPowerUsage`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_usage(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetPowerUsage)
            .read(self.handle, 0)?
            .and_then(known_power))
    }

    /// The power draw of this moment, in milliwatts.
    ///
    /// Source: field `NVML_FI_DEV_POWER_INSTANT`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_instant(&self) -> Result<Option<u32>, Error> {
        let milliwatts = self.field_u64(FieldId::POWER_INSTANT)?;
        Ok(milliwatts
            .and_then(|milliwatts| u32::try_from(milliwatts).ok())
            .and_then(known_power))
    }

    /// The limit in force, in milliwatts: the lowest of all that apply.
    ///
    /// Source: `nvmlDeviceGetEnforcedPowerLimit`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_limit_enforced(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetEnforcedPowerLimit)
            .read(self.handle, 0)?
            .and_then(known_power))
    }

    /// The limit that was set, in milliwatts.
    ///
    /// Source: `nvmlDeviceGetPowerManagementLimit`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_limit(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetPowerManagementLimit)
            .read(self.handle, 0)?
            .and_then(known_power))
    }

    /// The limit the board starts with, in milliwatts.
    ///
    /// Source: `nvmlDeviceGetPowerManagementDefaultLimit`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_limit_default(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetPowerManagementDefaultLimit)
            .read(self.handle, 0)?
            .and_then(known_power))
    }

    /// What the limit can be set to, in milliwatts.
    ///
    /// Source: `nvmlDeviceGetPowerManagementLimitConstraints`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn power_limit_range(&self) -> Result<Option<PowerLimitRange>, Error> {
        let range =
            symbol!(self.library, nvmlDeviceGetPowerManagementLimitConstraints).read_pair(self.handle, (0, 0))?;
        Ok(range.and_then(|(min, max)| {
            Some(PowerLimitRange {
                min: known_power(min)?,
                max: known_power(max)?,
            })
        }))
    }

    /// The energy drawn since the driver was loaded, in millijoules: a counter.
    ///
    /// Source: `nvmlDeviceGetTotalEnergyConsumption` (Volta and later).
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn energy_total(&self) -> Result<Option<u64>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetTotalEnergyConsumption)
            .read(self.handle, 0)?
            .and_then(known_u64))
    }

    /// Draw and limits of a scope, in one call.
    ///
    /// Source: fields `NVML_FI_DEV_POWER_*` (driver 530 and later).
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn scoped_power(&self, scope: PowerScope) -> Result<ScopedPower, Error> {
        let ids = [
            FieldId::POWER_AVERAGE,
            FieldId::POWER_INSTANT,
            FieldId::POWER_CURRENT_LIMIT,
            FieldId::POWER_REQUESTED_LIMIT,
            FieldId::POWER_DEFAULT_LIMIT,
            FieldId::POWER_MIN_LIMIT,
            FieldId::POWER_MAX_LIMIT,
        ];
        let values = self.field_values(&ids.map(|id| id.scope(scope.raw())))?;
        let milliwatts = |at: usize| {
            let value = values.get(at).and_then(crate::FieldValue::as_u64);
            value.and_then(|value| u32::try_from(value).ok()).and_then(known_power)
        };
        Ok(ScopedPower {
            average: milliwatts(0),
            instant: milliwatts(1),
            limit_enforced: milliwatts(2),
            limit: milliwatts(3),
            limit_default: milliwatts(4),
            limit_min: milliwatts(5),
            limit_max: milliwatts(6),
        })
    }
}
