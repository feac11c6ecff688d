"""The checks of gpu_check.sh: see there."""

import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as tree

WATCHFIRE = sys.argv[1]
LOAD = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
print("ready", flush=True)
end = time.time() + 90
while time.time() < end:
    b = a @ a
torch.cuda.synchronize()
"""
passed, failed = 0, 0


def check(name, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {name}: {detail}", flush=True)


def page():
    """The samples of `collect gpu`: {(name, uuid): value} and the raw lines."""
    text = subprocess.run([WATCHFIRE, "collect", "gpu"], capture_output=True, text=True, timeout=60).stdout
    values, lines = {}, []
    for line in text.splitlines():
        match = re.match(r"([A-Za-z_:][\w:]*)\{(.*)\}\s+(\S+)", line)
        if match:
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            lines.append((match[1], labels, float(match[3])))
            if not labels.get("GPU_I_ID") and "pid" not in labels:
                values[(match[1], labels.get("UUID"))] = float(match[3])
    return values, lines


def smi():
    text = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, timeout=60).stdout
    return tree.fromstring(text).findall("gpu")


def number(gpu, *paths):
    for path in paths:
        match = re.match(r"\s*(-?\d+(?:\.\d+)?)", gpu.findtext(path) or "")
        if match:
            return float(match[1])
    return None


# Our name, where nvidia-smi has it, absolute and relative tolerance: what moves while we look has wider ones.
FIELDS = [
    ("DCGM_FI_DEV_SM_CLOCK", ["clocks/sm_clock"], 120, 0.1),
    ("DCGM_FI_DEV_MEM_CLOCK", ["clocks/mem_clock"], 10, 0.02),
    ("DCGM_FI_DEV_GPU_TEMP", ["temperature/gpu_temp"], 3, 0),
    ("DCGM_FI_DEV_MEMORY_TEMP", ["temperature/memory_temp"], 3, 0),
    ("DCGM_FI_DEV_POWER_USAGE", ["gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw",
                                 "power_readings/power_draw"], 15, 0.15),
    ("DCGM_FI_DEV_FB_USED", ["fb_memory_usage/used"], 64, 0.02),
    ("DCGM_FI_DEV_FB_FREE", ["fb_memory_usage/free"], 64, 0.02),
    ("DCGM_FI_DEV_FB_RESERVED", ["fb_memory_usage/reserved"], 8, 0.02),
    ("DCGM_FI_DEV_GPU_UTIL", ["utilization/gpu_util"], 20, 0),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", ["utilization/memory_util"], 20, 0),
    ("DCGM_FI_DEV_ENC_UTIL", ["utilization/encoder_util"], 20, 0),
    ("DCGM_FI_DEV_DEC_UTIL", ["utilization/decoder_util"], 20, 0),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", ["pci/replay_counter"], 1, 0),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", ["remapped_rows/remapped_row_corr"], 0, 0),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", ["remapped_rows/remapped_row_unc"], 0, 0),
]


def compare():
    """Each field of ours against nvidia-smi before and after: ours may lie between the two."""
    before, (ours, _), after = smi(), page(), smi()
    for first, second in zip(before, after):
        uuid = first.findtext("uuid")
        for name, paths, absolute, relative in FIELDS:
            told = [value for value in (number(first, *paths), number(second, *paths)) if value is not None]
            mine = ours.get((name, uuid))
            if not told:
                check(f"{name} of {uuid} is absent as in nvidia-smi", mine is None, f"ours {mine}")
            elif mine is None:
                check(f"{name} of {uuid}", False, f"nvidia-smi {told}, ours absent")
            else:
                room = absolute + relative * max(map(abs, told))
                check(f"{name} of {uuid}", min(told) - room <= mine <= max(told) + room, f"nvidia-smi {told}, ours {mine}")
    return [gpu.findtext("uuid") for gpu in before]


def load_comes_and_goes(uuid):
    try:
        subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], check=True,
                       capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError):
        print("SKIPPED: the load (no torch with CUDA)")
        return
    (idle, _) = page()
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    try:
        load.stdout.readline()
        time.sleep(8)
        busy, lines = page()
        own = [(name, value) for name, labels, value in lines if labels.get("pid") == str(load.pid)]
        check("the load's process is listed", own, f"no series with pid {load.pid}")
        check("its memory is told", any("memory" in name and value > 100e6 for name, value in own), str(own))
        util = busy.get(("DCGM_FI_DEV_GPU_UTIL", uuid))
        check("utilisation rises", util is None or util > 80, f"{util}")
        power = [state.get(("DCGM_FI_DEV_POWER_USAGE", uuid)) for state in (idle, busy)]
        check("power rises", None in power or power[1] > power[0] + 20, f"{power}")
        name = next((gpu.findtext("product_name") or "" for gpu in smi() if gpu.findtext("uuid") == uuid), "")
        if re.search(r"\b(H100|H200|GH200|B100|B200|GB200|B300)\b", name):
            tensor = [value for (field, _), value in busy.items() if field == "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]
            check("the tensor pipe is at work (GPM)", any(0.1 < value <= 1 for value in tensor), f"{tensor}")
    finally:
        load.kill()
        load.wait()
    time.sleep(5)
    ended, lines = page()
    check("the process is gone", not any(labels.get("pid") == str(load.pid) for _, labels, _ in lines))
    used = [state.get(("DCGM_FI_DEV_FB_USED", uuid)) for state in (idle, ended)]
    check("its memory has come back", None not in used and used[1] <= used[0] + 64, f"{used} MiB")


def xids():
    _, lines = page()
    counts = [(labels.get("xid"), value) for name, labels, value in lines if name == "watchfire_gpu_xid_errors_total"]
    check("XIDs that page stand at zero from the start", counts, "no watchfire_gpu_xid_errors_total")


def agent_stops():
    agent = subprocess.Popen([WATCHFIRE, "agent", "--listen", "127.0.0.1:0"], stderr=subprocess.DEVNULL)
    time.sleep(6)
    check("the agent runs", agent.poll() is None, f"exit code {agent.poll()}")
    begun = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    try:
        code = agent.wait(timeout=10)
        check("SIGTERM ends it in order", code == 0, f"exit code {code} after {time.monotonic() - begun:.1f} s")
    except subprocess.TimeoutExpired:
        agent.kill()
        agent.wait()
        check("SIGTERM ends it in order", False, "still running after 10 s")


uuids = compare()
check("there is a GPU", uuids)
if uuids:
    load_comes_and_goes(uuids[0])
xids()
agent_stops()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
