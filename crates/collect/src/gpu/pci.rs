//! GPUs that sit on the bus, whether the driver knows them or not.

use std::path::PathBuf;

use model::Millis;

use crate::Paths;
use crate::source::{Reader, entries};

/// NVIDIA's number on PCI.
const VENDOR: &str = "0x10de";

/// Class of display controllers: 0x0300 with a monitor, 0x0302 without.
const DISPLAY_CLASSES: [&str; 2] = ["0x0300", "0x0302"];

/// The bus is looked over again after so long, in milliseconds.
const LOOK_MS: Millis = 60_000;

/// Counts GPUs on the bus.
pub struct Bus {
    devices: PathBuf,
    seen: Option<(Millis, u32)>,
}

impl Bus {
    /// Looks below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            devices: paths.sys("bus/pci/devices"),
            seen: None,
        }
    }

    /// How many NVIDIA display controllers there are.
    pub fn gpus(&mut self, now: Millis) -> u32 {
        if let Some((at, count)) = self.seen.filter(|(at, _)| (now - at).abs() < LOOK_MS) {
            let _ = at;
            return count;
        }
        let mut reader = Reader::default();
        let mut is_gpu = |folder: &PathBuf| {
            let class = reader.word(&folder.join("class")).unwrap_or("");
            let is_display = DISPLAY_CLASSES.iter().any(|display| class.starts_with(display));
            is_display && reader.word(&folder.join("vendor")) == Some(VENDOR)
        };
        let found = entries(&self.devices)
            .iter()
            .filter(|(_, folder)| is_gpu(folder))
            .count();
        let count = u32::try_from(found).unwrap_or(u32::MAX);
        self.seen = Some((now, count));
        count
    }
}
