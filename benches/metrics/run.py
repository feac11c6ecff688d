"""Watchfire beside Prometheus and VictoriaMetrics on the same generated GPU servers; prints figures and ratios.

usage: run.py write [HOURS] | scrape TARGETS SERIES SECONDS
Paths: --watchfire --prometheus --victoria --fleet; a peer whose path does not exist is left out.
Only loopback; everything it starts it ends; data lies in temporary folders. Only the standard library.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HZ = os.sysconf("SC_CLK_TCK")
STEP = 15

# Queries as dashboards and alerts ask them: name, expression, whether over a range.
QUERIES = [
    ("temperature", "gpu_temp_0", True),
    ("power by host", "avg by (Hostname) (gpu_power_0)", True),
    ("bytes by host", "sum by (Hostname) (rate(bytes_0_total[5m]))", True),
    ("hottest in an hour", "max_over_time(gpu_temp_0[1h])", True),
    ("mean utilisation", "avg_over_time(gpu_util_0[5m])", True),
    ("latency p95", "histogram_quantile(0.95, sum by (le) (rate(latency_0_bucket[5m])))", True),
    ("five hungriest", "topk(5, gpu_power_0)", True),
    ("cpu by gpu", "sum by (gpu) (rate(cpu_seconds_0_total[5m]))", True),
    ("idle share", "100 - avg by (Hostname) (rate(cpu_seconds_0_total[1m])) * 100", True),
    ("memory ratio", "gpu_memory_0 / on (Hostname, gpu, group) gpu_memory_0", True),
    ("hot gpus", "count(gpu_temp_0 > 60)", True),
    ("violations in an hour", "increase(violation_0_total[1h])", True),
    ("p90 of power", "quantile_over_time(0.9, gpu_power_0[1h])", True),
    ("alert: heat", "gpu_temp_0 > 85", False),
    ("alert: errors", "increase(violation_0_total[10m]) > 1e15", False),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Store:
    """A store under test: how it is started, and what it costs."""

    def __init__(self, name, binary, scrape=None):
        self.name, self.binary, self.scrape = name, binary, scrape
        self.folder = tempfile.mkdtemp(prefix=f"bench-{name}-")
        self.port = free_port()
        self.process = None

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        data, listen = os.path.join(self.folder, "data"), f"127.0.0.1:{self.port}"
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w") as file:
            file.write(self.scrape or "global: {scrape_interval: 15s}\n")
        if self.name == "watchfire":
            more = [] if self.scrape else ["--no-own-metrics"]
            return [self.binary, "hub", "--prometheus", config, "--data", data, "--listen", listen, "--no-shipped-rules",
                    "--no-result-cache"] + more
        if self.name == "prometheus":
            return [self.binary, f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address={listen}",
                    "--web.enable-remote-write-receiver", "--log.level=error"]
        return [self.binary, f"-storageDataPath={data}", f"-httpListenAddr={listen}", f"-promscrape.config={config}",
                "-retentionPeriod=12", "-loggerLevel=ERROR", "-search.disableCache", "-search.latencyOffset=0s"]

    def start(self):
        log = open(os.path.join(self.folder, "log"), "a")
        begun = time.time()
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        ready = {"victoria": "/health"}.get(self.name, "/-/ready")
        while True:
            try:
                with urllib.request.urlopen(self.base + ready, timeout=5) as answer:
                    if answer.status == 200:
                        return time.time() - begun
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended: " + open(os.path.join(self.folder, "log")).read()[-2000:])
            time.sleep(0.01)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / HZ

    def pss(self):
        for line in open(f"/proc/{self.process.pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def disk(self):
        total = 0
        for folder, _, files in os.walk(os.path.join(self.folder, "data")):
            for name in files:
                try:
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
        return total

    def query(self, expr, end, span, is_range):
        if is_range:
            step = max(60, span // 1000 // 60 * 60)
            path = "/api/v1/query_range?" + urllib.parse.urlencode(
                {"query": expr, "start": end - span, "end": end, "step": step, "nocache": 1})
        else:
            path = "/api/v1/query?" + urllib.parse.urlencode({"query": expr, "time": end, "nocache": 1})
        begun = time.time()
        with urllib.request.urlopen(self.base + path, timeout=120) as answer:
            body = answer.read()
        return time.time() - begun, body


def stores(args, scrape=None):
    paths = [("watchfire", args.watchfire), ("prometheus", args.prometheus), ("victoria", args.victoria)]
    return [Store(name, path, scrape) for name, path in paths if path and os.path.exists(path) and name in args.only]


def table(title, rows, unit, digits=2):
    """One line a store, with the ratio of ours to it."""
    ours = rows.get("watchfire")
    for name, value in rows.items():
        ratio = "" if name == "watchfire" or not ours or not value else f"   ours / it = {ours / value:.2f}"
        print(f"{title:<34} {name:<11} {value:>10.{digits}f} {unit}{ratio}", flush=True)


def write(args):
    hours = args.numbers[0] if args.numbers else 24
    count = hours * 3600 // STEP
    end = int(time.time()) // STEP * STEP - 120
    start = end - count * STEP
    cpu, disk, memory, restart = {}, {}, {}, {}
    running = stores(args)
    try:
        samples = 2 * 1707 * count
        for store in running:
            store.start()
            before = store.cpu()
            told = subprocess.run([args.fleet, "write", f"{store.base}/api/v1/write", "2", "1707", str(start), str(count)],
                                  capture_output=True, text=True)
            if told.returncode:
                print(store.name, "refused:", told.stderr[-500:])
                store.stop()
                continue
            cpu[store.name] = (store.cpu() - before) / samples * 1e6
            memory[store.name] = store.pss()
            if store.name == "victoria":
                urllib.request.urlopen(store.base + "/internal/force_flush").read()
            time.sleep(20)
            store.stop()
            store.start()
            time.sleep(20)
            disk[store.name] = store.disk() / samples
            store.stop()
            begun = time.time()
            store.start()
            store.query("gpu_temp_0", end, 3600, False)
            restart[store.name] = time.time() - begun
        print(f"{samples / 1e6:.1f} M samples, 2 servers of 1,707 series, {hours} h")
        table("remote write, CPU s / M samples", cpu, "s")
        table("PSS after writing", memory, "MiB", 1)
        table("disk, after a restart", disk, "B/sample", 3)
        table("restart to first answer", restart, "s", 3)
        for span in [s for s in (24 * 3600, 7 * 24 * 3600) if s <= hours * 3600]:
            queries(args, [s for s in running if s.process], end, span)
    finally:
        for store in running:
            store.stop()
            shutil.rmtree(store.folder, ignore_errors=True)


def queries(args, running, end, span):
    print(f"queries over {span // 3600} h, median of {args.rounds}, ms")
    logs = {}
    for name, expr, is_range in QUERIES:
        times = {store.name: [] for store in running}
        sizes = {}
        for _ in range(args.rounds):
            for store in running:
                seconds, body = store.query(expr, end, span, is_range)
                times[store.name].append(seconds * 1000)
                sizes[store.name] = sum(len(r.get("values", [1])) for r in json.loads(body)["data"]["result"])
        medians = {name: statistics.median(list_) for name, list_ in times.items()}
        cells = "  ".join(f"{n} {m:8.1f} ({sizes[n]} points)" for n, m in medians.items())
        print(f"  {name:<24} {cells}", flush=True)
        for store, median in medians.items():
            if "watchfire" in medians and store != "watchfire":
                logs.setdefault(store, []).append(medians["watchfire"] / median)
    for store, ratios in logs.items():
        mean = statistics.geometric_mean(ratios)
        print(f"  ours / {store}: geometric mean {mean:.2f}, worst {max(ratios):.2f}")


def scrape(args):
    targets, series, seconds = args.numbers
    port = free_port()
    fleet = subprocess.Popen([args.fleet, "serve", str(port), str(targets), str(series)], stdout=subprocess.PIPE, text=True)
    fleet.stdout.readline()
    names = ", ".join(f"'127.0.{1 + n // 250}.{1 + n % 250}:{port}'" for n in range(targets))
    config = ("global: {scrape_interval: 15s, scrape_timeout: 10s}\nscrape_configs:\n  - job_name: dcgm\n"
              f"    static_configs: [{{targets: [{names}]}}]\n")
    running = stores(args, config)
    try:
        for store in running:
            store.start()
        time.sleep(60)
        before = {s.name: (s.cpu(), time.time()) for s in running}
        time.sleep(seconds)
        cpu = {}
        for store in running:
            used, since = store.cpu() - before[store.name][0], time.time() - before[store.name][1]
            cpu[store.name] = used / (targets * series * since / STEP) * 1e6
        print(f"{targets} targets of {series} series, {seconds} s")
        table("scrape, CPU s / M samples", cpu, "s")
        table("PSS", {s.name: s.pss() for s in running}, "MiB", 1)
    finally:
        for store in running:
            store.stop()
            shutil.rmtree(store.folder, ignore_errors=True)
        fleet.terminate()
        fleet.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "scrape"])
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--watchfire", default="target/release/watchfire")
    parser.add_argument("--prometheus", default="target/peers/bin/prometheus")
    parser.add_argument("--victoria", default="target/peers/bin/victoria-metrics")
    parser.add_argument("--fleet", default="target/release/examples/fleet")
    parser.add_argument("--only", default="watchfire,prometheus,victoria")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    {"write": write, "scrape": scrape}[args.what](args)


main()
