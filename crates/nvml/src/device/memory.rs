//! How full the GPU is.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::sentinel::known_u64;
use crate::symbol::symbol;

/// Device memory ("frame buffer"), in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// Neither used nor reserved.
    pub free: u64,
    /// Used by processes.
    pub used: u64,
    /// Held by driver and firmware; `None` from drivers that count it as used.
    pub reserved: Option<u64>,
}

/// The window through which the host maps device memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar1 {
    /// All of it.
    pub total: u64,
    /// Not mapped.
    pub free: u64,
    /// Mapped.
    pub used: u64,
}

/// The header's versioned structures carry their size and number: `sizeof(s) | n << 24`.
#[expect(clippy::cast_possible_truncation, reason = "structures are far smaller than 16 MiB")]
pub(crate) fn structure_version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}

impl Device {
    /// The device memory, in bytes; `None` on boards that share the host's memory.
    ///
    /// Source: `nvmlDeviceGetMemoryInfo_v2`; where the driver is older, `nvmlDeviceGetMemoryInfo`,
    /// which counts reserved memory as used.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn memory(&self) -> Result<Option<Memory>, Error> {
        let empty = raw::nvmlMemory_v2_t {
            version: structure_version::<raw::nvmlMemory_v2_t>(2),
            total: 0,
            reserved: 0,
            free: 0,
            used: 0,
        };
        let memory = symbol!(self.library, nvmlDeviceGetMemoryInfo_v2).read(self.handle, empty)?;
        let Some(memory) = memory else {
            return self.memory_v1();
        };
        Ok(plausible(
            memory.total,
            memory.free,
            memory.used,
            known_u64(memory.reserved),
        ))
    }

    fn memory_v1(&self) -> Result<Option<Memory>, Error> {
        let empty = raw::nvmlMemory_t {
            total: 0,
            free: 0,
            used: 0,
        };
        let memory = symbol!(self.library, nvmlDeviceGetMemoryInfo).read(self.handle, empty)?;
        Ok(memory.and_then(|memory| plausible(memory.total, memory.free, memory.used, None)))
    }

    /// The BAR1 window, in bytes.
    ///
    /// Source: `nvmlDeviceGetBAR1MemoryInfo`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn bar1(&self) -> Result<Option<Bar1>, Error> {
        let empty = raw::nvmlBAR1Memory_t {
            bar1Total: 0,
            bar1Free: 0,
            bar1Used: 0,
        };
        let bar1 = symbol!(self.library, nvmlDeviceGetBAR1MemoryInfo).read(self.handle, empty)?;
        Ok(bar1
            .filter(|bar1| known_u64(bar1.bar1Total).is_some_and(|total| total > 0))
            .map(|bar1| Bar1 {
                total: bar1.bar1Total,
                free: bar1.bar1Free,
                used: bar1.bar1Used,
            }))
    }
}

/// A board without memory of its own answers zero for everything, a failing one nonsense.
fn plausible(total: u64, free: u64, used: u64, reserved: Option<u64>) -> Option<Memory> {
    (total > 0 && known_u64(total).is_some() && free <= total && used <= total).then_some(Memory {
        total,
        free,
        used,
        reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_header() {
        assert_eq!(structure_version::<raw::nvmlMemory_v2_t>(2), 0x0200_0028);
        assert_eq!(structure_version::<raw::nvmlMarginTemperature_v1_t>(1), 0x0100_0008);
    }

    #[test]
    fn shared_memory_boards_have_no_memory_rather_than_none_of_it() {
        assert_eq!(plausible(0, 0, 0, None), None);
    }
}
