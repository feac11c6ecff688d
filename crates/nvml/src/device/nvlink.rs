//! The way between GPUs.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::device::identity::PciInfo;
use crate::error::Error;
use crate::field::{FieldId, FieldValue};
use crate::sentinel::{known_u32, known_u64};
use crate::symbol::symbol;

/// The errors of one link: counters. What a generation does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvLinkErrors {
    /// Packets sent again.
    pub replay: Option<u64>,
    /// Times the link was brought up again.
    pub recovery: Option<u64>,
    /// Flow-control CRC errors.
    pub crc_flit: Option<u64>,
    /// Data CRC errors.
    pub crc_data: Option<u64>,
    /// Data ECC errors.
    pub ecc_data: Option<u64>,
}

/// The bytes over one or all links since the driver was loaded: counters.
///
/// The driver counts KiB; here they are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvLinkThroughput {
    /// Payload sent.
    pub data_tx: Option<u64>,
    /// Payload received.
    pub data_rx: Option<u64>,
    /// Sent with protocol.
    pub raw_tx: Option<u64>,
    /// Received with protocol.
    pub raw_rx: Option<u64>,
}

/// What is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvLinkRemote {
    /// Another GPU.
    Gpu,
    /// A switch.
    Switch,
    /// A processor (POWER).
    Processor,
}

/// The errors of one NVLink 5 link (Blackwell and later): counters. What a driver does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvLink5Errors {
    /// Packets that were not well formed.
    pub malformed: Option<u64>,
    /// Packets dropped for want of room.
    pub overrun: Option<u64>,
    /// Packets received with any error.
    pub received: Option<u64>,
    /// Packets that the other side marked bad.
    pub remote: Option<u64>,
    /// Packets with header errors.
    pub general: Option<u64>,
    /// Times the errors passed the threshold.
    pub integrity: Option<u64>,
    /// Packets discarded instead of sent.
    pub discarded: Option<u64>,
    /// Recoveries that worked.
    pub recovered: Option<u64>,
    /// Recoveries that did not.
    pub recovery_failed: Option<u64>,
    /// Errors left after correction.
    pub effective: Option<u64>,
    /// Symbol errors.
    pub symbol: Option<u64>,
}

/// The field scope that means all links together.
const ALL_LINKS: u32 = u32::MAX;

