//! How hot the GPU is, and how far from its limits.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::device::memory::structure_version;
use crate::error::Error;
use crate::field::FieldId;
use crate::sentinel::{known_celsius, known_u32};
use crate::symbol::symbol;

/// A temperature at which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemperatureThreshold {
    /// The board powers off.
    Shutdown,
    /// The hardware cuts the clocks.
    Slowdown,
    /// The memory's highest operating temperature.
    MemoryMax,
    /// The core's highest operating temperature: the software begins to cut clocks.
    GpuMax,
}

/// Where the T.Limit margin stands when something happens, in degrees Celsius (negative = beyond the limit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarginThresholds {
    /// The board powers off.
    pub shutdown: Option<i32>,
    /// The hardware cuts the clocks.
    pub slowdown: Option<i32>,
    /// The memory's highest operating temperature.
    pub memory_max: Option<i32>,
    /// The core's highest operating temperature.
    pub gpu_max: Option<i32>,
}

impl Device {
    /// The core temperature, in degrees Celsius.
    ///
    /// Source: `nvmlDeviceGetTemperature`, sensor `NVML_TEMPERATURE_GPU`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn temperature(&self) -> Result<Option<i32>, Error> {
        let celsius = symbol!(self.library, nvmlDeviceGetTemperature).read_by(
            self.handle,
            raw::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU,
            0,
        )?;
        Ok(celsius.and_then(|celsius| known_celsius(celsius.cast_signed())))
    }

    /// The memory temperature, in degrees Celsius; `None` on most boards without HBM.
    ///
    /// Source: field `NVML_FI_DEV_MEMORY_TEMP`. An absolute zero from a board whose core is warm is a
    /// missing sensor: GDDR boards have been seen to answer 0.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn memory_temperature(&self) -> Result<Option<i32>, Error> {
        let celsius = self.field_i32(FieldId::MEMORY_TEMP)?;
        Ok(celsius.and_then(known_celsius).filter(|celsius| *celsius != 0))
    }

    /// The T.Limit margin: how many degrees Celsius the hottest part is below its limit.
    ///
    /// Source: `nvmlDeviceGetMarginTemperature` (driver 560 and later, Ada and later).
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn margin_temperature(&self) -> Result<Option<i32>, Error> {
        let empty = raw::nvmlMarginTemperature_t {
            version: structure_version::<raw::nvmlMarginTemperature_t>(1),
            marginTemperature: 0,
        };
        let margin = symbol!(self.library, nvmlDeviceGetMarginTemperature).read(self.handle, empty)?;
        Ok(margin.and_then(|margin| known_celsius(margin.marginTemperature)))
    }

    /// The temperature, in degrees Celsius, at which something happens.
    ///
    /// Source: `nvmlDeviceGetTemperatureThreshold`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn temperature_threshold(&self, threshold: TemperatureThreshold) -> Result<Option<i32>, Error> {
        let kind = match threshold {
            TemperatureThreshold::Shutdown => raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
            TemperatureThreshold::Slowdown => raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
            TemperatureThreshold::MemoryMax => raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
            TemperatureThreshold::GpuMax => raw::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
        };
        let celsius = symbol!(self.library, nvmlDeviceGetTemperatureThreshold).read_by(self.handle, kind, 0)?;
        Ok(celsius
            .and_then(|celsius| known_celsius(celsius.cast_signed()))
            .filter(|celsius| *celsius > 0))
    }

    /// The margins at which something happens, on boards that speak of T.Limit.
    ///
    /// Source: fields `NVML_FI_DEV_TEMPERATURE_*_TLIMIT`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn margin_thresholds(&self) -> Result<MarginThresholds, Error> {
        let ids = [
            FieldId::TEMPERATURE_SHUTDOWN_TLIMIT,
            FieldId::TEMPERATURE_SLOWDOWN_TLIMIT,
            FieldId::TEMPERATURE_MEM_MAX_TLIMIT,
            FieldId::TEMPERATURE_GPU_MAX_TLIMIT,
        ];
        let values = self.field_values(&ids)?;
        let celsius = |at: usize| {
            values
                .get(at)
                .and_then(crate::FieldValue::as_i32)
                .and_then(known_celsius)
        };
        Ok(MarginThresholds {
            shutdown: celsius(0),
            slowdown: celsius(1),
            memory_max: celsius(2),
            gpu_max: celsius(3),
        })
    }

    /// The intended fan speed, in percent of the maximum; `None` on boards cooled by the chassis.
    ///
    /// Source: `nvmlDeviceGetFanSpeed`. It is what the driver asks for, not what turns; some boards
    /// go beyond 100.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn fan_speed(&self) -> Result<Option<u32>, Error> {
        let speed = symbol!(self.library, nvmlDeviceGetFanSpeed).read(self.handle, 0)?;
        Ok(speed.and_then(known_u32).filter(|percent| *percent <= 250))
    }

    /// How many fans the board has; 0 or `None` where the chassis cools it.
    ///
    /// Source: `nvmlDeviceGetNumFans`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn fan_count(&self) -> Result<Option<u32>, Error> {
        let count = symbol!(self.library, nvmlDeviceGetNumFans).read(self.handle, 0)?;
        Ok(count.filter(|count| *count <= 64))
    }

    /// The intended speed of one fan, in percent of the maximum.
    ///
    /// Source: `nvmlDeviceGetFanSpeed_v2`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn fan_speed_of(&self, fan: u32) -> Result<Option<u32>, Error> {
        let speed = symbol!(self.library, nvmlDeviceGetFanSpeed_v2).read_by(self.handle, fan, 0)?;
        Ok(speed.and_then(known_u32).filter(|percent| *percent <= 250))
    }

    /// How fast one fan turns, in revolutions per minute: measured, not asked for.
    ///
    /// Source: `nvmlDeviceGetFanSpeedRPM` (driver 565 and later).
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn fan_rpm(&self, fan: u32) -> Result<Option<u32>, Error> {
        let empty = raw::nvmlFanSpeedInfo_t {
            version: structure_version::<raw::nvmlFanSpeedInfo_v1_t>(1),
            fan,
            speed: 0,
        };
        let speed = symbol!(self.library, nvmlDeviceGetFanSpeedRPM).read(self.handle, empty)?;
        Ok(speed
            .and_then(|info| known_u32(info.speed))
            .filter(|rpm| *rpm < 1_000_000))
    }
}
