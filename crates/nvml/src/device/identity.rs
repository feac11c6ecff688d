//! Who the GPU is: what stays the same until someone opens the case.

use nvml_wrapper_sys::bindings as raw;

use crate::device::Device;
use crate::error::Error;
use crate::symbol::{field_text, symbol};

/// Where a GPU sits on PCI and what it says it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciInfo {
    /// The address in the driver's form, `00000000:1B:00.0`.
    pub bus_id: String,
    /// The PCI domain.
    pub domain: u32,
    /// The bus number.
    pub bus: u32,
    /// The device number on the bus.
    pub device: u32,
    /// Device id in the upper, vendor id in the lower half: `0x233010DE`.
    pub device_id: u32,
    /// The subsystem's ids in the same order; 0 where the board has none.
    pub subsystem_id: u32,
}

impl PciInfo {
    pub(crate) const EMPTY: raw::nvmlPciInfo_t = raw::nvmlPciInfo_t {
        busIdLegacy: [0; 16],
        domain: 0,
        bus: 0,
        device: 0,
        pciDeviceId: 0,
        pciSubSystemId: 0,
        busId: [0; 32],
    };

    pub(crate) fn new(info: &raw::nvmlPciInfo_t) -> Self {
        Self {
            bus_id: field_text(&info.busId)
                .unwrap_or_else(|| format!("{:08X}:{:02X}:{:02X}.0", info.domain, info.bus, info.device)),
            domain: info.domain,
            bus: info.bus,
            device: info.device,
            device_id: info.pciDeviceId,
            subsystem_id: info.pciSubSystemId,
        }
    }

    /// The address in the kernel's form, as in `/sys/bus/pci/devices`: `0000:1b:00.0`.
    #[must_use]
    pub fn kernel_address(&self) -> String {
        format!("{:04x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }
}

/// The generation of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Architecture {
    /// Kepler, 2012.
    Kepler,
    /// Maxwell, 2014.
    Maxwell,
    /// Pascal, 2016.
    Pascal,
    /// Volta, 2017.
    Volta,
    /// Turing, 2018.
    Turing,
    /// Ampere, 2020.
    Ampere,
    /// Ada Lovelace, 2022.
    Ada,
    /// Hopper, 2022.
    Hopper,
    /// Blackwell, 2024.
    Blackwell,
    /// One that this code does not know by name: the driver's number.
    Other(u32),
}

/// A versioned object of the board's InfoROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inforom {
    /// The OEM object.
    Oem,
    /// The ECC object.
    Ecc,
    /// The power management object.
    Power,
}

