//! The structures have the sizes and versions of the vendor's header on 64-bit Linux.
//!
//! The numbers are the header's: its `sizeof` as the C compiler gives it, and the `nvmlXxx_v*` version constants made
//! of it. A binding that is laid out otherwise would write beyond what we hand over.

use nvml_wrapper_sys::bindings as raw;

use crate::device::memory::structure_version;

#[track_caller]
fn check<T>(size: usize) {
    assert_eq!(size_of::<T>(), size, "{}", std::any::type_name::<T>());
}

#[test]
fn structures_have_the_headers_sizes() {
    check::<raw::nvmlPciInfo_t>(68);
    check::<raw::nvmlPciInfoExt_t>(64);
    check::<raw::nvmlUtilization_t>(8);
    check::<raw::nvmlMemory_t>(24);
    check::<raw::nvmlMemory_v2_t>(40);
    check::<raw::nvmlBAR1Memory_t>(24);
    check::<raw::nvmlProcessInfo_v1_t>(16);
    check::<raw::nvmlProcessInfo_v2_t>(24);
    check::<raw::nvmlProcessInfo_t>(24);
    check::<raw::nvmlProcessDetail_v1_t>(32);
    check::<raw::nvmlProcessUtilizationSample_t>(32);
    check::<raw::nvmlProcessUtilizationInfo_v1_t>(40);
    check::<raw::nvmlDeviceAttributes_t>(40);
    check::<raw::nvmlRowRemapperHistogramValues_t>(20);
    check::<raw::nvmlViolationTime_t>(16);
    check::<raw::nvmlValue_t>(8);
    check::<raw::nvmlFieldValue_t>(40);
    check::<raw::nvmlEventData_t>(32);
    check::<raw::nvmlAccountingStats_t>(56);
    check::<raw::nvmlEccErrorCounts_t>(32);
    check::<raw::nvmlEccSramErrorStatus_t>(104);
    check::<raw::nvmlMarginTemperature_t>(8);
    check::<raw::nvmlTemperature_t>(12);
    check::<raw::nvmlFanSpeedInfo_t>(12);
    check::<raw::nvmlGpuFabricInfo_t>(28);
    check::<raw::nvmlGpuFabricInfo_v2_t>(36);
    check::<raw::nvmlGpuFabricInfo_v3_t>(40);
    check::<raw::nvmlC2cModeInfo_v1_t>(4);
    check::<raw::nvmlConfComputeSystemState_t>(12);
    check::<raw::nvmlSystemConfComputeSettings_t>(20);
    check::<raw::nvmlConfComputeMemSizeInfo_t>(16);
    check::<raw::nvmlGpmSupport_t>(8);
    check::<raw::nvmlGpmMetric_t>(40);
    check::<raw::nvmlGpmMetricsGet_t>(24 + 210 * 40);
}

#[test]
fn versions_are_those_of_the_header() {
    assert_eq!(structure_version::<raw::nvmlMemory_v2_t>(2), 0x0200_0028);
    assert_eq!(structure_version::<raw::nvmlMarginTemperature_v1_t>(1), 0x0100_0008);
    assert_eq!(structure_version::<raw::nvmlFanSpeedInfo_v1_t>(1), 0x0100_000c);
    assert_eq!(structure_version::<raw::nvmlGpuFabricInfo_v2_t>(2), 0x0200_0024);
    assert_eq!(structure_version::<raw::nvmlGpuFabricInfo_v3_t>(3), 0x0300_0028);
    assert_eq!(structure_version::<raw::nvmlEccSramErrorStatus_v1_t>(1), 0x0100_0068);
    assert_eq!(
        structure_version::<raw::nvmlSystemConfComputeSettings_v1_t>(1),
        0x0100_0014
    );
}

#[test]
fn members_stand_where_the_header_puts_them() {
    assert_eq!(std::mem::offset_of!(raw::nvmlProcessInfo_v2_t, usedGpuMemory), 8);
    assert_eq!(std::mem::offset_of!(raw::nvmlProcessInfo_v2_t, gpuInstanceId), 16);
    assert_eq!(std::mem::offset_of!(raw::nvmlFieldValue_t, valueType), 24);
    assert_eq!(std::mem::offset_of!(raw::nvmlFieldValue_t, value), 32);
    assert_eq!(std::mem::offset_of!(raw::nvmlEventData_t, eventData), 16);
    assert_eq!(std::mem::offset_of!(raw::nvmlGpuFabricInfo_v3_t, healthMask), 32);
    assert_eq!(std::mem::offset_of!(raw::nvmlDeviceAttributes_t, memorySizeMB), 32);
    assert_eq!(std::mem::offset_of!(raw::nvmlGpmMetricsGet_t, metrics), 24);
}
