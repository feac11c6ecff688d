//! The one simulated server that a loaded library is, and its clock.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlReturn_t};

use super::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NOT_SUPPORTED, UNINITIALIZED, UNKNOWN, call, mig};
use crate::mig::INSTANCES_MAX;
use crate::offset::Offset;
use crate::scenario::{BoardKind, GPUS_MAX, NoNumber, Scenario, Still};
use crate::state::{BoardState, MigState};
use crate::switches::{self, Entry};

const DRIVER_NOT_LOADED: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED;
const VERSIONS_DIFFER: nvmlReturn_t = raw::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH;

/// No time was set: the machine's clock counts; no epoch was set: the first `nvmlInit` is it.
pub(super) const UNSET: i64 = i64::MIN;
/// Sampled values change this often.
const TICK_MS: i64 = 100;
static TIME_MS: AtomicI64 = AtomicI64::new(UNSET);
static EPOCH_MS: AtomicI64 = AtomicI64::new(UNSET);
static SERVER: Mutex<Server> = Mutex::new(Server {
    inits: 0,
    base: None,
    scenario: None,
    named: None,
    states: Vec::new(),
    present: Vec::new(),
    generation: 0,
    version: None,
    injected: Vec::new(),
    control: None,
});
/// One byte for each possible GPU; its address is the handle.
static HANDLES: [u8; GPUS_MAX] = [0; GPUS_MAX];
/// The same for each possible MIG device.
static MIG_HANDLES: [u8; GPUS_MAX * INSTANCES_MAX] = [0; GPUS_MAX * INSTANCES_MAX];

/// What was initialised, and the last state of each GPU.
struct Server {
    inits: u32,
    /// The scenario as it was read.
    base: Option<Arc<Scenario>>,
    /// The scenario with the faults that were injected.
    scenario: Option<Arc<Scenario>>,
    named: Option<PathBuf>,
    states: Vec<Option<(i64, Arc<BoardState>)>>,
    /// The boards that were there at the first `nvmlInit`, in NVML order.
    present: Vec<usize>,
    /// How often the driver had been unloaded then.
    generation: usize,
    /// The version of this very file: a driver that comes back in another is not for it.
    version: Option<String>,
    /// Faults injected by calls.
    injected: Vec<Entry>,
    control: Option<ControlFile>,
}

/// The file of switches, as it was seen last.
struct ControlFile {
    path: PathBuf,
    looked: Instant,
    stamp: Option<(SystemTime, u64)>,
    entries: Vec<Entry>,
}

/// How often the file of switches is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// One GPU, or one MIG device in it, at the time of a call.
pub(super) struct Gpu {
    /// The board's place in the scenario.
    pub(super) index: usize,
    pub(super) t_ms: i64,
    pub(super) scenario: Arc<Scenario>,
    pub(super) state: Arc<BoardState>,
    /// The MIG device that was asked; `None` for the whole GPU.
    pub(super) mig: Option<MigState>,
    /// What is to stand in place of the answer.
    pub(super) no_number: Option<NoNumber>,
}

/// The server outlives a panic of a caller: it holds nothing that could be half-written.
fn server() -> MutexGuard<'static, Server> {
    SERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    /// The GPU behind a handle; refuses what the driver refuses, and is as slow, broken or deadly as the scenario says.
    pub(super) fn open(function: &'static str, device: nvmlDevice_t) -> Answer<Self> {
        let (index, slot) = index_of(device)?;
        call::enter(function, Some(index))?;
        let scenario = scenario()?;
        let t_ms = tick();
        let state = state_at(&scenario, index, t_ms);
        if state.lost {
            return Err(GPU_IS_LOST);
        }
        let mig = match slot {
            None if state.mig_mode == Some(true) && mig::refused_under_mig(function) => return Err(NOT_SUPPORTED),
            None => None,
            Some(_) if !mig::answered_by_instances(function) => return Err(NOT_SUPPORTED),
            // An instance that was destroyed is no handle any more.
            Some(slot) => Some(state.mig.get(slot).cloned().ok_or(INVALID_ARGUMENT)?),
        };
        Ok(Self {
            index,
            t_ms,
            no_number: call::no_number(&scenario, function, index, t_ms),
            scenario,
            state,
            mig,
        })
    }

    /// What kind of board it is.
    pub(super) fn kind(&self) -> &BoardKind {
        self.scenario.kind_of(self.index)
    }

    /// A number of a captured board, if it is one; else the one that is played.
    pub(super) fn told<T>(&self, captured: impl FnOnce(&Still) -> Option<T>, played: T) -> Answer<T> {
        match self.still() {
            Some(still) => captured(still).ok_or(NOT_SUPPORTED),
            None => Ok(played),
        }
    }

    /// What the board told when it was captured; `None` for one that is played.
    pub(super) fn still(&self) -> Option<&Still> {
        self.scenario.boards().get(self.index)?.still.as_deref()
    }
}

