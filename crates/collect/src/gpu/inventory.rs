//! The GPUs that this machine has had: a small file, so that a restart does not forget those that cannot tell any more.
//!
//! A GPU that fell off the bus answers nothing, not even its name, and after a boot the driver may not count it. Then its
//! name, slot and serial number come from here, and one that the driver does not count is *missing* for as long as it
//! stands in the file: that is the fault which people must see.
//!
//! A board is known by its UUID. One that answers at another index or in another slot has moved. A UUID never seen
//! before, in the slot or at the index of a board that does not answer, has replaced that board. A known board in the slot
//! of a missing one has replaced nothing: with a board gone the firmware may number the rest anew.
//!
//! Boards taken out on purpose are forgotten by deleting the file, also while the program runs; it is written anew with
//! those that answer. Without a path the same holds in memory, until the end of the process.
//!
//! Invariant: no damage to the file, and no failure to write it, takes a reading away.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::reading::{GpuState, Reading};
use crate::Error;
use crate::kernel::PciAddress;

/// Four times the GPUs that are watched; boards beyond that are not kept.
const BOARDS_MAX: usize = 256;

/// A file of that many boards is shorter.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The longest of the driver's texts has 96 bytes.
const TEXT_BYTES_MAX: usize = 128;

/// The GPUs that this machine has had.
pub struct Inventory {
    path: Option<PathBuf>,
    /// The kernel's name for this boot; empty where it has none.
    boot_id: String,
    /// By UUID.
    boards: BTreeMap<String, Board>,
    /// Whether the file is there, as far as we know.
    is_kept: bool,
    /// Whether the file lacks something.
    is_stale: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Board {
    #[serde(flatten)]
    who: Identity,
    /// The boot in which it last answered.
    #[serde(default)]
    boot_id: String,
    /// Another board has answered at its index since.
    #[serde(default)]
    index_is_taken: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    gpus: Vec<Board>,
}

impl Inventory {
    /// Reads the file. A damaged one is set aside, with `.damaged` after its name, and said in the log.
    pub fn open(path: Option<PathBuf>, boot_id: String) -> Self {
        let read = path.as_deref().map_or(Ok(None), read);
        let boards = match (read, path.as_deref()) {
            (Ok(boards), _) => boards,
            (Err(reason), path) => {
                let path = path.unwrap_or(Path::new(""));
                let aside = beside(path, ".damaged");
                let aside = fs::rename(path, &aside).map_or_else(|e| e.to_string(), |()| aside.display().to_string());
                tracing::warn!(file = %path.display(), reason, aside, "the inventory of GPUs is damaged and begins anew");
                None
            }
        };
        Self {
            path,
            boot_id,
            is_kept: boards.is_some(),
            is_stale: false,
            boards: boards.unwrap_or_default(),
        }
    }

    /// How many boards there should be.
    pub fn len(&self) -> u32 {
        u32::try_from(self.boards.len()).unwrap_or(u32::MAX)
    }

    /// Forgets all boards if somebody has deleted the file, and says so.
    pub fn forget_if_deleted(&mut self) -> bool {
        let is_gone = |path: &PathBuf| fs::symlink_metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        if !self.is_kept || !self.path.as_ref().is_some_and(is_gone) {
            return false;
        }
        tracing::info!("the inventory of GPUs was deleted and begins anew");
        self.boards.clear();
        self.is_kept = false;
        true
    }

    /// Takes note of who answers, and writes the file if that is news.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; the next call tries again.
    pub fn meet(&mut self, readings: &[Reading]) -> Result<(), Error> {
        let answers = |r: &&Reading| r.state == GpuState::Ok && !r.identity.uuid.is_empty();
        let answering: Vec<&Identity> = readings.iter().filter(answers).map(|r| &r.identity).collect();
        let is_news = |who: &&Identity| self.boards.get(&who.uuid) != Some(&self.board(who));
        if answering.iter().any(is_news) {
            self.update(&answering);
            self.is_stale = true;
        }
        match &self.path {
            Some(path) if self.is_stale => self.write(path)?,
            _ => return Ok(()),
        }
        (self.is_stale, self.is_kept) = (false, true);
        Ok(())
    }

    fn update(&mut self, answering: &[&Identity]) {
        let is_absent = |uuid: &String| answering.iter().all(|who| who.uuid != *uuid);
        // Boards that only moved free their old index and slot before a new one is taken for a successor.
        let (mut order, new): (Vec<&Identity>, Vec<&Identity>) =
            answering.iter().partition(|who| self.boards.contains_key(&who.uuid));
        order.extend(new);
        for who in order {
            let is_new = !self.boards.contains_key(&who.uuid);
            self.boards
                .retain(|uuid, board| !(is_new && is_absent(uuid) && board.is_place_of(who)));
            for board in self.boards.values_mut() {
                board.index_is_taken |= board.who.index == who.index;
            }
            if !is_new || self.boards.len() < BOARDS_MAX {
                self.boards.insert(who.uuid.clone(), self.board(who));
            }
        }
    }

