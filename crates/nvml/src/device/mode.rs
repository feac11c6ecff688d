//! How the GPU is set up.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::field::FieldId;
use crate::sentinel::known_u64;
use crate::symbol::symbol;

/// Who may compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeMode {
    /// Any number of processes.
    Default,
    /// One thread of one process; no longer settable.
    ExclusiveThread,
    /// Nobody.
    Prohibited,
    /// One process.
    ExclusiveProcess,
}

impl Device {
    /// Whether the driver stays loaded without clients.
    ///
    /// Source: `nvmlDeviceGetPersistenceMode`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn persistence_mode(&self) -> Result<Option<bool>, Error> {
        let state = symbol!(self.library, nvmlDeviceGetPersistenceMode).read(self.handle, 0)?;
        Ok(state.map(|state| state == raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED))
    }

    /// Who may compute.
    ///
    /// Source: `nvmlDeviceGetComputeMode`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn compute_mode(&self) -> Result<Option<ComputeMode>, Error> {
        let mode = symbol!(self.library, nvmlDeviceGetComputeMode).read(self.handle, 0)?;
        Ok(mode.and_then(|mode| match mode {
            raw::nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT => Some(ComputeMode::Default),
            raw::nvmlComputeMode_enum_NVML_COMPUTEMODE_EXCLUSIVE_THREAD => Some(ComputeMode::ExclusiveThread),
            raw::nvmlComputeMode_enum_NVML_COMPUTEMODE_PROHIBITED => Some(ComputeMode::Prohibited),
            raw::nvmlComputeMode_enum_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS => Some(ComputeMode::ExclusiveProcess),
            _ => None,
        }))
    }

    /// What the driver asks for to recover: 0 nothing, 1 reset the GPU, 2 reboot the node,
    /// 3 drain peer-to-peer, 4 drain and reset.
    ///
    /// Source: field `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION` (driver 565 and later).
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn recovery_action(&self) -> Result<Option<u32>, Error> {
        let action = self.field_u64(FieldId::GPU_RECOVERY_ACTION)?;
        Ok(action
            .and_then(|action| u32::try_from(action).ok())
            .filter(|action| *action <= 16))
    }

    /// Whether the link to the processor beside it (NVLink-C2C) is on; `None` where there is no such link.
    ///
    /// Source: `nvmlDeviceGetC2cModeInfoV`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn c2c_enabled(&self) -> Result<Option<bool>, Error> {
        let mode = symbol!(self.library, nvmlDeviceGetC2cModeInfoV)
            .read(self.handle, raw::nvmlC2cModeInfo_v1_t { isC2cEnabled: 0 })?;
        Ok(mode.map(|mode| mode.isC2cEnabled != 0))
    }

    /// Device memory that confidential computing protects, and the rest, in bytes; `None` where there is no such
    /// thing.
    ///
    /// Source: `nvmlDeviceGetConfComputeMemSizeInfo`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn protected_memory(&self) -> Result<Option<(u64, u64)>, Error> {
        let empty = raw::nvmlConfComputeMemSizeInfo_t {
            protectedMemSizeKib: 0,
            unprotectedMemSizeKib: 0,
        };
        let sizes = symbol!(self.library, nvmlDeviceGetConfComputeMemSizeInfo).read(self.handle, empty)?;
        let bytes = |kib| known_u64(kib).and_then(|kib| kib.checked_mul(1024));
        Ok(sizes.and_then(|sizes| Some((bytes(sizes.protectedMemSizeKib)?, bytes(sizes.unprotectedMemSizeKib)?))))
    }
}