/// The scenario being played, with the faults injected so far.
///
/// # Errors
///
/// Uninitialised; "driver not loaded" while the driver is unloaded, and "unknown" afterwards for those who began before.
pub(super) fn scenario() -> Answer<Arc<Scenario>> {
    let mut server = server();
    if server.inits == 0 {
        return Err(UNINITIALIZED);
    }
    server.refresh();
    let scenario = server.scenario.clone().ok_or(UNINITIALIZED)?;
    let t_ms = tick();
    if scenario.is_driver_gone(t_ms) {
        return Err(DRIVER_NOT_LOADED);
    }
    if scenario.driver_generation(t_ms) != server.generation {
        return Err(UNKNOWN);
    }
    Ok(scenario)
}

/// The scenario as it is, whether anybody may ask or not.
pub(super) fn scenario_regardless() -> Option<Arc<Scenario>> {
    let mut server = server();
    server.refresh();
    server.scenario.clone()
}

impl Server {
    /// Looks whether faults were injected or ended.
    fn refresh(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        if control.looked.elapsed() < LOOK {
            return;
        }
        control.looked = Instant::now();
        let stamp = std::fs::metadata(&control.path)
            .ok()
            .and_then(|meta| Some((meta.modified().ok()?, meta.len() ^ meta.ino())));
        if stamp == control.stamp {
            return;
        }
        control.stamp = stamp;
        match switches::read(&control.path) {
            Ok(entries) => {
                control.entries = entries;
                self.combine();
            }
            Err(err) => eprintln!("simulated NVML: {err}"),
        }
    }

    /// Makes the scenario that is played of the one that was read and of what was injected.
    fn combine(&mut self) {
        let Some(base) = self.scenario.clone().or(self.base.clone()) else {
            return;
        };
        let epoch_ms = EPOCH_MS.load(Ordering::Acquire);
        let from_file = self.control.iter().flat_map(|control| &control.entries);
        let mut faults = Vec::new();
        for entry in from_file.chain(&self.injected) {
            match entry.resolve(epoch_ms, base.gpu_count()) {
                Ok(fault) => faults.push(fault),
                Err(err) => eprintln!("simulated NVML: a fault is left out: {err}"),
            }
        }
        self.scenario = Some(base.with_faults(&faults));
        // States of the past are as they were; the one of now may not be.
        self.states = vec![None; base.gpu_count()];
    }
}

/// Injects a fault from now on, by a call of this process.
pub(super) fn inject(fault: &str) -> Result<u64, crate::Error> {
    let mut server = server();
    let count = server
        .scenario
        .as_ref()
        .map_or(usize::MAX, |scenario| scenario.gpu_count());
    switches::resolve(fault, 0, Offset(0), None, count)?;
    let id = CALLED + server.injected.len() as u64;
    server.injected.push(Entry {
        id,
        at_ms: now_ms(),
        until_ms: None,
        fault: fault.to_owned(),
    });
    server.combine();
    Ok(id)
}

/// Ends a fault that was injected by a call.
pub(super) fn end(id: u64) {
    let now = now_ms();
    let mut server = server();
    for entry in server.injected.iter_mut().filter(|entry| entry.id == id) {
        entry.until_ms.get_or_insert(now.max(entry.at_ms + 1));
    }
    server.combine();
}

/// Faults injected by calls are numbered from here on, those of the file below.
const CALLED: u64 = 1 << 20;

/// The handle of a GPU.
pub(super) fn handle(index: usize) -> Option<nvmlDevice_t> {
    HANDLES
        .get(index)
        .map(|byte| std::ptr::from_ref(byte).cast_mut().cast())
}

/// The handle of a MIG device.
pub(super) fn mig_handle(index: usize, slot: usize) -> Option<nvmlDevice_t> {
    (slot < INSTANCES_MAX)
        .then(|| MIG_HANDLES.get(index * INSTANCES_MAX + slot))
        .flatten()
        .map(|byte| std::ptr::from_ref(byte).cast_mut().cast())
}

/// The board of a handle, and the slot of the MIG device.
fn index_of(device: nvmlDevice_t) -> Answer<(usize, Option<usize>)> {
    let server = server();
    if server.inits == 0 {
        return Err(UNINITIALIZED);
    }
    let offset = device.addr().wrapping_sub(HANDLES.as_ptr().addr());
    let mig = device.addr().wrapping_sub(MIG_HANDLES.as_ptr().addr());
    let (index, slot) = if offset < HANDLES.len() {
        (offset, None)
    } else if mig < MIG_HANDLES.len() {
        (mig / INSTANCES_MAX, Some(mig % INSTANCES_MAX))
    } else {
        return Err(INVALID_ARGUMENT);
    };
    if server.present.contains(&index) {
        Ok((index, slot))
    } else {
        Err(INVALID_ARGUMENT)
    }
}

