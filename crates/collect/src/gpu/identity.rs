//! Who a GPU is: read once, remembered when it can no longer tell.

use std::collections::HashMap;

use nvml::{Device, Error, Inforom};
use serde::{Deserialize, Serialize};

/// Who a GPU is. Texts are empty where the board does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Identity {
    /// The driver's index.
    pub index: u32,
    /// `GPU-…`.
    pub uuid: String,
    /// `00000000:1B:00.0`.
    pub pci_bus_id: String,
    /// `NVIDIA H100 80GB HBM3`.
    pub model: String,
    pub serial: String,
    pub vbios: String,
}

impl Identity {
    /// Only the index: of a GPU that was lost before anyone could ask it.
    pub fn unknown(index: u32) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Asks the GPU. Serial and firmware may be missing; name and address may not.
    pub fn read(device: &Device) -> Result<Self, Error> {
        let text = |answer: Result<Option<String>, Error>| answer.ok().flatten().unwrap_or_default();
        Ok(Self {
            index: device.index(),
            uuid: device.uuid()?.unwrap_or_default(),
            pci_bus_id: device.pci_info()?.map(|pci| pci.bus_id).unwrap_or_default(),
            model: device.name()?.unwrap_or_default(),
            serial: text(device.serial()),
            vbios: text(device.vbios_version()),
        })
    }

    /// Whether this is a part of a GPU lent to a virtual machine: `GRID A100-10C`, `NVIDIA A40-8Q`.
    pub fn is_vgpu(&self) -> bool {
        let profile = self.model.rsplit_once('-').map(|(_, profile)| profile);
        let size = profile.and_then(|profile| profile.strip_suffix(['A', 'B', 'C', 'Q']));
        let is_sized = size.is_some_and(|size| !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit()));
        self.model.starts_with("GRID ") || is_sized
    }

    /// The labels that name it in our own series.
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        vec![
            ("gpu", self.index.to_string()),
            ("UUID", self.uuid.clone()),
            ("pci_bus_id", self.pci_bus_id.clone()),
        ]
    }
}

/// What the board tells of itself in words, by the words of the field table; asked once.
pub fn texts(device: &Device) -> HashMap<&'static str, String> {
    let answers = [
        ("brand", device.brand().map(|brand| brand.map(str::to_owned))),
        ("serial", device.serial()),
        ("vbios_version", device.vbios_version()),
        ("board_part_number", device.board_part_number()),
        ("inforom_image_version", device.inforom_image_version()),
        ("inforom_oem_version", device.inforom_version(Inforom::Oem)),
        ("inforom_ecc_version", device.inforom_version(Inforom::Ecc)),
        ("inforom_power_version", device.inforom_version(Inforom::Power)),
    ];
    let known = answers.into_iter().filter_map(|(word, text)| Some((word, text.ok()??)));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lent_part_of_a_gpu_is_told_by_its_profile() {
        let is_vgpu = |model: &str| {
            let model = model.to_owned();
            Identity {
                model,
                ..Identity::default()
            }
            .is_vgpu()
        };
        for model in ["GRID A100-10C", "NVIDIA A40-8Q", "GRID T4"] {
            assert!(is_vgpu(model), "{model}");
        }
        for model in [
            "NVIDIA H100 80GB HBM3",
            "NVIDIA A100-SXM4-80GB",
            "NVIDIA GeForce RTX 4090",
            "",
        ] {
            assert!(!is_vgpu(model), "{model}");
        }
    }
}
