//! What may happen to a call before it is answered: it is slow, hangs, fails, or kills the process.
//!
//! Which call it is of its function is counted in each process, from the fault's beginning: the one thing here that is
//! not a function of the time.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::simulator::{scenario_regardless, tick};
use super::{Answer, UNINITIALIZED};
use crate::scenario::{Calls, Fault, FaultKind, NoNumber, Scenario};

/// How often a call that hangs looks whether it may go on.
const NAP: Duration = Duration::from_millis(20);
const SEGMENTATION_FAULT: c_int = 11;

/// Calls that a fault has counted, by its number.
static CALLS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn counts() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to count anew.
pub(super) fn forget() {
    counts().clear();
}

/// Comes back when the call may be answered.
///
/// # Errors
///
/// The code that it is to fail with.
pub(super) fn enter(function: &'static str, gpu: Option<usize>) -> Answer<()> {
    enter_if(function, gpu, |_| true)
}

/// As [`enter`], for calls that do not touch the GPU: only faults that name the function concern them.
pub(super) fn enter_named(function: &'static str, gpu: Option<usize>) -> Answer<()> {
    let named = |kind: &FaultKind| match kind {
        FaultKind::SlowCall(slow) => slow.function.is_some(),
        FaultKind::HangCall(calls) | FaultKind::Crash(calls) => calls.function.is_some(),
        FaultKind::CallError(error) => error.function.is_some(),
        _ => false,
    };
    enter_if(function, gpu, named)
}

fn enter_if(function: &'static str, gpu: Option<usize>, which: impl Fn(&FaultKind) -> bool) -> Answer<()> {
    let Some(scenario) = scenario_regardless() else {
        return Err(UNINITIALIZED);
    };
    let t_ms = tick();
    let faults = scenario.faults().iter().filter(|fault| concerns(fault, gpu, t_ms));
    for fault in faults.filter(|fault| which(&fault.kind)) {
        match &fault.kind {
            FaultKind::SlowCall(slow) if names(slow.function.as_deref(), function) => {
                std::thread::sleep(Duration::from_millis(slow.takes.ms().unsigned_abs()));
            }
            FaultKind::HangCall(calls) if is_meant(fault, calls, function) => hang(fault.id),
            FaultKind::Crash(calls) if is_meant(fault, calls, function) => crash(),
            FaultKind::CallError(error) if error.field.is_none() => {
                let calls = Calls {
                    function: error.function.clone(),
                    call: error.call,
                };
                if is_meant(fault, &calls, function) {
                    return Err(error.code);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is to stand in place of a function's answer.
pub(super) fn no_number(scenario: &Scenario, function: &str, gpu: usize, t_ms: i64) -> Option<NoNumber> {
    let faults = scenario.faults().iter();
    faults
        .filter(|fault| concerns(fault, Some(gpu), t_ms))
        .find_map(|fault| match &fault.kind {
            // Without a function or field it would spoil identities too, of which a driver is always sure.
            FaultKind::BadValue(bad) if bad.field.is_none() && bad.function.is_some() => {
                names(bad.function.as_deref(), function).then_some(bad.value)
            }
            _ => None,
        })
}

/// What is to stand in place of a field's answer: a code, or a number that means none.
pub(super) fn field(scenario: &Scenario, field: u32, gpu: usize, t_ms: i64) -> Answer<Option<NoNumber>> {
    for fault in scenario
        .faults()
        .iter()
        .filter(|fault| concerns(fault, Some(gpu), t_ms))
    {
        match &fault.kind {
            FaultKind::CallError(error) if error.field == Some(field) => return Err(error.code),
            FaultKind::BadValue(bad) if bad.field == Some(field) => return Ok(Some(bad.value)),
            _ => {}
        }
    }
    Ok(None)
}

/// Without a GPU a fault is of all of them, and of the calls that concern none.
fn concerns(fault: &Fault, gpu: Option<usize>, t_ms: i64) -> bool {
    fault.active_at(t_ms) && (fault.gpu.is_none() || fault.gpu == gpu)
}

fn names(pattern: Option<&str>, function: &str) -> bool {
    let calls = Calls {
        function: pattern.map(str::to_owned),
        call: None,
    };
    calls.names(function)
}

fn is_meant(fault: &Fault, calls: &Calls, function: &str) -> bool {
    if !calls.names(function) {
        return false;
    }
    let Some(wanted) = calls.call else {
        return true;
    };
    let mut counts = counts();
    let count = counts.entry(fault.id).or_insert(0);
    *count += 1;
    *count == wanted
}

/// Sleeps as long as the fault lasts.
fn hang(id: u64) {
    loop {
        let goes_on = scenario_regardless().is_some_and(|scenario| {
            scenario
                .faults()
                .iter()
                .any(|fault| fault.id == id && fault.active_at(tick()))
        });
        if !goes_on {
            return;
        }
        std::thread::sleep(NAP);
    }
}

/// Dies as a library dies that follows a wild pointer.
fn crash() -> ! {
    unsafe extern "C" {
        fn raise(signal: c_int) -> c_int;
    }
    loop {
        // SAFETY: takes a number. A handler may be installed, as Rust's for stack overflows; it hands the signal back
        // to the default at first, so that it kills at the second.
        unsafe { raise(SEGMENTATION_FAULT) };
    }
}
