// One host: processor, memory, disks, network, pressure, kills, and the GPUs in it.

import { createMemo, For, type JSX, Show } from "solid-js";
import { AlertCard } from "../alert_card";
import { type InstantSample, type Labels, numberOf, query } from "../api";
import { severityOf } from "../condition";
import { firing, gpus, targetPoll } from "../fleet";
import { Icon } from "../icons";
import { identify } from "../identity";
import { countedEvents, startsOf } from "../events";
import { EventList } from "../event_list";
import { watchInterval } from "../interval";
import { gauge, hostOf, onHost, rateWindow, together } from "../metrics";
import { Panel } from "../panel";
import { poll } from "../poll";
import { RangeBar } from "../rangebar";
import { gpuPath, withRange } from "../router";
import { second, type Window } from "../time";
import { ABSENT, plural, type Unit } from "../units";
import { ConditionTag, SimulatedBadge, Value } from "../value";

const REFRESH_MS = 5000;
const ALERTS_SHOWN = 4;
const FILESYSTEMS = 'fstype!~"tmpfs|ramfs|overlay|squashfs|devtmpfs|fuse.*|autofs|nsfs"';
const DISKS = 'device!~"(loop|ram|zram|fd|sr|dm-)[0-9-]*.*"';
const NICS = 'device!~"lo|veth.*|docker.*|br-.*|cni.*|cali.*|flannel.*|virbr.*"';

