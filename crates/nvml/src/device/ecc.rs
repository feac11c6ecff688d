//! Memory errors, and the cells taken out of service because of them.

#![expect(unsafe_code, reason = "counts retired pages without fetching their addresses")]

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::device::memory::structure_version;
use crate::error::Error;
use crate::sentinel::{known_u32, known_u64};
use crate::symbol::symbol;

/// Since when errors are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EccCounter {
    /// Since the driver was loaded.
    Volatile,
    /// Over the board's life.
    Aggregate,
}

/// What became of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EccError {
    /// Corrected; on older boards "single-bit".
    Corrected,
    /// Not corrected; on older boards "double-bit".
    Uncorrected,
}

/// Where an error was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLocation {
    /// L1 cache.
    L1Cache,
    /// L2 cache.
    L2Cache,
    /// Device memory.
    Dram,
    /// Register file.
    RegisterFile,
    /// Texture memory.
    Texture,
    /// All SRAM together, on Ampere and later.
    Sram,
}

/// Whether errors are checked and corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EccMode {
    /// On now.
    pub current: bool,
    /// On after the next reset.
    pub pending: bool,
}

/// Pages of memory out of service (before Ampere).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredPages {
    /// For repeated single-bit errors; `None` if that list is not kept.
    pub single_bit: Option<u32>,
    /// For a double-bit error.
    pub double_bit: Option<u32>,
    /// Whether pages wait for a reset to be retired.
    pub pending: Option<bool>,
}

/// Rows of memory replaced by spare ones (Ampere and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemappedRows {
    /// For correctable errors.
    pub correctable: u32,
    /// For uncorrectable errors.
    pub uncorrectable: u32,
    /// Whether rows wait for a reset to be replaced.
    pub pending: bool,
    /// Whether a replacement failed: the board is for the vendor.
    pub failure: bool,
}

/// Banks of memory by the spare rows they have left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapHistogram {
    /// Banks with all spare rows.
    pub max: u32,
    /// Banks with most.
    pub high: u32,
    /// Banks with some.
    pub partial: u32,
    /// Banks with few.
    pub low: u32,
    /// Banks with none: the next error there cannot be remapped.
    pub none: u32,
}

/// SRAM errors by kind and place (Hopper and later): counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SramErrors {
    /// Corrected, since the driver was loaded.
    pub volatile_corrected: Option<u64>,
    /// Not corrected, found by parity, since the driver was loaded.
    pub volatile_parity: Option<u64>,
    /// Not corrected, found by SEC-DED, since the driver was loaded.
    pub volatile_secded: Option<u64>,
    /// Corrected, over the board's life.
    pub aggregate_corrected: Option<u64>,
    /// Not corrected, found by parity, over the board's life.
    pub aggregate_parity: Option<u64>,
    /// Not corrected, found by SEC-DED, over the board's life.
    pub aggregate_secded: Option<u64>,
    /// Of the uncorrected ones over the board's life: in L2.
    pub l2: Option<u64>,
    /// In multiprocessors.
    pub sm: Option<u64>,
    /// In the PCIe unit.
    pub pcie: Option<u64>,
    /// In microcontrollers.
    pub microcontroller: Option<u64>,
    /// Elsewhere.
    pub other: Option<u64>,
    /// Whether there were so many that the board is for the vendor.
    pub threshold_exceeded: bool,
}

impl EccCounter {
    fn raw(self) -> raw::nvmlEccCounterType_t {
        match self {
            Self::Volatile => raw::nvmlEccCounterType_enum_NVML_VOLATILE_ECC,
            Self::Aggregate => raw::nvmlEccCounterType_enum_NVML_AGGREGATE_ECC,
        }
    }
}

impl EccError {
    fn raw(self) -> raw::nvmlMemoryErrorType_t {
        match self {
            Self::Corrected => raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED,
            Self::Uncorrected => raw::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        }
    }
}

