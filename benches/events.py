"""Writes kernel lines to a running hub and times each until a webhook hears of it. Only the standard library."""

import http.server
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

COUNT, BINARY = int(sys.argv[1]), sys.argv[2]
# Codes that page at once (data/rules/gpu.yml, GpuXidFatal).
CODES = [46, 48, 54, 61, 62, 64, 79, 95, 110, 119, 120, 140, 143, 158, 167, 173]
heard = {}


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        now = time.time()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in body["alerts"]:
            labels = alert["labels"]
            if labels["alertname"] == "GpuXidFatal" and alert["status"] == "firing":
                heard.setdefault((labels["pci_bus_id"].lower()[-10:], labels["xid"]), now)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    folder = tempfile.TemporaryDirectory()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kmsg = os.path.join(folder.name, "kmsg")
    os.mkfifo(kmsg)
    pipe = os.open(kmsg, os.O_RDWR)
    config = os.path.join(folder.name, "watchfire.yml")
    with open(config, "w") as file:
        file.write(
            "prometheus: {global: {scrape_interval: 15s, evaluation_interval: 15s}}\n"
            "alertmanager:\n"
            "  route: {receiver: hook, group_by: ['...'], group_wait: 30s}\n"
            f"  receivers: [{{name: hook, webhook_configs: [{{url: 'http://127.0.0.1:{server.server_port}/'}}]}}]\n"
        )
    port = free_port()
    log = open(os.path.join(folder.name, "log"), "w")
    hub = subprocess.Popen(
        [BINARY, "run", "--config", config, "--data", os.path.join(folder.name, "data"), "--path.kmsg", kmsg]
        + ["--listen", f"127.0.0.1:{port}"],
        stderr=log,
    )
    try:
        base = f"http://127.0.0.1:{port}"
        wait(lambda: urllib.request.urlopen(base + "/-/ready").status == 200)
        query = base + "/api/v1/query?query=watchfire_kernel_events_total"
        wait(lambda: json.load(urllib.request.urlopen(query))["data"]["result"])
        said = {}
        for n in range(COUNT):
            time.sleep(random.uniform(1.0, 1.5))
            slot, code = f"{n // len(CODES):02x}:00", CODES[n % len(CODES)]
            uptime = float(open("/proc/uptime").read().split()[0])
            line = f"4,{n},{int(uptime * 1e6)},-;NVRM: Xid (PCI:0000:{slot}): {code}, pid=1, name=x, test\n"
            said[(f"{n // len(CODES):02x}:00", str(code))] = time.time()
            os.write(pipe, line.encode())
        time.sleep(5)
        times = []
        for (slot, code), at in said.items():
            found = [t for (address, xid), t in heard.items() if xid == code and slot in address]
            if found:
                times.append(found[0] - at)
        times.sort()
        if times:
            at = lambda share: times[min(len(times) - 1, int(len(times) * share))] * 1000
            print(f"{len(times)} of {COUNT} heard; ms: p50 {at(0.5):.0f}, p90 {at(0.9):.0f}, p99 {at(0.99):.0f}, max {times[-1] * 1000:.0f}")
        return 0 if len(times) == COUNT and times[min(COUNT - 1, int(COUNT * 0.99))] <= 1.0 else 1
    finally:
        hub.terminate()
        hub.wait()


def wait(ready, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the hub did not come up")


sys.exit(main())