export function HostPage(props: { host: string }): JSX.Element {
  const here = onHost(props.host);
  const of = (metric: string, more = ""): string => `${metric}{${here}${more ? `,${more}` : ""}}`;
  const rateOf = (metric: string, more = "") => (window: Window): string => `rate(${of(metric, more)}[${rateWindow(window.step)}s])`;
  const identity = identify(`{${here},__name__=~"up|node_.*|watchfire_.*"}`);
  const mine = createMemo(() => gpus().filter((gpu) => gpu.host === props.host));
  const alerts = createMemo(() => firing().filter((alert) => hostOf(alert.labels) === props.host));
  const targets = createMemo(() => (targetPoll.current()?.activeTargets ?? []).filter((target) => hostOf(target.labels) === props.host));

  watchInterval(() => props.host, of("node_load1"));
  const events = countedEvents([
    { expr: `sum by (gpu, xid) (${of("watchfire_gpu_xid_errors_total")})`, name: (labels) => `XID ${labels["xid"] ?? "?"} on GPU ${labels["gpu"] ?? "?"}`, code: "xid" },
    { expr: `sum by (process) (${of("watchfire_oom_kills_total")})`, name: (labels) => `OOM kill of ${labels["process"] || "a process"}` },
    // The kernel's own count, where its messages are not read.
    { expr: `max(${of("node_vmstat_oom_kill")}) unless on () sum(${of("watchfire_oom_kills_total")})`, name: () => "OOM kill" },
  ]);
  const marks = createMemo(() => [...events.marks(), ...startsOf(alerts().filter((alert) => severityOf(alert.labels) === "critical"))]);

  const now = poll((signal) => query(together({
    cpu: `100 * (1 - avg(rate(${of("node_cpu_seconds_total", 'mode="idle"')}[2m])))`,
    cores: `count(${of("node_cpu_seconds_total", 'mode="idle"')})`,
    memory_used: `max(${of("node_memory_MemTotal_bytes")}) - max(${of("node_memory_MemAvailable_bytes")})`,
    memory: `max(${of("node_memory_MemTotal_bytes")})`,
    load: `max(${of("node_load1")})`,
    boot: `max(${of("node_boot_time_seconds")})`,
    oom: `max(${of("node_vmstat_oom_kill")})`,
  }), signal), REFRESH_MS);
  const uname = poll((signal) => query(of("node_uname_info"), signal), 60_000);
  const collectors = poll((signal) => query(`${of("watchfire_collector_state")} == 1 or on (instance, collector) ${of("watchfire_collector_up")}`, signal), REFRESH_MS * 2);
  const filesystems = poll((signal) => query(together({
    size: `max by (mountpoint, device, fstype) (${of("node_filesystem_size_bytes", FILESYSTEMS)})`,
    avail: `max by (mountpoint, device, fstype) (${of("node_filesystem_avail_bytes", FILESYSTEMS)})`,
  }), signal), REFRESH_MS * 6);
  const reading = (key: string): number | undefined => find(now.current(), key);
  const uptime = (): number | undefined => { const boot = reading("boot"); return boot === undefined ? undefined : second() - boot; };
  const kernel = (name: string): string | undefined => uname.data()?.[0]?.metric[name];

  const absent = (metric: string, reason = "The node collector does not export it on this host.") => (): string =>
    !identity.known() ? "" : identity.has(metric) ? `${metric} has samples, but none in this range.` : `${metric} is absent. ${reason}`;

  return (
    <>
      <div class="title">
        <div>
          <p class="crumbs"><a href={withRange("/")}>Fleet</a></p>
          <h1>{props.host} <HostState targets={targets()} /> <Show when={identity.simulated() || mine().some((gpu) => gpu.simulated)}><SimulatedBadge /></Show></h1>
        </div>
        <RangeBar />
      </div>

      <section class="strip" aria-label="State">
        <dl class="readings">
          <Now name="CPU" of={reading("cpu")} unit="percent" />
          <Now name="cores" of={reading("cores")} unit="count" />
          <Now name="memory used" of={reading("memory_used")} unit="bytes" />
          <Now name="memory" of={reading("memory")} unit="bytes" />
          <Now name="load, 1 min" of={reading("load")} unit="load" />
          <Now name="up for" of={uptime()} unit="seconds" />
          <Now name="OOM kills since boot" of={reading("oom")} unit="count" />
        </dl>
        <dl class="facts">
          <div><dt>kernel</dt><dd>{kernel("release") ?? ABSENT}</dd></div>
          <div><dt>machine</dt><dd>{kernel("machine") ?? ABSENT}</dd></div>
          <div><dt>targets</dt><dd>{targets().length ? targets().map((target) => `${target.labels["job"]}: ${target.health}`).join(", ") : ABSENT}</dd></div>
        </dl>
        <Collectors samples={collectors.current()} />
      </section>

      <Show when={alerts().length > 0}>
        <section class="stack" aria-label="Alerts of this host">
          <For each={alerts().slice(0, ALERTS_SHOWN)}>{(alert) => <AlertCard alert={alert} brief={alerts().length > 2} />}</For>
          <Show when={alerts().length > ALERTS_SHOWN}><a href={withRange("/alerts")}>{alerts().length - ALERTS_SHOWN} more on the alerts page</a></Show>
        </section>
      </Show>

      <section aria-label="GPUs of this host">
        <header class="bar"><h2>{plural(mine().length, "GPU")}</h2></header>
        <Show when={mine().length > 0} fallback={<p class="quiet">No GPU series of this host in the last 24 hours.</p>}>
          <div class="gpu-links">
            <For each={mine()}>{(gpu) => <a class="gpu-link" href={withRange(gpuPath(gpu.uuid))} title={gpu.reason}><span>GPU {gpu.index}</span><ConditionTag of={gpu.condition} /></a>}</For>
          </div>
        </Show>
      </section>

      <EventList title="XID errors and OOM kills" of={events} unknown="no such counter of this host is stored in this range." />

      <div class="panels">
        <Panel title="CPU by mode" unit="percent" marks={marks()} kind="stack" min={0} max={100} folded="average" absent={absent("node_cpu_seconds_total")}
          queries={[{ expr: (window) => `100 * sum by (mode) (${rateOf("node_cpu_seconds_total", 'mode!="idle"')(window)}) / scalar(count(${of("node_cpu_seconds_total", 'mode="idle"')}))`, legend: (labels) => labels["mode"] ?? "" }]} />
        <Panel title="Memory" unit="bytes" marks={marks()} min={0} folded="average" absent={absent("node_memory_MemTotal_bytes")}
          queries={[
            { expr: (window) => `max(${gauge(of("node_memory_MemTotal_bytes"))(window)}) - max(${gauge(of("node_memory_MemAvailable_bytes"))(window)})`, legend: "used" },
            { expr: (window) => `max(${gauge(of("node_memory_Cached_bytes"))(window)})`, legend: "page cache" },
            { expr: (window) => `max(${gauge(of("node_memory_SwapTotal_bytes"))(window)}) - max(${gauge(of("node_memory_SwapFree_bytes"))(window)})`, legend: "swap used" },
            { expr: (window) => `max(${gauge(of("node_memory_MemTotal_bytes"), "last")(window)})`, legend: "total", limit: true },
          ]} />
        <Panel title="Load" unit="load" marks={marks()} min={0} folded="highest" absent={absent("node_load1")}
          queries={[
            { expr: gauge(of("node_load1"), "max"), legend: "1 min" },
            { expr: gauge(of("node_load5"), "max"), legend: "5 min" },
            { expr: gauge(of("node_load15"), "max"), legend: "15 min" },
            { expr: (window) => `count(${gauge(of("node_cpu_seconds_total", 'mode="idle"'), "last")(window)})`, legend: "cores", limit: true },
          ]} />
        <Panel title="Pressure: time tasks waited" unit="percent" marks={marks()} min={0} folded="average" absent={absent("node_pressure_cpu_waiting_seconds_total", "The kernel has no pressure accounting (PSI), or it is off.")}
          queries={[
            { expr: rateOf("node_pressure_cpu_waiting_seconds_total"), legend: "CPU", scale: 100 },
            { expr: rateOf("node_pressure_memory_waiting_seconds_total"), legend: "memory", scale: 100 },
            { expr: rateOf("node_pressure_io_waiting_seconds_total"), legend: "I/O", scale: 100 },
          ]} />
        <Panel title="Disk throughput" unit="bytes_per_second" marks={marks()} min={0} folded="average" absent={absent("node_disk_read_bytes_total", "No disk is seen, as in many containers.")}
          queries={[
            { expr: rateOf("node_disk_read_bytes_total", DISKS), legend: (labels) => `${labels["device"]} read` },
            { expr: rateOf("node_disk_written_bytes_total", DISKS), legend: (labels) => `${labels["device"]} written` },
          ]} />
        <Panel title="Disk busy" unit="percent" marks={marks()} min={0} max={100} folded="average" absent={absent("node_disk_io_time_seconds_total", "No disk is seen, as in many containers.")}
          queries={[{ expr: (window) => `clamp_max(${rateOf("node_disk_io_time_seconds_total", DISKS)(window)}, 1)`, legend: (labels) => labels["device"] ?? "", scale: 100 }]} />
        <Panel title="Network" unit="bytes_per_second" marks={marks()} min={0} folded="average" absent={absent("node_network_receive_bytes_total")}
          queries={[
            { expr: rateOf("node_network_receive_bytes_total", NICS), legend: (labels) => `${labels["device"]} received` },
            { expr: rateOf("node_network_transmit_bytes_total", NICS), legend: (labels) => `${labels["device"]} sent` },
          ]} />
        <Panel title="Network errors and drops" unit="per_second" marks={marks()} min={0} folded="average" absent={absent("node_network_receive_errs_total")}
          queries={[
            { expr: rateOf("node_network_receive_errs_total", NICS), legend: (labels) => `${labels["device"]} receive errors` },
            { expr: rateOf("node_network_transmit_errs_total", NICS), legend: (labels) => `${labels["device"]} send errors` },
            { expr: rateOf("node_network_receive_drop_total", NICS), legend: (labels) => `${labels["device"]} drops` },
          ]} />
        <Panel title="Filesystems, used" unit="percent" marks={marks()} min={0} max={100} folded="highest" absent={absent("node_filesystem_size_bytes")}
          queries={[{ expr: (window) => `100 * (1 - max by (mountpoint) (${gauge(of("node_filesystem_avail_bytes", FILESYSTEMS), "min")(window)}) / max by (mountpoint) (${gauge(of("node_filesystem_size_bytes", FILESYSTEMS), "last")(window)}))`, legend: (labels) => labels["mountpoint"] ?? "" }]} />
        <Panel title="OOM kills" unit="count" marks={marks()} min={0} folded="count" absent={absent("node_vmstat_oom_kill", "The kernel does not count them.")}
          queries={[
            { expr: ({ step }) => `round(increase(${of("node_vmstat_oom_kill")}[${rateWindow(step)}s]))`, legend: "all kills" },
            { expr: ({ step }) => `round(sum by (process) (increase(${of("watchfire_oom_kills_total")}[${rateWindow(step)}s])))`, legend: (labels) => labels["process"] || "unnamed" },
          ]} />
      </div>
      <Filesystems samples={filesystems.data()} />
    </>
  );
}

