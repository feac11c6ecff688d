//! Boards cut into instances: which there are, and what each of them is.

use serde::Deserialize;

use crate::error::Error;
use crate::scenario::Scenario;

/// A profile: how much of a board an instance is, `3g.40gb` or `1c.3g.40gb`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Profile {
    /// As written.
    pub name: String,
    /// Slices of the GPU instance.
    pub slices: u32,
    /// Slices of the compute instance.
    pub compute_slices: u32,
    /// Memory as the name says it, in GB.
    pub gigabytes: u32,
}

/// One instance of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigInstance {
    /// Its index among the board's MIG devices.
    pub slot: usize,
    /// The id of its GPU instance.
    pub gpu_instance: u32,
    /// The id of its compute instance.
    pub compute_instance: u32,
    /// `MIG-` and 36 characters.
    pub uuid: String,
    /// How much of the board it is.
    pub profile: Profile,
    /// Its memory, in bytes.
    pub memory: u64,
    /// Its multiprocessors.
    pub multiprocessors: u32,
}

/// Boards have at most so many.
pub(crate) const INSTANCES_MAX: usize = 7;
const SLICES_MAX: u32 = 7;
const MIB: u64 = 1 << 20;

impl Profile {
    /// Reads a name; a suffix such as `+me` is kept.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (head, memory) = name.rsplit_once("g.")?;
        let (compute, slices) = match head.split_once("c.") {
            Some((compute, slices)) => (Some(compute.parse().ok()?), slices),
            None => (None, head),
        };
        let slices: u32 = slices.parse().ok()?;
        let (gigabytes, _suffix) = memory.split_once("gb")?;
        let compute_slices = compute.unwrap_or(slices);
        let sane = (1..=SLICES_MAX).contains(&slices) && (1..=slices).contains(&compute_slices);
        sane.then_some(Self {
            name: name.to_owned(),
            slices,
            compute_slices,
            gigabytes: gigabytes.parse().ok()?,
        })
    }
}

impl TryFrom<String> for Profile {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        Self::parse(&name).ok_or_else(|| Error::invalid(format!("{name:?} is no MIG profile such as 3g.40gb")))
    }
}

/// Whether instances of these profiles fit into a board.
pub(crate) fn check(profiles: &[Profile]) -> Result<(), Error> {
    let mut slices = 0;
    for profile in profiles
        .iter()
        .filter(|profile| profile.compute_slices == profile.slices)
    {
        slices += profile.slices;
    }
    if slices > SLICES_MAX || profiles.len() > INSTANCES_MAX {
        return Err(Error::invalid("MIG instances need more slices than a board has"));
    }
    Ok(())
}

impl Scenario {
    /// Whether a board is cut into instances at a time; `None` where it cannot be.
    #[must_use]
    pub fn mig_mode(&self, gpu: usize, t_ms: i64) -> Option<bool> {
        self.kind_of(gpu).mig_capable().then(|| {
            self.mig_profiles(gpu, t_ms)
                .is_some_and(|profiles| !profiles.is_empty())
        })
    }

    /// The instances of a board at a time; none where MIG is off.
    #[must_use]
    pub fn mig_instances(&self, gpu: usize, t_ms: i64) -> Vec<MigInstance> {
        let Some(profiles) = self.mig_profiles(gpu, t_ms).filter(|_| self.kind_of(gpu).mig_capable()) else {
            return Vec::new();
        };
        let kind = self.kind_of(gpu);
        let board_uuid = self.boards().get(gpu).map_or("", |board| board.uuid.as_str());
        let board_gb = kind.memory_mib.div_ceil(1024);
        let per_slice = if kind.architecture >= 9 { 16 } else { 14 };
        let mut ids = Ids::default();
        let instance = |(slot, profile): (usize, &Profile)| {
            let (gpu_instance, compute_instance) = ids.next(profile);
            // The name rounds up; what the driver keeps is spread over the eighths.
            let eighths = (u64::from(profile.gigabytes) * 8).div_ceil(board_gb.max(1)).clamp(1, 8);
            let memory_mib = kind.memory_mib.saturating_sub(kind.reserved_mib) * eighths / 8 / 128 * 128;
            MigInstance {
                slot,
                gpu_instance,
                compute_instance,
                uuid: uuid(board_uuid, gpu_instance, compute_instance),
                profile: profile.clone(),
                memory: memory_mib * MIB,
                multiprocessors: per_slice * profile.compute_slices,
            }
        };
        profiles.iter().enumerate().map(instance).collect()
    }

