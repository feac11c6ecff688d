//! A GPU cut into instances (MIG): which devices there are in it, and what each of them is.
//!
//! A MIG device is a [`Device`] too. It answers for its memory, processes, name and UUID; what only the
//! whole board has (temperature, power, clocks, utilisation, links) is `None` there: ask its
//! [`parent`](Device::parent).

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::symbol::{Handle, symbol};

/// Whether the GPU is cut into instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigMode {
    /// Now.
    pub current: bool,
    /// After the next reset.
    pub pending: bool,
}

/// A MIG device's share of its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigAttributes {
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Video decoders.
    pub decoders: u32,
    /// Video encoders.
    pub encoders: u32,
    /// JPEG engines.
    pub jpeg_engines: u32,
    /// Optical flow engines.
    pub optical_flow_engines: u32,
    /// Slices of the GPU instance: the 3 of `3g.40gb`.
    pub gpu_instance_slices: u32,
    /// Slices of the compute instance; fewer than the GPU instance's if that is cut again.
    pub compute_instance_slices: u32,
    /// Memory of the GPU instance, in bytes.
    pub memory: u64,
}

/// The most MIG devices that are looked for; today's boards have seven.
const MIG_DEVICES_MAX: u32 = 64;

impl Device {
    /// Whether the GPU is cut into instances; `None` where it cannot be.
    ///
    /// Source: `nvmlDeviceGetMigMode`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_mode(&self) -> Result<Option<MigMode>, Error> {
        let modes = symbol!(self.library, nvmlDeviceGetMigMode).read_pair(self.handle, (0, 0))?;
        Ok(modes.map(|(current, pending)| MigMode {
            current: current != 0,
            pending: pending != 0,
        }))
    }

    /// The most MIG devices this GPU can be cut into; 0 or `None` where it cannot.
    ///
    /// Source: `nvmlDeviceGetMaxMigDeviceCount`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_device_count_max(&self) -> Result<Option<u32>, Error> {
        symbol!(self.library, nvmlDeviceGetMaxMigDeviceCount).read(self.handle, 0)
    }

    /// The MIG device at an index below [`mig_device_count_max`](Self::mig_device_count_max);
    /// `None` where none is made.
    ///
    /// Source: `nvmlDeviceGetMigDeviceHandleByIndex`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_device(&self, index: u32) -> Result<Option<Self>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetMigDeviceHandleByIndex);
        match symbol.read_by(self.handle, index, std::ptr::null_mut()) {
            Ok(handle) => Ok(handle.map(|handle| Self::new(self.library.clone(), Handle(handle), index))),
            Err(Error::Unknown {
                code: raw::nvmlReturn_enum_NVML_ERROR_NOT_FOUND,
                ..
            }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// All MIG devices made in this GPU, in order of their index ([`index`](Self::index)); empty where MIG is off.
    ///
    /// Indices may have gaps: instances are destroyed one by one.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_devices(&self) -> Result<Vec<Self>, Error> {
        if self.mig_mode()?.is_none_or(|mode| !mode.current) {
            return Ok(Vec::new());
        }
        let most = self.mig_device_count_max()?.unwrap_or(0).min(MIG_DEVICES_MAX);
        let mut devices = Vec::new();
        for index in 0..most {
            devices.extend(self.mig_device(index)?);
        }
        Ok(devices)
    }

    /// Whether this is a MIG device; `None` from drivers that know none.
    ///
    /// Source: `nvmlDeviceIsMigDeviceHandle`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn is_mig_device(&self) -> Result<Option<bool>, Error> {
        Ok(symbol!(self.library, nvmlDeviceIsMigDeviceHandle)
            .read(self.handle, 0)?
            .map(|is| is != 0))
    }

    /// The whole GPU that this MIG device is part of; `None` if it is not a MIG device.
    ///
    /// Source: `nvmlDeviceGetDeviceHandleFromMigDeviceHandle`, `nvmlDeviceGetIndex`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn parent(&self) -> Result<Option<Self>, Error> {
        if self.is_mig_device()? != Some(true) {
            return Ok(None);
        }
        let symbol = symbol!(self.library, nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
        let Some(handle) = symbol.read(self.handle, std::ptr::null_mut())?.map(Handle) else {
            return Ok(None);
        };
        let index = symbol!(self.library, nvmlDeviceGetIndex).read(handle, 0)?;
        Ok(index.map(|index| Self::new(self.library.clone(), handle, index)))
    }

    /// The id of the GPU instance that this MIG device is in; `None` for a whole GPU.
    ///
    /// Source: `nvmlDeviceGetGpuInstanceId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn gpu_instance_id(&self) -> Result<Option<u32>, Error> {
        self.instance_id(symbol!(self.library, nvmlDeviceGetGpuInstanceId).read(self.handle, 0))
    }

    /// The id of the compute instance that this MIG device is; `None` for a whole GPU.
    ///
    /// Source: `nvmlDeviceGetComputeInstanceId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn compute_instance_id(&self) -> Result<Option<u32>, Error> {
        self.instance_id(symbol!(self.library, nvmlDeviceGetComputeInstanceId).read(self.handle, 0))
    }

    /// A whole GPU's handle is an invalid argument to these two.
    #[expect(clippy::unused_self, reason = "reads as a question to the device")]
    fn instance_id(&self, answer: Result<Option<u32>, Error>) -> Result<Option<u32>, Error> {
        match answer {
            Err(Error::Unknown {
                code: raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
                ..
            }) => Ok(None),
            other => other,
        }
    }

    /// A MIG device's share of its GPU; `None` for a whole GPU.
    ///
    /// Source: `nvmlDeviceGetAttributes_v2`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_attributes(&self) -> Result<Option<MigAttributes>, Error> {
        let empty = raw::nvmlDeviceAttributes_t {
            multiprocessorCount: 0,
            sharedCopyEngineCount: 0,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
            gpuInstanceSliceCount: 0,
            computeInstanceSliceCount: 0,
            memorySizeMB: 0,
        };
        let answer = symbol!(self.library, nvmlDeviceGetAttributes_v2).read(self.handle, empty);
        let attributes = match answer {
            Err(Error::Unknown {
                code: raw::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
                ..
            }) => None,
            other => other?,
        };
        Ok(attributes
            .filter(|attributes| attributes.gpuInstanceSliceCount > 0)
            .map(|attributes| MigAttributes {
                multiprocessors: attributes.multiprocessorCount,
                copy_engines: attributes.sharedCopyEngineCount,
                decoders: attributes.sharedDecoderCount,
                encoders: attributes.sharedEncoderCount,
                jpeg_engines: attributes.sharedJpegCount,
                optical_flow_engines: attributes.sharedOfaCount,
                gpu_instance_slices: attributes.gpuInstanceSliceCount,
                compute_instance_slices: attributes.computeInstanceSliceCount,
                memory: attributes.memorySizeMB.saturating_mul(1024 * 1024),
            }))
    }

    /// The profile of a MIG device, such as `3g.40gb`, or `1c.3g.40gb` where the GPU instance is cut again; `None` for a
    /// whole GPU.
    ///
    /// Source: the device's name (driver 470 and later), else made of its attributes and the parent's memory.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn mig_profile(&self) -> Result<Option<String>, Error> {
        if let Some(profile) = self.name()?.as_deref().and_then(profile_in_name) {
            return Ok(Some(profile));
        }
        let (Some(share), Some(parent)) = (self.mig_attributes()?, self.parent()?) else {
            return Ok(None);
        };
        Ok(parent.memory()?.map(|memory| profile_of(&share, memory.total)))
    }
}