function find(samples: InstantSample[] | undefined, key: string): number | undefined {
  const text = samples?.find(({ metric }) => metric["m"] === key)?.value[1];
  return text === undefined ? undefined : numberOf(text);
}

function Now(props: { name: string; of: number | undefined; unit: Unit }): JSX.Element {
  return <div><dt>{props.name}</dt><dd><Value of={props.of} unit={props.unit} why="no node metrics of this host" /></dd></div>;
}

function HostState(props: { targets: { health: string }[] }): JSX.Element {
  const down = (): number => props.targets.filter((target) => target.health === "down").length;
  const state = (): { condition: "healthy" | "warm" | "lost" | "unknown"; text: string } =>
    props.targets.length === 0 ? { condition: "unknown", text: "unknown" }
    : down() === 0 ? { condition: "healthy", text: "up" }
    : down() === props.targets.length ? { condition: "lost", text: "down" }
    : { condition: "warm", text: `${down()} of ${props.targets.length} targets down` };
  return <span class="tag" data-condition={state().condition}><Icon of={state().condition} />{state().text}</span>;
}

const NOT_HERE = new Set(["absent", "disabled"]);

/** How it stands with the agent's sources there; those that fail first. What this machine does not have is no failure. */
function Collectors(props: { samples: InstantSample[] | undefined }): JSX.Element {
  const sorted = createMemo(() => {
    const rank = { faulty: 0, healthy: 1, unknown: 2 };
    return (props.samples ?? [])
      .map(({ metric, value }) => {
        const state = metric["state"] ?? (value[1] === "1" ? "present" : "failed");
        const condition = state === "present" ? "healthy" as const : NOT_HERE.has(state) ? "unknown" as const : "faulty" as const;
        return { name: metric["collector"] ?? "?", state, condition };
      })
      .sort((left, right) => rank[left.condition] - rank[right.condition] || left.name.localeCompare(right.name));
  });
  return (
    <div class="collectors">
      <span class="quiet">collectors</span>
      <Show when={sorted().length > 0} fallback={<span class="absent" title="no watchfire_collector_state of this host: another exporter, or no agent">{ABSENT}</span>}>
        <For each={sorted()}>
          {({ name, state, condition }) => (
            <span class="tag" data-condition={condition}>
              <Show when={condition !== "unknown"}><Icon of={condition} /></Show>{name}{state === "present" ? "" : ` ${state}`}
            </span>
          )}
        </For>
      </Show>
    </div>
  );
}

