//! How a test or a demonstration steers the loaded library: symbols of our own.

use std::ffi::{CStr, c_char, c_int};

use super::simulator;

/// Sets the scenario's start, in milliseconds since 1970; `INT64_MIN` forgets it (the next first
/// `nvmlInit` reads `WATCHFIRE_SIM_EPOCH_MS`, or takes its own time).
#[unsafe(no_mangle)]
pub extern "C" fn watchfire_sim_set_epoch(ms: i64) {
    simulator::set_epoch(ms);
}

/// Sets the time, in milliseconds since 1970; `INT64_MIN` returns to the machine's clock.
#[unsafe(no_mangle)]
pub extern "C" fn watchfire_sim_set_time_ms(ms: i64) {
    simulator::set_time(ms);
}

/// Injects a fault from now on; returns its number, or -1 for what is no fault and says why on standard error.
///
/// # Safety
///
/// `fault` is null or a C text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn watchfire_sim_inject(fault: *const c_char) -> i64 {
    if fault.is_null() {
        return -1;
    }
    // SAFETY: the caller's promise.
    let Ok(text) = unsafe { CStr::from_ptr(fault) }.to_str() else {
        return -1;
    };
    match simulator::inject(text) {
        Ok(id) => i64::try_from(id).unwrap_or(-1),
        Err(err) => {
            eprintln!("simulated NVML: {err}");
            -1
        }
    }
}

/// Ends a fault that was injected by [`watchfire_sim_inject`].
#[unsafe(no_mangle)]
pub extern "C" fn watchfire_sim_end(fault: i64) {
    if let Ok(id) = u64::try_from(fault) {
        simulator::end(id);
    }
}

/// Names the scenario file for the next first `nvmlInit`; null returns to `WATCHFIRE_SIM_SCENARIO`
/// or the built-in one. Returns 0, or 2 for a path that is not UTF-8.
///
/// # Safety
///
/// `path` is null or a C text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn watchfire_sim_set_scenario(path: *const c_char) -> c_int {
    if path.is_null() {
        simulator::name_scenario(None);
        return 0;
    }
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(path) }.to_str() {
        Ok(path) => {
            simulator::name_scenario(Some(path.into()));
            0
        }
        Err(_) => 2,
    }
}
