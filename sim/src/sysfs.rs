//! A `/sys` tree of the simulated host, in a folder: the GPUs on the bus, network ports, sensors,
//! memory controllers, drives.
//!
//! Folders stand where the kernel has links to folders, but for the sensors' devices, by whose
//! folders readers name the sensors. Files are those that host collectors read.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::folder::Folder;
use crate::load::round_u64;
use crate::scenario::Scenario;

/// A `/sys` tree in a folder.
#[derive(Debug)]
pub struct Tree {
    scenario: Arc<Scenario>,
    folder: Folder,
}

impl Tree {
    /// A tree in `root` (created if missing). Nothing is written yet.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>, root: &Path) -> Self {
        Self {
            scenario,
            folder: Folder::new(root),
        }
    }

    /// Brings the tree to a time of the scenario.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] with the file that could not be written; others may be new already.
    pub fn write(&mut self, t_ms: i64) -> Result<(), Error> {
        for (name, text) in self.files(t_ms) {
            self.folder.put(&name, text)?;
        }
        let host = self.scenario.host();
        for socket in 0..host.sockets {
            let device = format!("../../../devices/platform/coretemp.{socket}");
            self.folder
                .link(&format!("class/hwmon/hwmon{socket}/device"), &device)?;
        }
        for drive in 0..host.drives {
            let device = format!("../../nvme/nvme{drive}");
            self.folder.link(
                &format!("class/hwmon/hwmon{}/device", host.sockets + drive),
                &device,
            )?;
        }
        Ok(())
    }

    /// The files at a time, by name below the root.
    #[must_use]
    pub fn files(&self, t_ms: i64) -> Vec<(String, String)> {
        let mut files = Vec::new();
        self.gpus(t_ms, &mut files);
        ports(&mut files);
        self.sensors(t_ms, &mut files);
        self.drives(&mut files);
        self.rest(&mut files);
        files
    }

    /// A GPU that fell off the bus keeps its folder, as the kernel's does until it is scanned anew.
    fn gpus(&self, t_ms: i64, files: &mut Vec<(String, String)>) {
        let kind = self.scenario.kind();
        for (gpu, board) in self.scenario.boards().iter().enumerate() {
            let width = self.scenario.pcie_width(gpu, t_ms).unwrap_or(kind.pcie_width);
            let facts = [
                ("vendor", format!("0x{:04x}", kind.pci_device_id & 0xffff)),
                ("device", format!("0x{:04x}", kind.pci_device_id >> 16)),
                ("subsystem_vendor", format!("0x{:04x}", kind.pci_subsystem_id & 0xffff)),
                ("subsystem_device", format!("0x{:04x}", kind.pci_subsystem_id >> 16)),
                ("class", "0x030200".into()),
                (
                    "numa_node",
                    (if gpu * 2 < self.scenario.gpu_count() { "0" } else { "1" }).into(),
                ),
                ("current_link_width", width.to_string()),
                ("max_link_width", kind.pcie_width.to_string()),
                ("current_link_speed", "32.0 GT/s PCIe".into()),
                ("max_link_speed", "32.0 GT/s PCIe".into()),
            ];
            put(files, &format!("bus/pci/devices/{}", board.pci.kernel()), &facts);
        }
    }

    /// Each socket is warmer the more its processors do; drives are warm.
    fn sensors(&self, t_ms: i64, files: &mut Vec<(String, String)>) {
        let host = self.scenario.host();
        let state = self.scenario.host_state(t_ms);
        let millidegrees = |celsius: f64| (round_u64(celsius) * 1000).to_string();
        for socket in 0..host.sockets {
            let celsius = 37.0 + 0.42 * state.load[0] + f64::from(socket) * 1.6;
            let facts = [
                ("name", "coretemp".into()),
                ("temp1_label", format!("Package id {socket}")),
                ("temp1_input", millidegrees(celsius)),
                ("temp1_max", "90000".into()),
                ("temp1_crit", "100000".into()),
                ("temp1_crit_alarm", "0".into()),
            ];
            put(files, &format!("class/hwmon/hwmon{socket}"), &facts);
            put(
                files,
                &format!("devices/platform/coretemp.{socket}"),
                &[("uevent", "DRIVER=coretemp".into())],
            );
        }
        for drive in 0..host.drives {
            let facts = [
                ("name", "nvme".into()),
                ("temp1_label", "Composite".into()),
                ("temp1_input", millidegrees(41.0 + f64::from(drive))),
                ("temp1_max", "81850".into()),
                ("temp1_crit", "84850".into()),
            ];
            put(files, &format!("class/hwmon/hwmon{}", host.sockets + drive), &facts);
        }
    }

    fn drives(&self, files: &mut Vec<(String, String)>) {
        for drive in 0..self.scenario.host().drives {
            let facts = [
                ("model", "SIMULATED NVME 7.68TB".into()),
                ("serial", format!("SIM00000000{drive}")),
                ("firmware_rev", "1.0.0".into()),
                ("state", "live".into()),
                ("cntlid", "1".into()),
            ];
            put(files, &format!("class/nvme/nvme{drive}"), &facts);
            put(
                files,
                &format!("block/nvme{drive}n1/queue"),
                &[("rotational", "0".into())],
            );
        }
    }

    fn rest(&self, files: &mut Vec<(String, String)>) {
        for socket in 0..self.scenario.host().sockets {
            let zero = || "0".to_owned();
            let facts = [
                ("ce_count", zero()),
                ("ue_count", zero()),
                ("ce_noinfo_count", zero()),
                ("ue_noinfo_count", zero()),
                ("mc_name", format!("Intel_{socket}")),
            ];
            put(files, &format!("devices/system/edac/mc/mc{socket}"), &facts);
        }
        let clock = [
            ("available_clocksource", "tsc hpet acpi_pm".into()),
            ("current_clocksource", "tsc".into()),
        ];
        put(files, "devices/system/clocksource/clocksource0", &clock);
        let board = [
            ("sys_vendor", "Simulated".into()),
            (
                "product_name",
                format!("{} x {}", self.scenario.gpu_count(), self.scenario.kind().model),
            ),
            ("bios_version", "1.0".into()),
            ("bios_date", "01/01/2026".into()),
        ];
        put(files, "class/dmi/id", &board);
    }
}