function Filesystems(props: { samples: InstantSample[] | undefined }): JSX.Element {
  const rows = createMemo(() => {
    const found = new Map<string, { labels: Labels; size?: number; avail?: number }>();
    for (const { metric, value } of props.samples ?? []) {
      const key = `${metric["mountpoint"]}`;
      const row = found.get(key) ?? { labels: metric };
      if (metric["m"] === "size") row.size = numberOf(value[1]);
      if (metric["m"] === "avail") row.avail = numberOf(value[1]);
      found.set(key, row);
    }
    return [...found.values()].sort((left, right) => share(right) - share(left));
  });
  const share = (row: { size?: number; avail?: number }): number => (row.size && row.avail !== undefined ? 100 * (1 - row.avail / row.size) : -1);
  return (
    <Show when={rows().length > 0}>
      <section aria-label="Filesystems">
        <header class="bar"><h2>Filesystems</h2></header>
        <div class="scroll"><table>
          <thead><tr><th>mounted at</th><th>device</th><th>type</th><th class="number">size</th><th class="number">free</th><th class="number">used</th></tr></thead>
          <tbody>
            <For each={rows()}>
              {(row) => <tr><th scope="row">{row.labels["mountpoint"]}</th><td>{row.labels["device"]}</td><td>{row.labels["fstype"]}</td><td class="number"><Value of={row.size} unit="bytes" /></td><td class="number"><Value of={row.avail} unit="bytes" /></td><td class="number"><Value of={share(row) < 0 ? undefined : share(row)} unit="percent" /></td></tr>}
            </For>
          </tbody>
        </table></div>
      </section>
    </Show>
  );
}

