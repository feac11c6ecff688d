//! The NVLink fabric: whether this GPU has joined it, and how it is.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::device::memory::structure_version;
use crate::error::Error;
use crate::symbol::symbol;

/// How far the GPU is on its way into the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricState {
    /// Nobody has begun: the fabric manager does not run.
    NotStarted,
    /// The fabric manager is at it.
    InProgress,
    /// It has ended; whether well, [`Fabric::status`] says.
    Completed,
}

/// The driver's verdict (driver 580 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricSummary {
    /// All is well.
    Healthy,
    /// It is not.
    Unhealthy,
    /// It works with less than all.
    LimitedCapacity,
}

/// Why the fabric's set-up is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misconfiguration {
    /// The system GUID does not fit.
    SystemGuid,
    /// The chassis' serial number does not fit.
    ChassisSerial,
    /// The GPU is in no partition.
    NoPartition,
    /// Too few links are up.
    InsufficientNvLinks,
    /// One that this code does not know by name: the header's number.
    Other(u32),
}

/// The health mask, taken apart. `None` where the driver does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricHealth {
    /// Fewer bytes per second than there should be.
    pub degraded_bandwidth: Option<bool>,
    /// Routes are being mended.
    pub route_recovery: Option<bool>,
    /// Routes are broken.
    pub route_unhealthy: Option<bool>,
    /// An access timed out and is being mended.
    pub access_timeout_recovery: Option<bool>,
    /// Whether the set-up is wrong (`Some(None)`: it is not).
    pub misconfiguration: Option<Option<Misconfiguration>>,
}

/// A GPU's place in the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// How far it has come.
    pub state: FabricState,
    /// The code that registering ended with, 0 for success; `None` before it has ended.
    pub status: Option<u32>,
    /// The clique: GPUs of the same one reach each other.
    pub clique: u32,
    /// The cluster's UUID; `None` if it is all zeros.
    pub cluster_uuid: Option<String>,
    /// The health; all `None` from drivers before 550.
    pub health: FabricHealth,
    /// The driver's verdict; `None` from drivers before 580.
    pub summary: Option<FabricSummary>,
}

impl Device {
    /// The GPU's place in the NVLink fabric; `None` where there is none to join.
    ///
    /// Source: `nvmlDeviceGetGpuFabricInfoV` (third version of the structure, else the second), else
    /// `nvmlDeviceGetGpuFabricInfo`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn fabric(&self) -> Result<Option<Fabric>, Error> {
        let versioned = symbol!(self.library, nvmlDeviceGetGpuFabricInfoV);
        let mut info = raw::nvmlGpuFabricInfoV_t {
            version: structure_version::<raw::nvmlGpuFabricInfo_v3_t>(3),
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
            healthMask: 0,
            healthSummary: 0,
        };
        if let Some(third) = versioned.read(self.handle, info)? {
            return Ok(fabric(&third, true));
        }
        // The second version is the third without its last member, so that the third has room for it.
        info.version = structure_version::<raw::nvmlGpuFabricInfo_v2_t>(2);
        if let Some(second) = versioned.read(self.handle, info)? {
            return Ok(fabric(&second, true));
        }
        let empty = raw::nvmlGpuFabricInfo_t {
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
        };
        let first = symbol!(self.library, nvmlDeviceGetGpuFabricInfo).read(self.handle, empty)?;
        Ok(first.and_then(|first| {
            info.clusterUuid = first.clusterUuid;
            info.status = first.status;
            info.cliqueId = first.cliqueId;
            info.state = first.state;
            fabric(&info, false)
        }))
    }
}

fn fabric(info: &raw::nvmlGpuFabricInfoV_t, health_told: bool) -> Option<Fabric> {
    let state = match u32::from(info.state) {
        raw::NVML_GPU_FABRIC_STATE_NOT_STARTED => FabricState::NotStarted,
        raw::NVML_GPU_FABRIC_STATE_IN_PROGRESS => FabricState::InProgress,
        raw::NVML_GPU_FABRIC_STATE_COMPLETED => FabricState::Completed,
        _ => return None,
    };
    Some(Fabric {
        state,
        status: (state == FabricState::Completed).then_some(info.status),
        clique: info.cliqueId,
        cluster_uuid: uuid(&info.clusterUuid),
        health: if health_told {
            health(info.healthMask)
        } else {
            FabricHealth::default()
        },
        summary: match u32::from(info.healthSummary) {
            raw::NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY => Some(FabricSummary::Healthy),
            raw::NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY => Some(FabricSummary::Unhealthy),
            raw::NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY => Some(FabricSummary::LimitedCapacity),
            _ => None,
        },
    })
}

/// Two bits for each question (1 yes, 2 no, 0 not told), four for the set-up.
fn health(mask: u32) -> FabricHealth {
    let told = |shift: u32| match mask >> shift & 0b11 {
        1 => Some(true),
        2 => Some(false),
        _ => None,
    };
    let misconfiguration = match mask >> raw::NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION & 0xf {
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NOT_SUPPORTED => None,
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE => Some(None),
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_SYSGUID => {
            Some(Some(Misconfiguration::SystemGuid))
        }
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INCORRECT_CHASSIS_SN => {
            Some(Some(Misconfiguration::ChassisSerial))
        }
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NO_PARTITION => {
            Some(Some(Misconfiguration::NoPartition))
        }
        raw::NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INSUFFICIENT_NVLINKS => {
            Some(Some(Misconfiguration::InsufficientNvLinks))
        }
        other => Some(Some(Misconfiguration::Other(other))),
    };
    FabricHealth {
        degraded_bandwidth: told(raw::NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW),
        route_recovery: told(raw::NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY),
        route_unhealthy: told(raw::NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY),
        access_timeout_recovery: told(raw::NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY),
        misconfiguration,
    }
}

fn uuid(bytes: &[u8; 16]) -> Option<String> {
    if bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_mask_is_taken_apart() {
        // Bandwidth full, no recovery, routes broken, no time-out, no partition.
        let mask = 2 | 2 << 2 | 1 << 4 | 2 << 6 | 4 << 8;
        assert_eq!(
            health(mask),
            FabricHealth {
                degraded_bandwidth: Some(false),
                route_recovery: Some(false),
                route_unhealthy: Some(true),
                access_timeout_recovery: Some(false),
                misconfiguration: Some(Some(Misconfiguration::NoPartition)),
            }
        );
        assert_eq!(health(0), FabricHealth::default());
    }

    #[test]
    fn a_cluster_has_a_uuid_unless_it_is_all_zeros() {
        let bytes = [0xc0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(uuid(&bytes).as_deref(), Some("c0010203-0405-0607-0809-0a0b0c0d0e0f"));
        assert_eq!(uuid(&[0; 16]), None);
    }
}