impl Device {
    /// The UUID, `GPU-` or `MIG-` and 36 characters.
    ///
    /// Source: `nvmlDeviceGetUUID`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn uuid(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetUUID).text(self.handle)
    }

    /// The product name, `NVIDIA H100 80GB HBM3`.
    ///
    /// Source: `nvmlDeviceGetName`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn name(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetName).text(self.handle)
    }

    /// The PCI address and ids.
    ///
    /// Source: `nvmlDeviceGetPciInfo_v3`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn pci_info(&self) -> Result<Option<PciInfo>, Error> {
        let info = symbol!(self.library, nvmlDeviceGetPciInfo_v3).read(self.handle, PciInfo::EMPTY)?;
        Ok(info.map(|info| PciInfo::new(&info)))
    }

    /// The board's serial number; `None` on consumer boards.
    ///
    /// Source: `nvmlDeviceGetSerial`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn serial(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetSerial).text(self.handle)
    }

    /// The number in `/dev/nvidia<number>`.
    ///
    /// Source: `nvmlDeviceGetMinorNumber`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn minor_number(&self) -> Result<Option<u32>, Error> {
        symbol!(self.library, nvmlDeviceGetMinorNumber).read(self.handle, 0)
    }

    /// The video BIOS version, `96.00.74.00.09`.
    ///
    /// Source: `nvmlDeviceGetVbiosVersion`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn vbios_version(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetVbiosVersion).text(self.handle)
    }

    /// The board's part number, `699-21010-0200-000`.
    ///
    /// Source: `nvmlDeviceGetBoardPartNumber`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn board_part_number(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetBoardPartNumber).text(self.handle)
    }

    /// The version of the whole InfoROM image, `G520.0200.00.05`.
    ///
    /// Source: `nvmlDeviceGetInforomImageVersion`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn inforom_image_version(&self) -> Result<Option<String>, Error> {
        symbol!(self.library, nvmlDeviceGetInforomImageVersion).text(self.handle)
    }

    /// The version of one InfoROM object.
    ///
    /// Source: `nvmlDeviceGetInforomVersion`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn inforom_version(&self, object: Inforom) -> Result<Option<String>, Error> {
        let object = match object {
            Inforom::Oem => raw::nvmlInforomObject_enum_NVML_INFOROM_OEM,
            Inforom::Ecc => raw::nvmlInforomObject_enum_NVML_INFOROM_ECC,
            Inforom::Power => raw::nvmlInforomObject_enum_NVML_INFOROM_POWER,
        };
        symbol!(self.library, nvmlDeviceGetInforomVersion).text_by(self.handle, object)
    }

    /// The generation of the GPU.
    ///
    /// Source: `nvmlDeviceGetArchitecture`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn architecture(&self) -> Result<Option<Architecture>, Error> {
        let number = symbol!(self.library, nvmlDeviceGetArchitecture).read(self.handle, 0)?;
        Ok(number.and_then(|number| {
            Some(match number {
                raw::NVML_DEVICE_ARCH_KEPLER => Architecture::Kepler,
                raw::NVML_DEVICE_ARCH_MAXWELL => Architecture::Maxwell,
                raw::NVML_DEVICE_ARCH_PASCAL => Architecture::Pascal,
                raw::NVML_DEVICE_ARCH_VOLTA => Architecture::Volta,
                raw::NVML_DEVICE_ARCH_TURING => Architecture::Turing,
                raw::NVML_DEVICE_ARCH_AMPERE => Architecture::Ampere,
                raw::NVML_DEVICE_ARCH_ADA => Architecture::Ada,
                raw::NVML_DEVICE_ARCH_HOPPER => Architecture::Hopper,
                raw::NVML_DEVICE_ARCH_BLACKWELL => Architecture::Blackwell,
                raw::NVML_DEVICE_ARCH_UNKNOWN => return None,
                other => Architecture::Other(other),
            })
        }))
    }

    /// The CUDA compute capability, (major, minor).
    ///
    /// Source: `nvmlDeviceGetCudaComputeCapability`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn compute_capability(&self) -> Result<Option<(i32, i32)>, Error> {
        symbol!(self.library, nvmlDeviceGetCudaComputeCapability).read_pair(self.handle, (0, 0))
    }

    /// The product family; `None` for one that the header gives no name.
    ///
    /// Source: `nvmlDeviceGetBrand`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn brand(&self) -> Result<Option<&'static str>, Error> {
        let brand = symbol!(self.library, nvmlDeviceGetBrand).read(self.handle, 0)?;
        Ok(brand.and_then(|brand| match brand {
            raw::nvmlBrandType_enum_NVML_BRAND_QUADRO => Some("Quadro"),
            raw::nvmlBrandType_enum_NVML_BRAND_TESLA => Some("Tesla"),
            raw::nvmlBrandType_enum_NVML_BRAND_NVS => Some("NVS"),
            raw::nvmlBrandType_enum_NVML_BRAND_GRID => Some("Grid"),
            raw::nvmlBrandType_enum_NVML_BRAND_GEFORCE => Some("GeForce"),
            raw::nvmlBrandType_enum_NVML_BRAND_TITAN => Some("Titan"),
            raw::nvmlBrandType_enum_NVML_BRAND_QUADRO_RTX => Some("Quadro RTX"),
            raw::nvmlBrandType_enum_NVML_BRAND_NVIDIA_RTX => Some("NVIDIA RTX"),
            raw::nvmlBrandType_enum_NVML_BRAND_NVIDIA => Some("NVIDIA"),
            raw::nvmlBrandType_enum_NVML_BRAND_GEFORCE_RTX => Some("GeForce RTX"),
            raw::nvmlBrandType_enum_NVML_BRAND_TITAN_RTX => Some("Titan RTX"),
            _ => None,
        }))
    }

    /// The version of the firmware that runs the driver's resource manager (Turing and later); `None` where it is off.
    ///
    /// Source: `nvmlDeviceGetGspFirmwareVersion`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn gsp_firmware_version(&self) -> Result<Option<String>, Error> {
        // The header promises no more than 0x40 bytes and takes no length.
        let text = symbol!(self.library, nvmlDeviceGetGspFirmwareVersion).text_unbounded(self.handle)?;
        Ok(text)
    }

    /// The module's number on its base board; `None` on boards with a slot of their own.
    ///
    /// Source: `nvmlDeviceGetModuleId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn module_id(&self) -> Result<Option<u32>, Error> {
        symbol!(self.library, nvmlDeviceGetModuleId).read(self.handle, 0)
    }

    /// The host's memory node nearest to it; `None` on machines with one.
    ///
    /// Source: `nvmlDeviceGetNumaNodeId`.
    ///
    /// # Errors
    ///
    /// As every method.
    pub fn numa_node(&self) -> Result<Option<u32>, Error> {
        Ok(symbol!(self.library, nvmlDeviceGetNumaNodeId)
            .read(self.handle, 0)?
            .and_then(crate::sentinel::known_u32))
    }
}