impl Device {
    /// How many links the GPU has, up or not; `None` on boards without NVLink.
    ///
    /// Source: field `NVML_FI_DEV_NVLINK_LINK_COUNT`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_count(&self) -> Result<Option<u32>, Error> {
        let count = self.field_u64(FieldId::NVLINK_LINK_COUNT)?;
        Ok(count
            .and_then(|count| u32::try_from(count).ok())
            .filter(|count| (1..=64).contains(count)))
    }

    /// Whether a link is up; `None` where there is no such link.
    ///
    /// Source: `nvmlDeviceGetNvLinkState`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_up(&self, link: u32) -> Result<Option<bool>, Error> {
        let state = symbol!(self.library, nvmlDeviceGetNvLinkState).read_by(self.handle, link, 0)?;
        Ok(state.map(|state| state == raw::nvmlEnableState_enum_NVML_FEATURE_ENABLED))
    }

    /// The errors of a link.
    ///
    /// Source: `nvmlDeviceGetNvLinkErrorCounter`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_errors(&self, link: u32) -> Result<NvLinkErrors, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetNvLinkErrorCounter);
        let count = |counter| -> Result<Option<u64>, Error> {
            Ok(symbol.read_by2(self.handle, (link, counter), 0)?.and_then(known_u64))
        };
        Ok(NvLinkErrors {
            replay: count(raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY)?,
            recovery: count(raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY)?,
            crc_flit: count(raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT)?,
            crc_data: count(raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_DATA)?,
            ecc_data: count(raw::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_ECC_DATA)?,
        })
    }

    /// The bytes over one link, or over all together with `None`.
    ///
    /// Source: fields `NVML_FI_DEV_NVLINK_THROUGHPUT_{DATA,RAW}_{TX,RX}`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_throughput(&self, link: Option<u32>) -> Result<NvLinkThroughput, Error> {
        let scope = link.unwrap_or(ALL_LINKS);
        let ids = [
            FieldId::NVLINK_THROUGHPUT_DATA_TX,
            FieldId::NVLINK_THROUGHPUT_DATA_RX,
            FieldId::NVLINK_THROUGHPUT_RAW_TX,
            FieldId::NVLINK_THROUGHPUT_RAW_RX,
        ];
        let values = self.field_values(&ids.map(|id| id.scope(scope)))?;
        let bytes = |at: usize| {
            values
                .get(at)
                .and_then(FieldValue::as_u64)
                .and_then(|kib| kib.checked_mul(1024))
        };
        Ok(NvLinkThroughput {
            data_tx: bytes(0),
            data_rx: bytes(1),
            raw_tx: bytes(2),
            raw_rx: bytes(3),
        })
    }

    /// The speed of a link, in MB/s; `None` where there is no such link or it is down.
    ///
    /// Source: field `NVML_FI_DEV_NVLINK_GET_SPEED`, else `NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_speed(&self, link: u32) -> Result<Option<u32>, Error> {
        let ids = [FieldId::NVLINK_GET_SPEED.scope(link), FieldId::NVLINK_SPEED_MBPS_COMMON];
        let values = self.field_values(&ids)?;
        Ok(values
            .iter()
            .find_map(FieldValue::as_u64)
            .and_then(|speed| u32::try_from(speed).ok())
            .filter(|speed| *speed > 0))
    }

    /// The NVLink generation of a link: 4 on Hopper; `None` where there is no such link.
    ///
    /// Source: `nvmlDeviceGetNvLinkVersion`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_version(&self, link: u32) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetNvLinkVersion)
            .read_by(self.handle, link, 0)?
            .and_then(known_u32))
    }

    /// What is at the other end of a link; `None` where there is nothing or nobody knows.
    ///
    /// Source: `nvmlDeviceGetNvLinkRemoteDeviceType`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_remote(&self, link: u32) -> Result<Option<NvLinkRemote>, Error> {
        let kind = symbol!(self.library, nvmlDeviceGetNvLinkRemoteDeviceType).read_by(self.handle, link, 0)?;
        Ok(kind.and_then(|kind| match kind {
            raw::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_GPU => Some(NvLinkRemote::Gpu),
            raw::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH => Some(NvLinkRemote::Switch),
            raw::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU => Some(NvLinkRemote::Processor),
            _ => None,
        }))
    }

    /// The PCI address of what is at the other end of a link.
    ///
    /// Source: `nvmlDeviceGetNvLinkRemotePciInfo_v2`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink_remote_pci(&self, link: u32) -> Result<Option<PciInfo>, Error> {
        let info =
            symbol!(self.library, nvmlDeviceGetNvLinkRemotePciInfo_v2).read_by(self.handle, link, PciInfo::EMPTY)?;
        Ok(info.map(|info| PciInfo::new(&info)))
    }

    /// The errors of an NVLink 5 link; all `None` on older ones.
    ///
    /// Source: fields `NVML_FI_DEV_NVLINK_COUNT_*`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn nvlink5_errors(&self, link: u32) -> Result<NvLink5Errors, Error> {
        let ids = [
            FieldId::NVLINK_COUNT_MALFORMED_PACKET_ERRORS,
            FieldId::NVLINK_COUNT_BUFFER_OVERRUN_ERRORS,
            FieldId::NVLINK_COUNT_RCV_ERRORS,
            FieldId::NVLINK_COUNT_RCV_REMOTE_ERRORS,
            FieldId::NVLINK_COUNT_RCV_GENERAL_ERRORS,
            FieldId::NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
            FieldId::NVLINK_COUNT_XMIT_DISCARDS,
            FieldId::NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS,
            FieldId::NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS,
            FieldId::NVLINK_COUNT_EFFECTIVE_ERRORS,
            FieldId::NVLINK_COUNT_SYMBOL_ERRORS,
        ];
        let values = self.field_values(&ids.map(|id| id.scope(link)))?;
        let count = |at: usize| values.get(at).and_then(FieldValue::as_u64);
        Ok(NvLink5Errors {
            malformed: count(0),
            overrun: count(1),
            received: count(2),
            remote: count(3),
            general: count(4),
            integrity: count(5),
            discarded: count(6),
            recovered: count(7),
            recovery_failed: count(8),
            effective: count(9),
            symbol: count(10),
        })
    }
}
