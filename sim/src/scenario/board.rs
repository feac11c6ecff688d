//! The boards: what they are.

use std::sync::Arc;

use serde::Deserialize;

use crate::error::Error;
use crate::mig::Profile;
use crate::scenario::still::Still;

/// What all boards of a server have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardKind {
    /// The product name.
    pub model: String,
    /// The header's `NVML_DEVICE_ARCH_*`: 9 is Hopper.
    pub architecture: u32,
    /// CUDA compute capability, major and minor.
    pub compute_capability: (i32, i32),
    /// Multiprocessors' CUDA cores.
    pub cores: u32,
    /// The board's part number.
    pub part_number: String,
    /// The video BIOS.
    pub vbios: String,
    /// The InfoROM image.
    pub inforom: String,
    /// Device id above vendor id.
    pub pci_device_id: u32,
    /// The subsystem's.
    pub pci_subsystem_id: u32,
    /// Memory as `nvidia-smi` shows it, in MiB, reserved included.
    pub memory_mib: u64,
    /// Memory held by driver and firmware, in MiB.
    pub reserved_mib: u64,
    /// The BAR1 window, in MiB.
    pub bar1_mib: u64,
    /// PCIe generation.
    pub pcie_generation: u32,
    /// PCIe lanes.
    pub pcie_width: u32,
    /// NVLinks.
    pub nvlinks: u32,
    /// The speed of one NVLink, in MB/s.
    pub nvlink_mbps: u32,
    /// Whether the board has memory with ECC, row remapping and the memory sensor.
    #[serde(default = "yes")]
    pub datacenter: bool,
    /// Fans on the board; none where the chassis cools it.
    #[serde(default)]
    pub fans: u32,
    /// Power.
    pub power: PowerKind,
    /// Clocks.
    pub clocks: ClocksKind,
    /// Temperatures.
    pub temperature: TemperatureKind,
}

impl BoardKind {
    /// Whether it can be cut into instances: data-centre boards of Ampere, Hopper and Blackwell.
    #[must_use]
    pub fn mig_capable(&self) -> bool {
        self.datacenter && matches!(self.architecture, 7 | 9 | 10)
    }

    /// Whether it joins a fabric of switches.
    #[must_use]
    pub fn has_fabric(&self) -> bool {
        self.nvlinks > 0 && self.architecture >= 9
    }
}

/// The power of a kind of board, in watts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerKind {
    /// With nothing to do.
    pub idle: f64,
    /// At full load, before any limit.
    pub peak: f64,
    /// The limit.
    pub limit: f64,
    /// The lowest settable limit.
    pub limit_min: f64,
    /// The highest settable limit.
    pub limit_max: f64,
}

/// The clocks of a kind of board, in MHz.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClocksKind {
    /// Multiprocessors at idle.
    pub sm_idle: u32,
    /// Multiprocessors at most.
    pub sm_max: u32,
    /// Memory.
    pub memory: u32,
    /// Video engines at idle.
    pub video_idle: u32,
    /// Video engines at most.
    pub video_max: u32,
}

/// The temperatures of a kind of board, in degrees Celsius.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureKind {
    /// The air that reaches the heat sink.
    pub ambient: f64,
    /// Degrees above ambient for each watt.
    pub per_watt: f64,
    /// How fast it follows the power, in seconds.
    pub time_constant: f64,
    /// The board powers off.
    pub shutdown: i32,
    /// The hardware cuts the clocks.
    pub slowdown: i32,
    /// The core's highest operating temperature.
    pub gpu_max: i32,
    /// The memory's highest operating temperature.
    pub memory_max: i32,
}

/// One board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// `GPU-` and 36 characters.
    pub uuid: String,
    /// The serial number.
    pub serial: String,
    /// The PCI address, `0000:1b:00.0`.
    pub pci: PciAddress,
    /// Degrees above its siblings at the same power (where it sits in the air stream).
    #[serde(default)]
    pub warmer: f64,
    /// Its power at the same load, as a factor.
    #[serde(default = "one")]
    pub hungry: f64,
    /// The instances it is cut into from the start; none where MIG is off.
    #[serde(default)]
    pub mig: Vec<Profile>,
    /// What it told when it was captured: a board that is not played but stands still.
    #[serde(skip)]
    pub still: Option<Arc<Still>>,
}

/// A PCI address with function 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PciAddress {
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u32,
    /// The device.
    pub device: u32,
}

impl PciAddress {
    /// As NVML writes it, `00000000:1B:00.0`.
    #[must_use]
    pub fn nvml(self) -> String {
        format!("{:08X}:{:02X}:{:02X}.0", self.domain, self.bus, self.device)
    }

    /// As NVML wrote it once, `0000:1B:00.0`.
    #[must_use]
    pub fn nvml_legacy(self) -> String {
        format!("{:04X}:{:02X}:{:02X}.0", self.domain, self.bus, self.device)
    }

    /// As the kernel writes it, `0000:1b:00.0`.
    #[must_use]
    pub fn kernel(self) -> String {
        format!("{:04x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }

    /// As the driver writes it into the kernel log, `PCI:0000:1b:00`.
    #[must_use]
    pub fn xid(self) -> String {
        format!("PCI:{:04x}:{:02x}:{:02x}", self.domain, self.bus, self.device)
    }

    /// Reads any of these forms.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix(".0").unwrap_or(text);
        let parts: Vec<u32> = text
            .split(':')
            .map(|part| u32::from_str_radix(part, 16).ok())
            .collect::<Option<_>>()?;
        match parts[..] {
            [domain, bus, device] => Some(Self { domain, bus, device }),
            [bus, device] => Some(Self { domain: 0, bus, device }),
            _ => None,
        }
    }
}

impl TryFrom<String> for PciAddress {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text).ok_or_else(|| Error::invalid(format!("{text:?} is no PCI address such as 0000:1b:00.0")))
    }
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}
