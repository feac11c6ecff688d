#!/usr/bin/env python3
"""Reads every fact of a simulated server with the vendor's own Python client and prints JSON.

Usage: LD_LIBRARY_PATH=<folder with libnvidia-ml.so.1> nvml_client.py EPOCH_MS T_MS...

For each time of the scenario the printed list has one entry: the GPUs in order, each an object
of facts. A fact that the library refuses is {"error": code}, so that refusals are compared too.
Needs the package nvidia-ml-py (module pynvml), which lays out structures by itself: that is
what makes it a judge of ours.
"""

import ctypes
import json
import sys

import pynvml as n


def fact(read, *args):
    """The value of a call, or the code it was refused with."""
    try:
        value = read(*args)
    except n.NVMLError as err:
        return {"error": err.value}
    return value.decode() if isinstance(value, bytes) else value


def structure(value, names):
    """The named members of a structure."""
    if isinstance(value, dict):
        return value
    text = lambda x: x.decode() if isinstance(x, bytes) else x
    return {name: text(getattr(value, name)) for name in names}


def number(field):
    """A field value by its type."""
    if field.nvmlReturn != 0:
        return {"error": field.nvmlReturn}
    member = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}[field.valueType]
    return getattr(field.value, member)


FIELDS = {
    "memory_temp": n.NVML_FI_DEV_MEMORY_TEMP,
    "energy": n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
    "power_instant": n.NVML_FI_DEV_POWER_INSTANT,
    "thermal_ns": n.NVML_FI_DEV_PERF_POLICY_THERMAL,
    "nvlink_count": n.NVML_FI_DEV_NVLINK_LINK_COUNT,
    "remapped_unc": n.NVML_FI_DEV_REMAPPED_UNC,
    "shutdown_margin": n.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
    "pcie_tx": n.NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
    "retired_sbe": n.NVML_FI_DEV_RETIRED_SBE,
}


def field_values(device):
    ids = list(FIELDS.values()) + [(n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0xFFFFFFFF)]
    values = fact(n.nvmlDeviceGetFieldValues, device, ids)
    if isinstance(values, dict):
        return values
    return dict(zip(list(FIELDS) + ["nvlink_tx_kib"], [number(value) for value in values]))


GPM = [
    n.NVML_GPM_METRIC_GRAPHICS_UTIL,
    n.NVML_GPM_METRIC_SM_OCCUPANCY,
    n.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    n.NVML_GPM_METRIC_DRAM_BW_UTIL,
    n.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
]


def gpm(device, later):
    """Averages between now and a little later; `later` turns the clock."""
    support = fact(n.nvmlGpmQueryDeviceSupport, device)
    if isinstance(support, dict):
        return support
    if not support.isSupportedDevice:
        return None
    first, second = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
    n.nvmlGpmSampleGet(device, first)
    later()
    n.nvmlGpmSampleGet(device, second)
    request = n.c_nvmlGpmMetricsGet_t()
    request.version = n.NVML_GPM_METRICS_GET_VERSION
    request.sample1, request.sample2 = first, second
    request.numMetrics = len(GPM)
    for index, metric in enumerate(GPM):
        request.metrics[index].metricId = metric
    n.nvmlGpmMetricsGet(request)
    values = [request.metrics[index].value for index in range(len(GPM))]
    n.nvmlGpmSampleFree(first)
    n.nvmlGpmSampleFree(second)
    return values


def processes(device):
    listed = fact(n.nvmlDeviceGetComputeRunningProcesses_v3, device)
    return listed if isinstance(listed, dict) else [[p.pid, p.usedGpuMemory] for p in listed]


def process_utilization(device):
    listed = fact(n.nvmlDeviceGetProcessUtilization, device, 0)
    return listed if isinstance(listed, dict) else [[p.pid, p.smUtil, p.memUtil] for p in listed]


