//! The vendor's manners: what the library refuses, and with which code.

#![expect(clippy::unwrap_used, reason = "a test may die of surprise")]
#![expect(unsafe_code, reason = "calls the library as a C program does")]

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{self as raw, NvmlLib};
use sim::{Control, Scenario};

const EPOCH_MS: i64 = 1_796_000_000_000;
const SUCCESS: u32 = 0;
const UNINITIALIZED: u32 = 1;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const VERSION_MISMATCH: u32 = 25;

struct Library {
    raw: NvmlLib,
    control: Control,
    _folder: tempfile::TempDir,
}

/// A copy of the library with its own clock, not initialised.
fn library() -> Library {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnvidia-ml.so.1");
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libsim.so");
    std::fs::copy(built, &path).unwrap();
    let control = Control::open(&path).unwrap();
    control.set_epoch_ms(Some(EPOCH_MS));
    control.set_time_ms(Some(EPOCH_MS));
    // SAFETY: our own library, whose loading runs nothing.
    let raw = unsafe { NvmlLib::new(&path) }.unwrap();
    Library {
        raw,
        control,
        _folder: folder,
    }
}

/// Calls a function of the library.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),*)) => {{
        let function = $library.raw.$name.as_ref().unwrap();
        // SAFETY: the arguments are what the header asks for, or deliberate nulls that it allows to refuse.
        unsafe { function($($argument),*) }
    }};
}

fn device(library: &Library, index: u32) -> raw::nvmlDevice_t {
    let mut device = std::ptr::null_mut();
    assert_eq!(
        call!(library, nvmlDeviceGetHandleByIndex_v2(index, &raw mut device)),
        SUCCESS
    );
    device
}

#[test]
fn nothing_works_before_the_start_and_after_the_end() {
    let library = library();
    let mut count = 0;
    assert_eq!(call!(library, nvmlDeviceGetCount_v2(&raw mut count)), UNINITIALIZED);
    assert_eq!(call!(library, nvmlShutdown()), UNINITIALIZED);
    assert_eq!(call!(library, nvmlInit_v2()), SUCCESS);
    assert_eq!(call!(library, nvmlInit_v2()), SUCCESS);
    assert_eq!(call!(library, nvmlShutdown()), SUCCESS);
    assert_eq!(
        call!(library, nvmlDeviceGetCount_v2(&raw mut count)),
        SUCCESS,
        "one user is left"
    );
    assert_eq!(count, 8);
    assert_eq!(call!(library, nvmlShutdown()), SUCCESS);
    assert_eq!(call!(library, nvmlDeviceGetCount_v2(&raw mut count)), UNINITIALIZED);
}

#[test]
fn a_code_has_words_at_any_time() {
    let library = library();
    let words = call!(library, nvmlErrorString(15));
    // SAFETY: the library gives a C text that lives as long as it is loaded.
    assert_eq!(unsafe { std::ffi::CStr::from_ptr(words) }, c"GPU is lost");
}