    fn board(&self, who: &Identity) -> Board {
        Board {
            who: who.clone(),
            boot_id: self.boot_id.clone(),
            index_is_taken: false,
        }
    }

    /// Names the GPUs that the driver counts and that cannot tell who they are, as far as their index tells.
    pub fn name(&self, readings: &mut [Reading]) {
        let present: Vec<String> = readings.iter().map(|r| r.identity.uuid.clone()).collect();
        // With boards gone since an earlier boot, the driver numbers the rest anew.
        let is_whole = present.len() >= self.boards.len();
        for reading in readings
            .iter_mut()
            .filter(|r| r.identity.uuid.is_empty() && r.state != GpuState::Ok)
        {
            let holds = |board: &&Board| is_whole || (!self.boot_id.is_empty() && board.boot_id == self.boot_id);
            let was_here = |board: &&Board| board.who.index == reading.identity.index && !board.index_is_taken;
            let mut absent = self.boards.values().filter(|board| !present.contains(&board.who.uuid));
            if let Some(board) = absent.find(|board| was_here(board) && holds(board)) {
                reading.identity = board.who.clone();
            }
        }
    }

    /// The boards that the driver does not count any more, by index.
    pub fn missing(&self, readings: &[Reading]) -> Vec<Reading> {
        let is_counted = |board: &&Board| readings.iter().any(|r| r.identity.uuid == board.who.uuid);
        let mut missing: Vec<_> = self.boards.values().filter(|board| !is_counted(board)).collect();
        missing.sort_by_key(|board| board.who.index);
        let reading = |board: &Board| Reading::without(board.who.clone(), GpuState::Missing);
        missing.into_iter().map(reading).collect()
    }

    /// In one rename, and on the disk before it: a server that loses a GPU often loses power next.
    fn write(&self, path: &Path) -> Result<(), Error> {
        let gpus = self.boards.values().cloned().collect();
        let tmp = beside(path, ".tmp");
        let write = || {
            let text = serde_json::to_string_pretty(&Kept { gpus })?;
            let mut file = File::create(&tmp)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&tmp, path)
        };
        write().map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })
    }
}

impl Board {
    /// Whether `who` stands where this board stood.
    fn is_place_of(&self, who: &Identity) -> bool {
        let address = |who: &Identity| PciAddress::parse(&who.pci_bus_id);
        let is_slot = address(&self.who).is_some() && address(&self.who) == address(who);
        is_slot || (self.who.index == who.index && !self.index_is_taken)
    }

    fn is_sound(&self) -> bool {
        let who = &self.who;
        let texts = [
            &who.uuid,
            &who.pci_bus_id,
            &who.model,
            &who.serial,
            &who.vbios,
            &self.boot_id,
        ];
        let is_text = |text: &&String| text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control);
        !who.uuid.is_empty() && texts.iter().all(is_text)
    }
}

/// The boards of the file; `None` when there is none, an error when it cannot be used.
fn read(path: &Path) -> Result<Option<BTreeMap<String, Board>>, String> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let kept: Kept = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    if kept.gpus.len() > BOARDS_MAX || !kept.gpus.iter().all(Board::is_sound) {
        return Err("no inventory that this program wrote".to_owned());
    }
    let by_uuid = |board: Board| (board.who.uuid.clone(), board);
    Ok(Some(kept.gpus.into_iter().map(by_uuid).collect()))
}

