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

/// Looks for GPUs on the bus.
pub struct Bus {
    devices: PathBuf,
    seen_at: Option<Millis>,
    slots: Vec<String>,
}

impl Bus {
    /// Looks below sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            devices: paths.sys("bus/pci/devices"),
            seen_at: None,
            slots: Vec::new(),
        }
    }

    /// The addresses of NVIDIA's display controllers, as the kernel writes them.
    pub fn slots(&mut self, now: Millis) -> &[String] {
        if self.seen_at.is_some_and(|at| (now - at).abs() < LOOK_MS) {
            return &self.slots;
        }
        let mut reader = Reader::default();
        let mut is_gpu = |folder: &PathBuf| {
            let class = reader.word(&folder.join("class")).unwrap_or("");
            let is_display = DISPLAY_CLASSES.iter().any(|display| class.starts_with(display));
            is_display && reader.word(&folder.join("vendor")) == Some(VENDOR)
        };
        let found = entries(&self.devices).into_iter().filter(|(_, folder)| is_gpu(folder));
        self.slots = found.map(|(address, _)| address).collect();
        self.seen_at = Some(now);
        &self.slots
    }
}
