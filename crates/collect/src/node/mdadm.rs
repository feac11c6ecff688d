//! `/proc/mdstat`: software RAID.

use std::path::PathBuf;

use model::{Family, Kind, Millis};

use super::label;
use crate::source::{Reader, entries};
use crate::{Collector, Error, Paths, Readings};

const STATES: [&str; 5] = ["active", "inactive", "recovering", "resync", "check"];

/// Collects `node_md_*`.
pub struct Mdadm {
    path: PathBuf,
    block: PathBuf,
    reader: Reader,
}

/// One array.
#[derive(Debug, PartialEq)]
struct Array<'a> {
    name: &'a str,
    state: &'static str,
    active: f64,
    failed: f64,
    spare: f64,
    required: f64,
    blocks: f64,
    synced: f64,
}

impl Mdadm {
    /// Reads below procfs and sysfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths.proc("mdstat"),
            block: paths.sys("block"),
            reader: Reader::default(),
        }
    }

    fn read(&mut self) -> Result<Vec<Family>, Error> {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut state = gauge("node_md_state", "Indicates the state of md-device.");
        let mut disks = gauge("node_md_disks", "Number of active/failed/spare disks of device.");
        let mut required = gauge("node_md_disks_required", "Total number of disks of device.");
        let mut blocks = gauge("node_md_blocks", "Total number of blocks on device.");
        let mut synced = gauge("node_md_blocks_synced", "Number of blocks synced on device.");
        let text = self.reader.text(&self.path)?;
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if !line.starts_with("md") {
                continue;
            }
            let array = Array::parse(&lines[i..]).ok_or_else(|| Error::form(&self.path, i + 1, "an array", line))?;
            let device = || label("device", array.name);
            for name in STATES {
                let holds = f64::from(u8::from(name == array.state));
                state.push(vec![device(), label("state", name)], holds);
            }
            for (name, count) in [
                ("active", array.active),
                ("failed", array.failed),
                ("spare", array.spare),
            ] {
                disks.push(vec![device(), label("state", name)], count);
            }
            required.push(vec![device()], array.required);
            blocks.push(vec![device()], array.blocks);
            synced.push(vec![device()], array.synced);
        }
        Ok(vec![state, disks, required, blocks, synced])
    }

    fn sysfs(&mut self) -> Vec<Family> {
        let gauge = |name: &str, help: &str| Family::new(name, Kind::Gauge, help);
        let mut degraded = gauge("node_md_degraded", "Number of degraded disks on device.");
        let mut raid_disks = gauge("node_md_raid_disks", "Number of raid disks on device.");
        for (name, folder) in entries(&self.block) {
            if !name.starts_with("md") {
                continue;
            }
            let Some(disks) = self.reader.number(&folder.join("md/raid_disks")) else {
                continue;
            };
            raid_disks.push(vec![label("device", &name)], disks);
            // Levels without redundancy have no such file: they are never degraded.
            let missing = self.reader.number(&folder.join("md/degraded")).unwrap_or(0.0);
            degraded.push(vec![label("device", &name)], missing);
        }
        vec![degraded, raid_disks]
    }
}

impl Collector for Mdadm {
    fn name(&self) -> &'static str {
        "mdadm"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut readings = Readings::from(self.read());
        readings.families.extend(self.sysfs());
        readings
    }
}

impl<'a> Array<'a> {
    /// The array whose lines begin here: devices, sizes, perhaps a bitmap, perhaps progress.
    fn parse(lines: &[&'a str]) -> Option<Self> {
        let devices = *lines.first()?;
        let sizes = *lines.get(1)?;
        let mut words = devices.split_ascii_whitespace();
        let name = words.next()?;
        let mut state = match words.nth(1)? {
            "active" => "active",
            "inactive" => "inactive",
            _ => return None,
        };
        let blocks: f64 = sizes.split_ascii_whitespace().next()?.parse().ok()?;
        let marked = |mark: &str| count(devices, mark);
        let (required, active) = if devices.contains("raid0") || devices.contains("linear") {
            (marked("["), marked("["))
        } else if state == "inactive" {
            (0.0, 0.0)
        } else {
            pair(sizes, '[', ']')?
        };
        let mut synced = blocks;
        let details = lines[2..]
            .iter()
            .take_while(|line| line.starts_with(' ') || line.starts_with('\t'));
        for line in details.filter(|line| !line.contains("bitmap")) {
            let progress = [("recovery", "recovering"), ("check", "check"), ("resync", "resync")];
            if let Some((_, becomes)) = progress.into_iter().find(|(word, _)| line.contains(word)) {
                state = becomes;
                let waits = line.contains("PENDING") || line.contains("DELAYED");
                synced = if waits { 0.0 } else { pair(line, '(', ')')?.0 };
                break;
            }
        }
        Some(Self {
            name,
            state,
            active,
            failed: marked("(F)"),
            spare: marked("(S)"),
            required,
            blocks,
            synced,
        })
    }
}

fn count(text: &str, mark: &str) -> f64 {
    u32::try_from(text.matches(mark).count()).map_or(f64::MAX, f64::from)
}

/// The first `open N/M close` of the line.
fn pair(line: &str, open: char, close: char) -> Option<(f64, f64)> {
    line.split(open).skip(1).find_map(|part| {
        let (first, second) = part.split(close).next()?.split_once('/')?;
        Some((first.parse().ok()?, second.parse().ok()?))
    })
}
