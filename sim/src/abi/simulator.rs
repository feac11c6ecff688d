//! The one simulated server that a loaded library is, and its clock.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, UNINITIALIZED, UNKNOWN};
use crate::scenario::Scenario;
use crate::state::BoardState;

/// No time was set: the machine's clock counts; no epoch was set: the first `nvmlInit` is it.
pub(super) const UNSET: i64 = i64::MIN;
/// Sampled values change this often.
const TICK_MS: i64 = 100;
/// How often a call that hangs looks whether it may go on.
const NAP: Duration = Duration::from_millis(20);

static TIME_MS: AtomicI64 = AtomicI64::new(UNSET);
static EPOCH_MS: AtomicI64 = AtomicI64::new(UNSET);
static SERVER: Mutex<Server> = Mutex::new(Server {
    inits: 0,
    scenario: None,
    named: None,
    states: Vec::new(),
});
/// One byte for each possible GPU; its address is the handle.
static HANDLES: [u8; 64] = [0; 64];

/// What was initialised, and the last state of each GPU.
struct Server {
    inits: u32,
    scenario: Option<Arc<Scenario>>,
    named: Option<PathBuf>,
    states: Vec<Option<(i64, Arc<BoardState>)>>,
}

/// One GPU at the time of a call.
pub(super) struct Gpu {
    pub(super) index: usize,
    pub(super) t_ms: i64,
    pub(super) scenario: Arc<Scenario>,
    pub(super) state: Arc<BoardState>,
}

/// The server outlives a panic of a caller: it holds nothing that could be half-written.
fn server() -> MutexGuard<'static, Server> {
    SERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    /// The GPU behind a handle; refuses what the driver refuses, and is as slow as the scenario says.
    pub(super) fn open(device: nvmlDevice_t) -> Answer<Self> {
        let scenario = scenario()?;
        let index = index_of(device, &scenario)?;
        let mut slept = false;
        loop {
            let t_ms = tick();
            let state = state_at(&scenario, index, t_ms);
            if state.calls_hang {
                std::thread::sleep(NAP);
                continue;
            }
            if state.call_ms > 0 && !slept {
                std::thread::sleep(Duration::from_millis(state.call_ms));
                slept = true;
                continue;
            }
            if state.lost {
                return Err(GPU_IS_LOST);
            }
            return Ok(Self {
                index,
                t_ms,
                scenario,
                state,
            });
        }
    }
}

/// The scenario being played.
pub(super) fn scenario() -> Answer<Arc<Scenario>> {
    let server = server();
    if server.inits == 0 {
        return Err(UNINITIALIZED);
    }
    server.scenario.clone().ok_or(UNINITIALIZED)
}

/// The handle of a GPU.
pub(super) fn handle(index: usize) -> Option<nvmlDevice_t> {
    HANDLES
        .get(index)
        .map(|byte| std::ptr::from_ref(byte).cast_mut().cast())
}

/// The GPU of a handle.
pub(super) fn index_of(device: nvmlDevice_t, scenario: &Scenario) -> Answer<usize> {
    let offset = device.addr().wrapping_sub(HANDLES.as_ptr().addr());
    if offset < scenario.gpu_count().min(HANDLES.len()) {
        Ok(offset)
    } else {
        Err(INVALID_ARGUMENT)
    }
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
    let mut server = server();
    if server.inits == 0 {
        match read_scenario(server.named.clone()) {
            Ok(scenario) => {
                if let Some(code) = scenario.driver().init_error {
                    return code;
                }
                server.states = vec![None; scenario.gpu_count()];
                server.scenario = Some(scenario);
            }
            Err(err) => {
                eprintln!("simulated NVML: {err}");
                return UNKNOWN;
            }
        }
        let epoch = std::env::var("WATCHFIRE_SIM_EPOCH_MS")
            .ok()
            .and_then(|text| text.trim().parse().ok());
        // An epoch that was set by a call wins; the first user's clock is the last resort.
        let _ = EPOCH_MS.compare_exchange(UNSET, epoch.unwrap_or_else(now_ms), Ordering::AcqRel, Ordering::Acquire);
    }
    server.inits += 1;
    super::SUCCESS
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