/// A file with a longer name beside this one.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings as `0:a@1b` (index, board, slot; it answers) or `0:?` (counted, cannot tell).
    fn readings(text: &str) -> Vec<Reading> {
        let reading = |word: &str| {
            let (index, rest) = word.split_once(':').expect("an index");
            let mut who = Identity::unknown(index.parse().expect("a number"));
            let Some((uuid, slot)) = rest.split_once('@') else {
                return Reading::without(who, GpuState::Lost);
            };
            uuid.clone_into(&mut who.uuid);
            who.pci_bus_id = format!("00000000:{slot}:00.0");
            Reading::without(who, GpuState::Ok)
        };
        text.split_ascii_whitespace().map(reading).collect()
    }

    /// What the page would tell after rounds parted by `|`, each new process in the boot of its first word:
    /// the last round's GPUs by index, then the missing ones.
    #[track_caller]
    fn check(rounds: &str, want: &str) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gpu-inventory.json");
        let mut told = Vec::new();
        for round in rounds.split('|') {
            let (boot, text) = round.trim().split_once(' ').expect("a boot");
            let boot = if boot == "-" { "" } else { boot };
            let mut inventory = Inventory::open(Some(path.clone()), boot.to_owned());
            let mut readings = readings(text);
            inventory.meet(&readings).expect("written");
            inventory.name(&mut readings);
            let missing = inventory.missing(&readings);
            told = readings.iter().chain(&missing).map(tell).collect();
        }
        assert_eq!(told.join(" "), want, "{rounds}");
    }

    fn tell(reading: &Reading) -> String {
        let who = &reading.identity;
        let state = match reading.state {
            GpuState::Ok => "",
            state => &format!("={}", state.as_str()),
        };
        format!("{}:{}{state}", who.index, who.uuid)
    }

    #[test]
    fn a_gpu_that_cannot_tell_is_named_by_its_index() {
        check("x 0:a@1b 1:b@43 | x 0:a@1b 1:?", "0:a 1:b=lost");
        check("x 0:a@1b 1:b@43 | y 0:a@1b 1:?", "0:a 1:b=lost");
        check("- 0:a@1b 1:b@43 | - 0:a@1b 1:?", "0:a 1:b=lost");
        check("x 0:a@1b 1:?", "0:a 1:=lost");
        check("x 0:a@1b 1:b@43 | x 0:? 1:?", "0:a=lost 1:b=lost");
    }

    #[test]
    fn a_gpu_that_is_not_counted_is_missing() {
        check("x 0:a@1b 1:b@43 | y 0:a@1b", "0:a 1:b=missing");
        // It stays so, and the others move up.
        let moved = "x 0:a@1b 1:b@43 2:c@52 | y 0:a@1b 1:c@52 | z 0:a@1b 1:c@52";
        check(moved, "0:a 1:c 1:b=missing");
        // The firmware gave its slot's number to the next.
        check("x 0:a@1b 1:b@43 2:c@52 | y 0:a@1b 1:c@43", "0:a 1:c 1:b=missing");
        check(&format!("{moved} | z 0:a@1b 1:b@43 2:c@52"), "0:a 1:b 2:c");
    }

    #[test]
    fn an_index_of_an_earlier_boot_does_not_name_where_boards_are_gone() {
        check(
            "x 0:a@1b 1:b@43 2:c@52 | y 0:a@1b 1:?",
            "0:a 1:=lost 1:b=missing 2:c=missing",
        );
        check(
            "x 0:a@1b 1:b@43 2:c@52 | y 0:a@1b 1:c@52 | y 0:a@1b 1:?",
            "0:a 1:c=lost 1:b=missing",
        );
    }

    #[test]
    fn a_new_board_in_the_slot_or_at_the_index_replaces_the_old_one() {
        check("x 0:a@1b 1:b@43 | y 0:a@1b 1:d@43", "0:a 1:d");
        check("x 0:a@1b 1:b@43 | y 0:a@1b 1:d@99", "0:a 1:d");
        check("x 0:a@1b 1:b@43 2:c@52 | y 0:c@1b 1:d@43", "0:c 1:d 0:a=missing");
        check("x 0:a@1b 1:b@43 | y 0:b@1b 1:a@43", "0:b 1:a");
        check("x 0:a@1b | y 0:a@1b 1:b@43", "0:a 1:b");
    }

    #[test]
    fn no_damage_is_a_failure() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gpu-inventory.json");
        let mut whole = Inventory::open(Some(path.clone()), "x".to_owned());
        whole.meet(&readings("0:a@1b 1:b@43")).expect("written");
        let text = fs::read_to_string(&path).expect("written");
        for cut in 0..text.len() {
            fs::write(&path, &text[..cut]).expect("a file");
            let inventory = Inventory::open(Some(path.clone()), "x".to_owned());
            assert_eq!(inventory.len(), 0, "cut at {cut}");
            assert!(!path.exists() && beside(&path, ".damaged").exists());
        }
        for damage in ["\"index\": -1", "\"index\": 1e99", "\"index\": \"0\""] {
            fs::write(&path, text.replace("\"index\": 0", damage)).expect("a file");
            assert_eq!(Inventory::open(Some(path.clone()), "x".to_owned()).len(), 0, "{damage}");
        }
        fs::write(&path, text.replace("\"a\"", "\"\"")).expect("a file");
        assert_eq!(Inventory::open(Some(path), "x".to_owned()).len(), 0, "no UUID");
    }

    #[test]
    fn deleting_the_file_forgets_and_a_folder_that_is_gone_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gpu-inventory.json");
        let mut inventory = Inventory::open(Some(path.clone()), "x".to_owned());
        inventory.meet(&readings("0:a@1b 1:b@43")).expect("written");
        assert!(!inventory.forget_if_deleted());
        assert_eq!(inventory.missing(&readings("0:a@1b")).len(), 1);
        fs::remove_file(&path).expect("there");
        assert!(inventory.forget_if_deleted());
        inventory.meet(&readings("0:a@1b")).expect("written");
        assert_eq!(inventory.missing(&readings("0:a@1b")).len(), 0);
        assert!(path.exists());

        drop(folder);
        assert!(inventory.forget_if_deleted());
        assert!(matches!(inventory.meet(&readings("0:a@1b")), Err(Error::Write { .. })));
        assert_eq!(inventory.missing(&[]).len(), 1, "known all the same");
    }
}