fn ports(files: &mut Vec<(String, String)>) {
    for (index, (name, kind, speed, mtu)) in [
        ("lo", "772", None, "65536"),
        ("eno1", "1", Some("25000"), "1500"),
        ("docker0", "1", Some("10000"), "1500"),
    ]
    .into_iter()
    .enumerate()
    {
        let number = (index + 1).to_string();
        let mut facts = vec![
            ("address", format!("02:00:00:00:00:0{index}")),
            ("broadcast", "ff:ff:ff:ff:ff:ff".into()),
            ("operstate", if name == "lo" { "unknown" } else { "up" }.into()),
            ("carrier", "1".into()),
            ("carrier_changes", "2".into()),
            ("flags", if name == "lo" { "0x9" } else { "0x1003" }.into()),
            ("ifindex", number.clone()),
            ("iflink", number),
            ("mtu", mtu.into()),
            ("tx_queue_len", "1000".into()),
            ("type", kind.into()),
            ("duplex", "full".into()),
        ];
        if let Some(speed) = speed {
            facts.push(("speed", speed.into()));
        }
        put(files, &format!("class/net/{name}"), &facts);
    }
}

fn put(files: &mut Vec<(String, String)>, folder: &str, facts: &[(&str, String)]) {
    files.extend(
        facts
            .iter()
            .map(|(name, value)| (format!("{folder}/{name}"), format!("{value}\n"))),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_has_the_gpus_and_shows_the_narrow_link() {
        let root = std::env::temp_dir().join(format!("sim-sysfs-{}", std::process::id()));
        let demo = Scenario::parse(Scenario::DEFAULT).unwrap();
        let mut tree = Tree::new(demo, &root);
        let read = |name: &str| std::fs::read_to_string(root.join("bus/pci/devices").join(name)).unwrap();
        tree.write(0).unwrap();
        assert_eq!(std::fs::read_dir(root.join("bus/pci/devices")).unwrap().count(), 8);
        assert_eq!(read("0000:43:00.0/device"), "0x2330\n");
        assert_eq!(read("0000:43:00.0/current_link_width"), "16\n");
        tree.write(12_000).unwrap();
        assert_eq!(read("0000:43:00.0/current_link_width"), "8\n");
        let device = |number: u32| {
            root.join(format!("class/hwmon/hwmon{number}/device"))
                .canonicalize()
                .unwrap()
        };
        assert!(
            device(1).ends_with("devices/platform/coretemp.1")
                && device(2).ends_with("class/nvme/nvme0")
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
