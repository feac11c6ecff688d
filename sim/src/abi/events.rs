//! Event sets: the XIDs of the timeline, delivered once to each set that waits.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_ulonglong};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::{self as raw, nvmlDevice_t, nvmlEventSet_t, nvmlReturn_t};

use super::simulator::{self, Gpu};
use super::{Answer, INVALID_ARGUMENT, TIMEOUT, code, getters, put};
use crate::scenario::{Fault, FaultKind, Scenario, Xid};

/// How often a waiting call looks at the clock: seldom enough not to be what is measured of whoever waits.
const NAP: Duration = Duration::from_millis(100);
const SUPPORTED: u64 = raw::nvmlEventTypeXidCriticalError as u64;

static SETS: Mutex<Sets> = Mutex::new(Sets {
    last: 0,
    sets: BTreeMap::new(),
});

/// The sets by handle. Handles are numbers that are never used twice.
struct Sets {
    last: usize,
    sets: BTreeMap<usize, Vec<Registered>>,
}

/// A GPU in a set, and how many events of each fault it has been told of, or has missed.
#[derive(Clone)]
struct Registered {
    gpu: usize,
    told: BTreeMap<u64, u64>,
    xids: bool,
}

fn sets() -> MutexGuard<'static, Sets> {
    SETS.lock().unwrap_or_else(PoisonError::into_inner)
}

getters! {
    nvmlDeviceGetSupportedEventTypes: c_ulonglong = |_| Ok(SUPPORTED);
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(out: *mut nvmlEventSet_t) -> nvmlReturn_t {
    let created = simulator::scenario().and_then(|_| {
        if out.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let mut sets = sets();
        sets.last += 16;
        let handle = sets.last;
        sets.sets.insert(handle, Vec::new());
        Ok(std::ptr::without_provenance_mut(handle))
    });
    // SAFETY: the header asks for a pointer to a handle.
    code(created.and_then(|set| unsafe { put(out, set) }))
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    code(simulator::scenario().and_then(|_| sets().sets.remove(&set.addr()).map(|_| ()).ok_or(INVALID_ARGUMENT)))
}

/// Vendor's function of this name: events from now on.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    types: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    code(register(device, types, set))
}

fn register(device: nvmlDevice_t, types: u64, set: nvmlEventSet_t) -> Answer<()> {
    let gpu = Gpu::open("nvmlDeviceRegisterEvents", device)?;
    if types & !SUPPORTED != 0 {
        return Err(super::NOT_SUPPORTED);
    }
    let mut sets = sets();
    let set = sets.sets.get_mut(&set.addr()).ok_or(INVALID_ARGUMENT)?;
    let now_ms = simulator::scenario_ms();
    let told = xids_of(&gpu.scenario, gpu.index)
        .map(|(fault, xid)| (fault.id, xid.count_after(now_ms - fault.at.ms())))
        .filter(|(_, count)| *count > 0)
        .collect();
    set.retain(|registered| registered.gpu != gpu.index);
    set.push(Registered {
        gpu: gpu.index,
        told,
        xids: types & SUPPORTED != 0,
    });
    Ok(())
}

/// Vendor's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    out: *mut raw::nvmlEventData_t,
    timeout_ms: c_uint,
) -> nvmlReturn_t {
    let event = wait(set, timeout_ms);
    // SAFETY: the header asks for a pointer to this structure.
    code(event.and_then(|event| unsafe { put(out, event) }))
}

fn wait(set: nvmlEventSet_t, timeout_ms: c_uint) -> Answer<raw::nvmlEventData_t> {
    super::call::enter("nvmlEventSetWait_v2", None)?;
    let deadline = Instant::now() + Duration::from_millis(timeout_ms.into());
    loop {
        let scenario = simulator::scenario()?;
        let next = {
            let mut sets = sets();
            let registered = sets.sets.get_mut(&set.addr()).ok_or(INVALID_ARGUMENT)?;
            next_event(&scenario, registered, simulator::scenario_ms())
        };
        if let Some((gpu, xid)) = next {
            return Ok(raw::nvmlEventData_t {
                device: simulator::handle(gpu).ok_or(INVALID_ARGUMENT)?,
                eventType: raw::nvmlEventTypeXidCriticalError.into(),
                eventData: xid.into(),
                gpuInstanceId: c_uint::MAX,
                computeInstanceId: c_uint::MAX,
            });
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TIMEOUT);
        }
        std::thread::sleep(NAP.min(left));
    }
}

/// The earliest XID of the set's GPUs that was not delivered yet; marks it as delivered.
fn next_event(scenario: &Scenario, set: &mut [Registered], now_ms: i64) -> Option<(usize, u32)> {
    let mut first: Option<(i64, u64, u32, &mut Registered)> = None;
    for registered in set.iter_mut().filter(|registered| registered.xids) {
        let waiting = xids_of(scenario, registered.gpu).find(|(fault, xid)| {
            let told = registered.told.get(&fault.id).copied().unwrap_or(0);
            told < xid.count_after(now_ms - fault.at.ms())
        });
        if let Some((fault, xid)) = waiting
            && first.as_ref().is_none_or(|(at, ..)| fault.at.ms() < *at)
        {
            first = Some((fault.at.ms(), fault.id, xid.code, registered));
        }
    }
    let (_, id, code, registered) = first?;
    *registered.told.entry(id).or_insert(0) += 1;
    Some((registered.gpu, code))
}

/// The errors of a GPU that event sets hear of, in order of time.
fn xids_of(scenario: &Scenario, gpu: usize) -> impl Iterator<Item = (&Fault, &Xid)> {
    scenario.faults().iter().filter_map(move |fault| match &fault.kind {
        FaultKind::Xid(xid) if fault.gpu == Some(gpu) && xid.is_event() => Some((fault, xid)),
        _ => None,
    })
}
