//! The way between GPUs.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::field::{FieldId, FieldValue};
use crate::sentinel::known_u64;
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
}
