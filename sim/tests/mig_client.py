#!/usr/bin/env python3
"""The vendor's own Python client on a simulated GPU that is cut into instances: it must find what a real one has.

Usage: LD_LIBRARY_PATH=<folder with libnvidia-ml.so.1> mig_client.py
Cuts GPU 0 into 3g.40gb and 1g.10gb by the library's own switch, and stops at the first thing that is wrong.
"""

import ctypes
import time

import pynvml as n

library = ctypes.CDLL("libnvidia-ml.so.1")
library.watchfire_sim_inject.restype = ctypes.c_int64
n.nvmlInit()
assert library.watchfire_sim_inject(b"{ gpu: 0, mig: [3g.40gb, 1g.10gb] }") > 0

gpu = n.nvmlDeviceGetHandleByIndex(0)
# Sampled values follow within a tick.
for _ in range(100):
    if n.nvmlDeviceGetMigMode(gpu)[0]:
        break
    time.sleep(0.02)
assert list(n.nvmlDeviceGetMigMode(gpu)) == [1, 1]

devices = []
for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
    try:
        devices.append(n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))
    except n.NVMLError_NotFound:
        pass
assert len(devices) == 2, devices
assert [n.nvmlDeviceGetGpuInstanceId(device) for device in devices] == [1, 7]
assert [n.nvmlDeviceGetComputeInstanceId(device) for device in devices] == [0, 0]
assert [n.nvmlDeviceGetName(device).rsplit(" ", 1)[1] for device in devices] == ["3g.40gb", "1g.10gb"]
assert [n.nvmlDeviceGetAttributes_v2(device).gpuInstanceSliceCount for device in devices] == [3, 1]

whole = {p.pid: (p.gpuInstanceId, p.usedGpuMemory) for p in n.nvmlDeviceGetComputeRunningProcesses_v3(gpu)}
parts, used = {}, 0
for device in devices:
    assert n.nvmlDeviceIsMigDeviceHandle(device)
    parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    assert n.nvmlDeviceGetUUID(parent) == n.nvmlDeviceGetUUID(gpu)
    assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(device))) == n.nvmlDeviceGetUUID(device)
    used += n.nvmlDeviceGetMemoryInfo(device, n.nvmlMemory_v2).used
    for process in n.nvmlDeviceGetComputeRunningProcesses_v3(device):
        parts[process.pid] = (process.gpuInstanceId, process.usedGpuMemory)
assert whole == parts and len(whole) == 2, (whole, parts)
assert n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2).used == used
try:
    n.nvmlDeviceGetUtilizationRates(gpu)
    raise SystemExit("utilisation is not told under MIG")
except n.NVMLError_NotSupported:
    pass
n.nvmlShutdown()
print("MIG: the vendor's client agrees")