#[test]
fn bad_pointers_and_handles_are_refused() {
    let library = library();
    call!(library, nvmlInit_v2());
    let gpu = device(&library, 0);
    let (mut value, mut stray) = (0, 0_u8);
    let stray: raw::nvmlDevice_t = (&raw mut stray).cast();
    assert_eq!(
        call!(library, nvmlDeviceGetPowerUsage(gpu, std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetPowerUsage(std::ptr::null_mut(), &raw mut value)),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetPowerUsage(stray, &raw mut value)),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetCount_v2(std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetTemperature(gpu, 9, &raw mut value)),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetFieldValues(gpu, 0, std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetFieldValues(gpu, 3, std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
    assert_eq!(
        call!(library, nvmlDeviceGetFieldValues(gpu, -1, std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
}

#[test]
fn a_text_needs_room_for_its_end() {
    let library = library();
    call!(library, nvmlInit_v2());
    let gpu = device(&library, 0);
    let mut room: [c_char; 41] = [0x55; 41];
    assert_eq!(
        call!(library, nvmlDeviceGetUUID(gpu, room.as_mut_ptr(), 40)),
        INSUFFICIENT_SIZE,
        "40 characters"
    );
    assert_eq!(room[0], 0x55, "nothing is written where there is no room");
    assert_eq!(call!(library, nvmlDeviceGetUUID(gpu, room.as_mut_ptr(), 41)), SUCCESS);
    assert_eq!(room[40], 0);
    assert_eq!(
        call!(library, nvmlDeviceGetUUID(gpu, std::ptr::null_mut(), 41)),
        INVALID_ARGUMENT
    );
}

#[test]
fn a_list_says_how_long_it_is() {
    let library = library();
    call!(library, nvmlInit_v2());
    let gpu = device(&library, 0);
    let mut count: c_uint = 0;
    let none = std::ptr::null_mut();
    assert_eq!(
        call!(
            library,
            nvmlDeviceGetComputeRunningProcesses_v3(gpu, &raw mut count, none)
        ),
        INSUFFICIENT_SIZE
    );
    assert_eq!(count, 1);
    let mut info = raw::nvmlProcessInfo_t {
        pid: 0,
        usedGpuMemory: 0,
        gpuInstanceId: 0,
        computeInstanceId: 0,
    };
    let code = call!(
        library,
        nvmlDeviceGetComputeRunningProcesses_v3(gpu, &raw mut count, &raw mut info)
    );
    assert_eq!((code, info.pid, info.gpuInstanceId), (SUCCESS, 31_544, u32::MAX));
    let mut samples: c_uint = 0;
    let code = call!(
        library,
        nvmlDeviceGetProcessUtilization(gpu, std::ptr::null_mut(), &raw mut samples, 0)
    );
    assert_eq!((code, samples), (INSUFFICIENT_SIZE, 1));
    library.control.set_time_ms(Some(EPOCH_MS - 6 * 3_600_000));
    count = 0;
    let code = call!(
        library,
        nvmlDeviceGetComputeRunningProcesses_v3(gpu, &raw mut count, none)
    );
    assert_eq!((code, count), (SUCCESS, 0), "an empty list needs no room");
}

#[test]
fn a_structure_must_carry_its_version() {
    let library = library();
    call!(library, nvmlInit_v2());
    let gpu = device(&library, 0);
    let mut memory = raw::nvmlMemory_v2_t {
        version: 0,
        total: 0,
        reserved: 0,
        free: 0,
        used: 0,
    };
    assert_eq!(
        call!(library, nvmlDeviceGetMemoryInfo_v2(gpu, &raw mut memory)),
        VERSION_MISMATCH
    );
    memory.version = 0x0200_0028;
    assert_eq!(
        call!(library, nvmlDeviceGetMemoryInfo_v2(gpu, &raw mut memory)),
        SUCCESS
    );
    assert_eq!(memory.total, memory.reserved + memory.free + memory.used);
    let mut support = raw::nvmlGpmSupport_t {
        version: 2,
        isSupportedDevice: 0,
    };
    assert_eq!(
        call!(library, nvmlGpmQueryDeviceSupport(gpu, &raw mut support)),
        VERSION_MISMATCH
    );
}

#[test]
fn a_gpu_is_found_by_each_of_its_names() {
    let library = library();
    call!(library, nvmlInit_v2());
    let scenario = Scenario::parse(Scenario::DEFAULT).unwrap();
    let uuid = std::ffi::CString::new(scenario.boards()[3].uuid.clone()).unwrap();
    let mut found = std::ptr::null_mut();
    assert_eq!(
        call!(library, nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &raw mut found)),
        SUCCESS
    );
    assert_eq!(found, device(&library, 3));
    for address in [c"0000:61:00.0", c"00000000:61:00.0", c"61:00.0"] {
        found = std::ptr::null_mut();
        assert_eq!(
            call!(
                library,
                nvmlDeviceGetHandleByPciBusId_v2(address.as_ptr(), &raw mut found)
            ),
            SUCCESS
        );
        assert_eq!(found, device(&library, 3), "{address:?}");
    }
    assert_eq!(
        call!(library, nvmlDeviceGetHandleByUUID(c"GPU-none".as_ptr(), &raw mut found)),
        NOT_FOUND
    );
    assert_eq!(
        call!(library, nvmlDeviceGetHandleByIndex_v2(8, &raw mut found)),
        INVALID_ARGUMENT
    );
}

#[test]
fn freed_sets_and_samples_are_refused() {
    let library = library();
    call!(library, nvmlInit_v2());
    let gpu = device(&library, 0);
    let (mut set, mut sample) = (std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!(call!(library, nvmlEventSetCreate(&raw mut set)), SUCCESS);
    assert_eq!(call!(library, nvmlEventSetFree(set)), SUCCESS);
    assert_eq!(call!(library, nvmlEventSetFree(set)), INVALID_ARGUMENT);
    assert_eq!(call!(library, nvmlDeviceRegisterEvents(gpu, 8, set)), INVALID_ARGUMENT);
    assert_eq!(call!(library, nvmlGpmSampleAlloc(&raw mut sample)), SUCCESS);
    assert_eq!(call!(library, nvmlGpmSampleGet(gpu, sample)), SUCCESS);
    assert_eq!(call!(library, nvmlGpmSampleFree(sample)), SUCCESS);
    assert_eq!(call!(library, nvmlGpmSampleGet(gpu, sample)), INVALID_ARGUMENT);
}

#[test]
fn threads_may_call_at_once() {
    let library = library();
    call!(library, nvmlInit_v2());
    let want = Scenario::parse(Scenario::DEFAULT).unwrap();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let (library, want) = (&library, &want);
            scope.spawn(move || {
                let gpu = device(library, index);
                let power = want.state(index as usize, 0).power_mw;
                for _ in 0..500 {
                    let mut milliwatts = 0;
                    assert_eq!(
                        call!(library, nvmlDeviceGetPowerUsage(gpu, &raw mut milliwatts)),
                        SUCCESS
                    );
                    assert_eq!(milliwatts, power);
                }
            });
        }
    });
}