impl Device {
    /// Whether ECC is on; `None` on boards without it.
    ///
    /// Source: `nvmlDeviceGetEccMode`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn ecc_mode(&self) -> Result<Option<EccMode>, Error> {
        let modes = symbol!(self.library, nvmlDeviceGetEccMode).read_pair(self.handle, (0, 0))?;
        Ok(modes.map(|(current, pending)| EccMode {
            current: current != 0,
            pending: pending != 0,
        }))
    }

    /// Errors of all locations together: a count. `None` where ECC is off or absent.
    ///
    /// Source: `nvmlDeviceGetTotalEccErrors`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn ecc_errors(&self, error: EccError, counter: EccCounter) -> Result<Option<u64>, Error> {
        let count = symbol!(self.library, nvmlDeviceGetTotalEccErrors).read_by2(
            self.handle,
            (error.raw(), counter.raw()),
            0,
        )?;
        Ok(count.and_then(known_u64))
    }

    /// Errors of one location: a count.
    ///
    /// Source: `nvmlDeviceGetMemoryErrorCounter`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn memory_errors(
        &self,
        error: EccError,
        counter: EccCounter,
        location: MemoryLocation,
    ) -> Result<Option<u64>, Error> {
        let location = match location {
            MemoryLocation::L1Cache => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_L1_CACHE,
            MemoryLocation::L2Cache => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_L2_CACHE,
            MemoryLocation::Dram => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_DRAM,
            MemoryLocation::RegisterFile => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_REGISTER_FILE,
            MemoryLocation::Texture => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_TEXTURE_MEMORY,
            MemoryLocation::Sram => raw::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM,
        };
        let count = symbol!(self.library, nvmlDeviceGetMemoryErrorCounter).read_by3(
            self.handle,
            (error.raw(), counter.raw(), location),
            0,
        )?;
        Ok(count.and_then(known_u64))
    }

    /// Pages out of service; `None` on Ampere and later, which replace rows instead.
    ///
    /// Source: `nvmlDeviceGetRetiredPages_v2` and `nvmlDeviceGetRetiredPagesPendingStatus`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn retired_pages(&self) -> Result<Option<RetiredPages>, Error> {
        use raw::{
            nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR as DOUBLE_BIT,
            nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS as SINGLE_BIT,
        };
        let pages = RetiredPages {
            single_bit: self.retired_page_count(SINGLE_BIT)?,
            double_bit: self.retired_page_count(DOUBLE_BIT)?,
            pending: symbol!(self.library, nvmlDeviceGetRetiredPagesPendingStatus)
                .read(self.handle, 0)?
                .map(|pending| pending != 0),
        };
        let empty = RetiredPages {
            single_bit: None,
            double_bit: None,
            pending: None,
        };
        Ok((pages != empty).then_some(pages))
    }

    fn retired_page_count(&self, cause: raw::nvmlPageRetirementCause_t) -> Result<Option<u32>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetRetiredPages_v2);
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let mut count = 0;
        // SAFETY: a count of zero says that there is no room at the two array pointers, so they are not followed.
        let code = unsafe {
            function(
                self.handle.0,
                cause,
                &raw mut count,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        let known = code == raw::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE || symbol.outcome(code)?;
        Ok(known.then_some(count).and_then(known_u32))
    }

    /// Rows replaced by spare ones; `None` before Ampere.
    ///
    /// Source: `nvmlDeviceGetRemappedRows`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn remapped_rows(&self) -> Result<Option<RemappedRows>, Error> {
        let symbol = symbol!(self.library, nvmlDeviceGetRemappedRows);
        let Some(function) = symbol.function() else {
            return Ok(None);
        };
        let (mut correctable, mut uncorrectable, mut pending, mut failure) = (0, 0, 0, 0);
        // SAFETY: the four pointers are to live integers.
        let code = unsafe {
            function(
                self.handle.0,
                &raw mut correctable,
                &raw mut uncorrectable,
                &raw mut pending,
                &raw mut failure,
            )
        };
        let rows = RemappedRows {
            correctable,
            uncorrectable,
            pending: pending != 0,
            failure: failure != 0,
        };
        Ok(symbol.outcome(code)?.then_some(rows))
    }
    /// Banks of memory by the spare rows they have left; `None` before Ampere.
    ///
    /// Source: `nvmlDeviceGetRowRemapperHistogram`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn remap_histogram(&self) -> Result<Option<RemapHistogram>, Error> {
        let empty = raw::nvmlRowRemapperHistogramValues_t {
            max: 0,
            high: 0,
            partial: 0,
            low: 0,
            none: 0,
        };
        let banks = symbol!(self.library, nvmlDeviceGetRowRemapperHistogram).read(self.handle, empty)?;
        Ok(banks.map(|banks| RemapHistogram {
            max: banks.max,
            high: banks.high,
            partial: banks.partial,
            low: banks.low,
            none: banks.none,
        }))
    }

    /// SRAM errors by kind and place; `None` before Hopper and from drivers before 535.
    ///
    /// Source: `nvmlDeviceGetSramEccErrorStatus`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn sram_errors(&self) -> Result<Option<SramErrors>, Error> {
        let empty = raw::nvmlEccSramErrorStatus_t {
            version: structure_version::<raw::nvmlEccSramErrorStatus_v1_t>(1),
            aggregateUncParity: 0,
            aggregateUncSecDed: 0,
            aggregateCor: 0,
            volatileUncParity: 0,
            volatileUncSecDed: 0,
            volatileCor: 0,
            aggregateUncBucketL2: 0,
            aggregateUncBucketSm: 0,
            aggregateUncBucketPcie: 0,
            aggregateUncBucketMcu: 0,
            aggregateUncBucketOther: 0,
            bThresholdExceeded: 0,
        };
        let status = symbol!(self.library, nvmlDeviceGetSramEccErrorStatus).read(self.handle, empty)?;
        Ok(status.map(|status| SramErrors {
            volatile_corrected: known_u64(status.volatileCor),
            volatile_parity: known_u64(status.volatileUncParity),
            volatile_secded: known_u64(status.volatileUncSecDed),
            aggregate_corrected: known_u64(status.aggregateCor),
            aggregate_parity: known_u64(status.aggregateUncParity),
            aggregate_secded: known_u64(status.aggregateUncSecDed),
            l2: known_u64(status.aggregateUncBucketL2),
            sm: known_u64(status.aggregateUncBucketSm),
            pcie: known_u64(status.aggregateUncBucketPcie),
            microcontroller: known_u64(status.aggregateUncBucketMcu),
            other: known_u64(status.aggregateUncBucketOther),
            threshold_exceeded: status.bThresholdExceeded != 0,
        }))
    }
}
