//! How the GPU is set up.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::field::FieldId;
use crate::symbol::{Handle, symbol};

/// Whether the GPU is cut into instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigMode {
    /// Now.
    pub current: bool,
    /// After the next reset.
    pub pending: bool,
}

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

    /// The id of the GPU instance that this MIG device is in; `None` for a whole GPU.
    ///
    /// Source: `nvmlDeviceGetGpuInstanceId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn gpu_instance_id(&self) -> Result<Option<u32>, Error> {
        symbol!(self.library, nvmlDeviceGetGpuInstanceId).read(self.handle, 0)
    }

    /// The id of the compute instance that this MIG device is; `None` for a whole GPU.
    ///
    /// Source: `nvmlDeviceGetComputeInstanceId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn compute_instance_id(&self) -> Result<Option<u32>, Error> {
        symbol!(self.library, nvmlDeviceGetComputeInstanceId).read(self.handle, 0)
    }

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
}