/// The profile at the end of a MIG device's name: `NVIDIA H100 80GB HBM3 MIG 3g.40gb`.
fn profile_in_name(name: &str) -> Option<String> {
    let (_, profile) = name.rsplit_once("MIG ")?;
    let profile = profile.trim();
    (profile.contains("g.") && profile.contains("gb")).then(|| profile.to_owned())
}

/// Memory counts in eighths of the board, rounded up: what is left of 10 GB by the driver's share is still `10gb`.
fn profile_of(share: &MigAttributes, board_memory: u64) -> String {
    const GIB: u64 = 1 << 30;
    let board_gib = board_memory.div_ceil(GIB);
    let eighths = (u128::from(share.memory) * 8)
        .div_ceil(u128::from(board_memory.max(1)))
        .min(8);
    let gib = (u128::from(board_gib) * eighths).div_ceil(8);
    let slices = share.gpu_instance_slices;
    match share.compute_instance_slices {
        cut if cut > 0 && cut < slices => format!("{cut}c.{slices}g.{gib}gb"),
        _ => format!("{slices}g.{gib}gb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[track_caller]
    fn check(slices: (u32, u32), memory_mib: u64, board_mib: u64, want: &str) {
        let share = MigAttributes {
            multiprocessors: 16,
            copy_engines: 1,
            decoders: 1,
            encoders: 0,
            jpeg_engines: 1,
            optical_flow_engines: 0,
            gpu_instance_slices: slices.0,
            compute_instance_slices: slices.1,
            memory: memory_mib * MIB,
        };
        assert_eq!(profile_of(&share, board_mib * MIB), want);
    }

    #[test]
    fn a_profile_is_made_of_slices_and_eighths_of_the_memory() {
        check((1, 1), 4864, 40960, "1g.5gb");
        check((2, 2), 9856, 40960, "2g.10gb");
        check((7, 7), 40192, 40960, "7g.40gb");
        check((3, 3), 40192, 81920, "3g.40gb");
        check((1, 1), 9856, 81920, "1g.10gb");
        check((3, 1), 40192, 81920, "1c.3g.40gb");
        check((1, 1), 0, 0, "1g.0gb");
    }

    #[test]
    fn a_profile_is_found_at_the_end_of_the_name() {
        assert_eq!(
            profile_in_name("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb").as_deref(),
            Some("1c.3g.20gb")
        );
        assert_eq!(
            profile_in_name("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me").as_deref(),
            Some("1g.10gb+me")
        );
        assert_eq!(profile_in_name("NVIDIA H100 80GB HBM3"), None);
        assert_eq!(profile_in_name("MIG "), None);
    }
}
