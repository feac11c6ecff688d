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