    fn mig_profiles(&self, gpu: usize, t_ms: i64) -> Option<&[Profile]> {
        let changed = self
            .faults_of(gpu)
            .filter(|fault| fault.active_at(t_ms))
            .filter_map(|fault| match &fault.kind {
                crate::FaultKind::Mig(profiles) => Some(profiles.as_slice()),
                _ => None,
            })
            .last();
        changed.or_else(|| self.boards().get(gpu).map(|board| board.mig.as_slice()))
    }
}

/// Ids as the driver gives them: by size, so that they say where on the board an instance may lie.
#[derive(Default)]
struct Ids {
    large: u32,
    middle: u32,
    small: u32,
    cut: Option<(String, u32, u32)>,
}

impl Ids {
    fn next(&mut self, profile: &Profile) -> (u32, u32) {
        // Compute instances of one GPU instance follow each other until its slices are used up.
        if profile.compute_slices < profile.slices
            && let Some((name, id, used)) = &mut self.cut
            && name == &profile.name
            && (*used + 1) * profile.compute_slices <= profile.slices
        {
            *used += 1;
            return (*id, *used - 1);
        }
        let take = |next: &mut u32, first: u32| {
            *next += 1;
            first + *next - 1
        };
        let id = match profile.slices {
            1 => take(&mut self.small, 7),
            2 => take(&mut self.middle, 3),
            7 => 0,
            _ => take(&mut self.large, 1),
        };
        self.cut = (profile.compute_slices < profile.slices).then(|| (profile.name.clone(), id, 1));
        (id, 0)
    }
}

/// A name of its own, made of the board's.
pub(crate) fn uuid(board: &str, gpu_instance: u32, compute_instance: u32) -> String {
    let board = board.strip_prefix("GPU-").unwrap_or(board);
    let (head, rest) = board.split_once('-').unwrap_or(("0", board));
    let head = u32::from_str_radix(head, 16).unwrap_or(0);
    let own = head ^ (gpu_instance + 1).wrapping_mul(0x9e37_79b9) ^ (compute_instance + 1).wrapping_mul(0x85eb_ca6b);
    format!("MIG-{own:08x}-{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_name(name: &str, want: Option<(u32, u32, u32)>) {
        let parsed = Profile::parse(name).map(|p| (p.compute_slices, p.slices, p.gigabytes));
        assert_eq!(parsed, want, "{name}");
    }

    #[test]
    fn a_profile_says_slices_and_memory() {
        check_name("3g.40gb", Some((3, 3, 40)));
        check_name("1c.3g.40gb", Some((1, 3, 40)));
        check_name("1g.10gb+me", Some((1, 1, 10)));
        for name in ["", "3g", "g.40gb", "8g.80gb", "0g.5gb", "4c.3g.40gb", "3g.gb"] {
            check_name(name, None);
        }
    }

    #[test]
    fn seven_slices_are_all_there_are() {
        let of = |names: &[&str]| {
            names
                .iter()
                .map(|name| Profile::parse(name).unwrap())
                .collect::<Vec<_>>()
        };
        assert!(check(&of(&["3g.40gb", "4g.40gb"])).is_ok());
        assert!(check(&of(&["1g.10gb"; 7])).is_ok());
        assert!(check(&of(&["4g.40gb", "4g.40gb"])).is_err());
    }

    #[test]
    fn ids_are_those_the_driver_gives() {
        let ids = |names: &[&str]| {
            let mut ids = Ids::default();
            names
                .iter()
                .map(|name| ids.next(&Profile::parse(name).unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&["3g.40gb", "3g.40gb"]), [(1, 0), (2, 0)]);
        assert_eq!(ids(&["1g.10gb", "1g.10gb", "1g.10gb"]), [(7, 0), (8, 0), (9, 0)]);
        assert_eq!(
            ids(&["1c.3g.40gb", "1c.3g.40gb", "1c.3g.40gb", "1c.3g.40gb"]),
            [(1, 0), (1, 1), (1, 2), (2, 0)]
        );
    }
}