/// The boards that the driver knows, in NVML order.
pub(super) fn present() -> Vec<usize> {
    server().present.clone()
}

fn state_at(scenario: &Arc<Scenario>, index: usize, t_ms: i64) -> Arc<BoardState> {
    {
        let server = server();
        if let Some(Some((time, state))) = server.states.get(index)
            && *time == t_ms
        {
            return Arc::clone(state);
        }
    }
    // Computed outside the lock: calls for different GPUs do not wait for each other.
    let state = Arc::new(scenario.state(index, t_ms));
    let mut server = server();
    if let Some(slot) = server.states.get_mut(index) {
        *slot = Some((t_ms, Arc::clone(&state)));
    }
    state
}

/// Initialises, or counts one more user.
pub(super) fn init() -> nvmlReturn_t {
    if let Err(code) = prepare() {
        return code;
    }
    // Outside the lock: beginning may hang too.
    if let Err(code) = call::enter("nvmlInit_v2", None) {
        return code;
    }
    let Some(scenario) = scenario_regardless() else {
        return UNKNOWN;
    };
    let t_ms = tick();
    if let Some(code) = scenario.init_error(t_ms) {
        return code;
    }
    let mut server = server();
    let version = scenario.driver_at(t_ms).version;
    if server.version.get_or_insert_with(|| version.clone()) != &version {
        return VERSIONS_DIFFER;
    }
    if server.inits == 0 {
        server.generation = scenario.driver_generation(t_ms);
        server.present = (0..scenario.gpu_count())
            .filter(|gpu| !scenario.is_missing(*gpu, t_ms))
            .collect();
    }
    server.inits += 1;
    super::SUCCESS
}

/// Reads the scenario for the first user.
fn prepare() -> Answer<()> {
    let mut server = server();
    if server.inits > 0 {
        return Ok(());
    }
    let epoch = std::env::var("WATCHFIRE_SIM_EPOCH_MS")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    // An epoch that was set by a call wins; the first user's clock is the last resort.
    let _ = EPOCH_MS.compare_exchange(UNSET, epoch.unwrap_or_else(now_ms), Ordering::AcqRel, Ordering::Acquire);
    match read_scenario(server.named.clone()) {
        Ok(scenario) => {
            server.states = vec![None; scenario.gpu_count()];
            server.base = Some(Arc::clone(&scenario));
            server.scenario = Some(scenario);
        }
        Err(err) => {
            eprintln!("simulated NVML: {err}");
            return Err(UNKNOWN);
        }
    }
    server.control = std::env::var_os("WATCHFIRE_SIM_CONTROL")
        .filter(|path| !path.is_empty())
        .map(|path| ControlFile {
            path: path.into(),
            looked: Instant::now().checked_sub(LOOK).unwrap_or_else(Instant::now),
            stamp: None,
            entries: Vec::new(),
        });
    server.combine();
    server.refresh();
    call::forget();
    Ok(())
}

fn read_scenario(named: Option<PathBuf>) -> Result<Arc<Scenario>, crate::Error> {
    let path = named.or_else(|| {
        std::env::var_os("WATCHFIRE_SIM_SCENARIO")
            .filter(|path| !path.is_empty())
            .map(Into::into)
    });
    match path {
        Some(path) => Scenario::read(&path),
        None => Scenario::parse(Scenario::DEFAULT),
    }
}

/// One user less.
pub(super) fn shutdown() -> nvmlReturn_t {
    let mut server = server();
    if server.inits == 0 {
        return UNINITIALIZED;
    }
    server.inits -= 1;
    super::SUCCESS
}

/// Names the scenario file for the next first `nvmlInit`.
pub(super) fn name_scenario(path: Option<PathBuf>) {
    server().named = path;
}

/// Sets the scenario's start, in milliseconds since 1970.
pub(super) fn set_epoch(ms: i64) {
    EPOCH_MS.store(ms, Ordering::Release);
}

/// Sets the time, in milliseconds since 1970; [`UNSET`] returns to the machine's clock.
pub(super) fn set_time(ms: i64) {
    TIME_MS.store(ms, Ordering::Release);
}

/// The time, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    match TIME_MS.load(Ordering::Acquire) {
        UNSET => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        }
        set => set,
    }
}

/// The time, in microseconds since 1970, as the driver stamps its samples.
pub(super) fn now_us() -> u64 {
    u64::try_from(now_ms()).unwrap_or(0).saturating_mul(1000)
}

/// The scenario's time, in milliseconds.
pub(super) fn scenario_ms() -> i64 {
    match EPOCH_MS.load(Ordering::Acquire) {
        UNSET => 0,
        epoch => now_ms().saturating_sub(epoch),
    }
}

/// The scenario's time of the last sampling.
pub(super) fn tick() -> i64 {
    scenario_ms().div_euclid(TICK_MS) * TICK_MS
}