def facts(device):
    pci = fact(n.nvmlDeviceGetPciInfo_v3, device)
    violation = fact(n.nvmlDeviceGetViolationStatus, device, n.NVML_PERF_POLICY_THERMAL)
    return {
        "name": fact(n.nvmlDeviceGetName, device),
        "uuid": fact(n.nvmlDeviceGetUUID, device),
        "serial": fact(n.nvmlDeviceGetSerial, device),
        "minor": fact(n.nvmlDeviceGetMinorNumber, device),
        "vbios": fact(n.nvmlDeviceGetVbiosVersion, device),
        "part": fact(n.nvmlDeviceGetBoardPartNumber, device),
        "architecture": fact(n.nvmlDeviceGetArchitecture, device),
        "capability": fact(n.nvmlDeviceGetCudaComputeCapability, device),
        "pci": structure(pci, ["domain", "bus", "device", "pciDeviceId", "pciSubSystemId", "busId", "busIdLegacy"]),
        "utilization": structure(fact(n.nvmlDeviceGetUtilizationRates, device), ["gpu", "memory"]),
        "encoder": fact(n.nvmlDeviceGetEncoderUtilization, device),
        "memory": structure(
            fact(n.nvmlDeviceGetMemoryInfo, device, n.nvmlMemory_v2), ["total", "reserved", "free", "used"]
        ),
        "memory_v1": structure(fact(n.nvmlDeviceGetMemoryInfo, device), ["total", "free", "used"]),
        "bar1": structure(fact(n.nvmlDeviceGetBAR1MemoryInfo, device), ["bar1Total", "bar1Free", "bar1Used"]),
        "temperature": fact(n.nvmlDeviceGetTemperature, device, n.NVML_TEMPERATURE_GPU),
        "temperature_v": fact(n.nvmlDeviceGetTemperatureV, device, n.NVML_TEMPERATURE_GPU),
        "margin": fact(n.nvmlDeviceGetMarginTemperature, device),
        "thresholds": [fact(n.nvmlDeviceGetTemperatureThreshold, device, kind) for kind in range(4)],
        "fan": fact(n.nvmlDeviceGetFanSpeed, device),
        "clocks": [fact(n.nvmlDeviceGetClockInfo, device, kind) for kind in range(4)],
        "clocks_max": [fact(n.nvmlDeviceGetMaxClockInfo, device, kind) for kind in range(4)],
        "power": fact(n.nvmlDeviceGetPowerUsage, device),
        "limit": fact(n.nvmlDeviceGetEnforcedPowerLimit, device),
        "limit_range": fact(n.nvmlDeviceGetPowerManagementLimitConstraints, device),
        "energy": fact(n.nvmlDeviceGetTotalEnergyConsumption, device),
        "reasons": fact(n.nvmlDeviceGetCurrentClocksEventReasons, device),
        "thermal_ns": violation if isinstance(violation, dict) else violation.violationTime,
        "pstate": fact(n.nvmlDeviceGetPerformanceState, device),
        "ecc_mode": fact(n.nvmlDeviceGetEccMode, device),
        "ecc": [fact(n.nvmlDeviceGetTotalEccErrors, device, error, 0) for error in range(2)],
        "remapped": fact(n.nvmlDeviceGetRemappedRows, device),
        "retired": fact(n.nvmlDeviceGetRetiredPages, device, 0),
        "pcie": [
            fact(n.nvmlDeviceGetCurrPcieLinkGeneration, device),
            fact(n.nvmlDeviceGetCurrPcieLinkWidth, device),
            fact(n.nvmlDeviceGetMaxPcieLinkGeneration, device),
            fact(n.nvmlDeviceGetMaxPcieLinkWidth, device),
            fact(n.nvmlDeviceGetPcieReplayCounter, device),
        ],
        "pcie_kib": [fact(n.nvmlDeviceGetPcieThroughput, device, direction) for direction in range(2)],
        "nvlink": [fact(n.nvmlDeviceGetNvLinkState, device, link) for link in (0, 17, 18)],
        "mig": fact(n.nvmlDeviceGetMigMode, device),
        "persistence": fact(n.nvmlDeviceGetPersistenceMode, device),
        "compute_mode": fact(n.nvmlDeviceGetComputeMode, device),
        "processes": processes(device),
        "process_utilization": process_utilization(device),
        "fields": field_values(device),
    }


def main():
    epoch, times = int(sys.argv[1]), [int(arg) for arg in sys.argv[2:]]
    library = ctypes.CDLL("libnvidia-ml.so.1")
    turn = lambda t_ms: library.watchfire_sim_set_time_ms(ctypes.c_int64(epoch + t_ms))
    library.watchfire_sim_set_epoch(ctypes.c_int64(epoch))
    count = ctypes.c_uint(0)
    before = library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    turn(times[0])
    n.nvmlInit()
    devices = [n.nvmlDeviceGetHandleByIndex(index) for index in range(n.nvmlDeviceGetCount())]
    events = n.nvmlEventSetCreate()
    for device in devices:
        n.nvmlDeviceRegisterEvents(device, n.nvmlEventTypeXidCriticalError, events)
    result = {
        "before_init": before,
        "driver": fact(n.nvmlSystemGetDriverVersion),
        "cuda": fact(n.nvmlSystemGetCudaDriverVersion),
        "times": [],
        "events": [],
    }
    for t_ms in times:
        gpus = []
        for index, device in enumerate(devices):
            turn(t_ms)
            gpu = facts(device)
            again = fact(n.nvmlDeviceGetHandleByIndex, index)
            gpu["reopen"] = again["error"] if isinstance(again, dict) else 0
            gpu["gpm"] = gpm(device, lambda: turn(t_ms + 1000))
            gpus.append(gpu)
        turn(t_ms)
        result["times"].append(gpus)
        event = fact(n.nvmlEventSetWait_v2, events, 0)
        result["events"].append(event if isinstance(event, dict) else event.eventData)
    n.nvmlEventSetFree(events)
    n.nvmlShutdown()
    print(json.dumps(result))


main()
