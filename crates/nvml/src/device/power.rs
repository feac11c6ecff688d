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
}
