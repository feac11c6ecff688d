// One GPU: what state it is in, what to do, and the lines that tell why the run died.

import { createMemo, For, type JSX, Show } from "solid-js";
import { AlertCard } from "../alert_card";
import { query } from "../api";
import { gpuOf, gpuPoll, lastSeen } from "../fleet";
import { identify } from "../identity";
import { countedEvents, startsOf } from "../events";
import { EventList } from "../event_list";
import { watchInterval } from "../interval";
import { gauge, hostOf, quote, rate, together } from "../metrics";
import { Panel } from "../panel";
import { poll } from "../poll";
import { RangeBar } from "../rangebar";
import { hostPath, withRange } from "../router";
import { lanesOf, withoutIdleLines } from "../throttle";
import { ABSENT, type Unit } from "../units";
import { Ago, ConditionTag, SimulatedBadge, Value } from "../value";

const REFRESH_MS = 5000;

export function GpuPage(props: { uuid: string }): JSX.Element {
  const of = (metric: string): string => `${metric}{UUID=${quote(props.uuid)}}`;
  const identity = identify(`{UUID=${quote(props.uuid)}}`);
  const gpu = createMemo(() => gpuOf(props.uuid));
  const host = (): string => gpu()?.host || hostOf({ instance: identity.label("instance") ?? "" });
  watchInterval(host, of("DCGM_FI_DEV_GPU_TEMP"));
  const events = countedEvents([{ expr: `sum by (xid) (${of("watchfire_gpu_xid_errors_total")})`, name: (labels) => `XID ${labels["xid"] ?? "?"}`, code: "xid" }]);
  const marks = createMemo(() => [...events.marks(), ...startsOf(gpu()?.alerts ?? [])]);
  const now = poll((signal) => query(together(Object.fromEntries(NOW.map(({ key, expr }) => [key, `max by (UUID) (${expr(of)})`]))), signal), REFRESH_MS);
  const reading = (key: string): number | undefined => {
    const current = gpu();
    if (current?.stale) return undefined;
    const text = now.data()?.find(({ metric }) => metric["m"] === key)?.value[1];
    return text === undefined || !Number.isFinite(Number(text)) ? undefined : Number(text);
  };

  /** Why a panel is empty: no such series at all, or none in this range. */
  const absent = (metrics: string[], reason: string) => (): string => {
    if (!identity.known()) return "";
    if (metrics.some(identity.has)) return `${metrics.find(identity.has)} has samples, but none in this range.`;
    return `${metrics[0]} is not exported by this GPU. ${reason}`;
  };
  const unknown = (): boolean => identity.known() && gpuPoll.data() !== undefined && !gpu() && !identity.label("UUID");

  return (
    <Show when={!unknown()} fallback={<div class="note"><strong>No GPU {props.uuid}</strong><span>Nothing of it was stored in the last 24 hours or in this range. <a href="/">The fleet</a> shows what is known.</span></div>}>
      <div class="title">
        <div>
          <p class="crumbs"><a href={withRange("/")}>Fleet</a> / <a href={withRange(hostPath(host()))}>{host() || ABSENT}</a></p>
          <h1>GPU {gpu()?.index ?? identity.label("gpu") ?? ""} <Show when={gpu()}>{(known) => <ConditionTag of={known().condition} />}</Show> <Show when={gpu()?.simulated || identity.simulated()}><SimulatedBadge /></Show></h1>
        </div>
        <RangeBar />
      </div>

      <section class="strip" aria-label="State">
        <Show when={gpu()?.condition !== "healthy" && gpu()?.reason}>
          <p class="reason"><strong>{gpu()?.condition}:</strong> {gpu()?.reason}</p>
        </Show>
        <dl class="readings">
          <For each={NOW.filter(({ unit }) => unit)}>
            {({ key, name, unit }) => <div><dt>{name}</dt><dd><Value of={reading(key)} unit={unit as Unit} why={gpu()?.stale ? "no fresh data" : "not exported by this GPU"} /></dd></div>}
          </For>
        </dl>
        <dl class="facts">
          <Fact name="model" value={gpu()?.model || identity.label("modelName")} />
          <Fact name="PCI slot" value={gpu()?.pci || identity.label("pci_bus_id")} />
          <Fact name="driver" value={gpu()?.driver || identity.label("DCGM_FI_DRIVER_VERSION")} />
          <Fact name="host" value={host()} />
          <Fact name="UUID" value={props.uuid} />
          <div><dt>last sample</dt><dd><LastSample uuid={props.uuid} /></dd></div>
        </dl>
      </section>

      <Show when={gpu()?.alerts.length}>
        <section class="stack" aria-label="Alerts of this GPU">
          <For each={gpu()?.alerts}>{(alert) => <AlertCard alert={alert} />}</For>
        </section>
      </Show>

      <EventList title="XID errors" of={events} unknown="no XID counter of this GPU is stored in this range." />

      <div class="panels">
        <Panel title="Utilisation" unit="percent" min={0} max={100} folded="average" marks={marks()}
          absent={absent(["DCGM_FI_DEV_GPU_UTIL"], "Under MIG the driver gives no utilisation of the whole GPU.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_GPU_UTIL")), legend: "GPU" },
            { expr: gauge(of("DCGM_FI_DEV_MEM_COPY_UTIL")), legend: "memory copy" },
            { expr: gauge(of("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")), legend: "tensor cores", scale: 100 },
            { expr: gauge(of("DCGM_FI_PROF_DRAM_ACTIVE")), legend: "DRAM active", scale: 100 },
          ]} />
        <Panel title="Memory" unit="mebibytes" min={0} folded="highest" marks={marks()}
          absent={absent(["DCGM_FI_DEV_FB_USED"], "The driver did not give it.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_FB_USED"), "max"), legend: "used" },
{ expr: (window) => memoryTotal((metric) => gauge(of(metric), "last")(window)), legend: "total", limit: true },
          ]} />
        <Panel title="Temperature" unit="celsius" folded="highest" marks={marks()}
          absent={absent(["DCGM_FI_DEV_GPU_TEMP"], "The driver did not give it.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_GPU_TEMP"), "max"), legend: "GPU" },
            { expr: gauge(of("DCGM_FI_DEV_MEMORY_TEMP"), "max"), legend: "memory" },
            { expr: gauge(of("DCGM_FI_DEV_SLOWDOWN_TEMP"), "last"), legend: "slowdown", limit: true },
            { expr: gauge(of("DCGM_FI_DEV_SHUTDOWN_TEMP"), "last"), legend: "shutdown", limit: true },
          ]} />
        <Panel title="Power" unit="watts" min={0} folded="highest" marks={marks()}
          absent={absent(["DCGM_FI_DEV_POWER_USAGE"], "Some boards have no power sensor.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_POWER_USAGE"), "max"), legend: "board" },
            { expr: gauge(of("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), "last"), legend: "limit in force", limit: true },
            { expr: gauge(of("DCGM_FI_DEV_POWER_MGMT_LIMIT"), "last"), legend: "limit set", limit: true },
          ]} />
        <Panel title="Clocks" unit="megahertz" min={0} folded="lowest" marks={marks()}
          absent={absent(["DCGM_FI_DEV_SM_CLOCK"], "The driver did not give it.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_SM_CLOCK"), "min"), legend: "SM" },
            { expr: gauge(of("DCGM_FI_DEV_MEM_CLOCK"), "min"), legend: "memory" },
          ]} />
        <Panel title="Clocks held down" unit="count" kind="lanes" marks={marks()} shape={lanesOf}
          absent={absent(["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"], "The driver did not give it, or an exporter's list leaves it out.")}
          queries={[{ expr: gauge(of("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"), "last"), legend: "reasons" }]} />
        <Panel title="Time throttled" unit="percent" min={0} folded="share" marks={marks()} shape={withoutIdleLines}
          absent={absent(["watchfire_gpu_throttle_seconds_total", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION"], "The driver keeps no violation counters on this board.")}
          queries={[
            { expr: rate(of("watchfire_gpu_throttle_seconds_total")), legend: (labels) => (labels["reason"] ?? "throttled").replaceAll("_", " "), scale: 100 },
            { expr: rate(of("DCGM_FI_DEV_THERMAL_VIOLATION")), legend: "thermal violation", scale: 100 / 1e9 },
            { expr: rate(of("DCGM_FI_DEV_POWER_VIOLATION")), legend: "power violation", scale: 100 / 1e9 },
          ]} />
        <Panel title="ECC errors and row remaps" unit="count" min={0} folded="last" marks={marks()}
          absent={absent(["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"], "The board has no ECC, or it is switched off.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"), "last"), legend: "double-bit since driver load" },
            { expr: gauge(of("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"), "last"), legend: "single-bit since driver load" },
            { expr: gauge(of("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"), "last"), legend: "rows remapped, uncorrectable" },
            { expr: gauge(of("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"), "last"), legend: "rows remapped, correctable" },
            { expr: gauge(of("DCGM_FI_DEV_ROW_REMAP_PENDING"), "last"), legend: "remap pending" },
            { expr: gauge(of("DCGM_FI_DEV_ROW_REMAP_FAILURE"), "last"), legend: "remap failed" },
          ]} />
        <Panel title="PCIe throughput" unit="bytes_per_second" min={0} folded="average" marks={marks()}
          absent={absent(["DCGM_FI_PROF_PCIE_RX_BYTES"], "Profiling metrics need a Hopper GPU or newer, or an installed DCGM.")}
          queries={[
            { expr: gauge(of("DCGM_FI_PROF_PCIE_RX_BYTES")), legend: "received" },
            { expr: gauge(of("DCGM_FI_PROF_PCIE_TX_BYTES")), legend: "sent" },
          ]} />
        <Panel title="PCIe link" unit="count" min={0} folded="lowest" marks={marks()}
          absent={absent(["DCGM_FI_DEV_PCIE_LINK_GEN", "DCGM_FI_DEV_PCIE_LINK_WIDTH"], "The driver did not give it, or an exporter's list leaves it out.")}
          queries={[
            { expr: gauge(of("DCGM_FI_DEV_PCIE_LINK_WIDTH"), "min"), legend: "lanes" },
            { expr: gauge(of("DCGM_FI_DEV_PCIE_LINK_GEN"), "min"), legend: "generation" },
            { expr: gauge(of("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"), "last"), legend: "most lanes", limit: true },
            { expr: gauge(of("DCGM_FI_DEV_PCIE_MAX_LINK_GEN"), "last"), legend: "highest generation", limit: true },
          ]} />
        <Panel title="PCIe replays" unit="per_second" min={0} folded="average" marks={marks()}
          absent={absent(["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"], "The driver did not give it.")}
          queries={[{ expr: rate(of("DCGM_FI_DEV_PCIE_REPLAY_COUNTER")), legend: "replays" }]} />
        <Panel title="NVLink" unit="bytes_per_second" min={0} folded="average" marks={marks()}
          absent={absent(["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_PROF_NVLINK_RX_BYTES"], "The board has no NVLink, or its links are down.")}
          queries={[
            { expr: gauge(of("DCGM_FI_PROF_NVLINK_RX_BYTES")), legend: "received" },
            { expr: gauge(of("DCGM_FI_PROF_NVLINK_TX_BYTES")), legend: "sent" },
            // A rate in units of 1000 KiB, as DCGM has it, though the exporter calls it a counter.
            { expr: gauge(of("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")), legend: "all links, both ways", scale: 1_024_000 },
          ]} />
      </div>
    </Show>
  );
}

interface Now { key: string; name: string; unit?: Unit; expr: (of: (metric: string) => string) => string }

/** Used and free, and what the driver keeps for itself where it is told. */
function memoryTotal(of: (metric: string) => string): string {
  const part = (name: string): string => `max by (UUID) (${of(`DCGM_FI_DEV_FB_${name}`)})`;
  return `${part("USED")} + ${part("FREE")} + (${part("RESERVED")} or 0 * ${part("USED")})`;
}

const NOW: Now[] = [
  { key: "util", name: "utilisation", unit: "percent", expr: (of) => of("DCGM_FI_DEV_GPU_UTIL") },
  { key: "used", name: "memory used", unit: "mebibytes", expr: (of) => of("DCGM_FI_DEV_FB_USED") },
  { key: "total", name: "memory total", unit: "mebibytes", expr: memoryTotal },
  { key: "temp", name: "temperature", unit: "celsius", expr: (of) => of("DCGM_FI_DEV_GPU_TEMP") },
  { key: "memory_temp", name: "memory temperature", unit: "celsius", expr: (of) => of("DCGM_FI_DEV_MEMORY_TEMP") },
  { key: "margin", name: "margin to slowdown", unit: "celsius", expr: (of) => of("watchfire_gpu_temperature_margin_celsius") },
  { key: "power", name: "power", unit: "watts", expr: (of) => of("DCGM_FI_DEV_POWER_USAGE") },
  { key: "limit", name: "power limit", unit: "watts", expr: (of) => of("DCGM_FI_DEV_ENFORCED_POWER_LIMIT") },
  { key: "clock", name: "SM clock", unit: "megahertz", expr: (of) => of("DCGM_FI_DEV_SM_CLOCK") },
];

function Fact(props: { name: string; value: string | undefined }): JSX.Element {
  return <div><dt>{props.name}</dt><dd classList={{ absent: !props.value }} title={props.value ? undefined : "no series names it"}>{props.value || ABSENT}</dd></div>;
}

function LastSample(props: { uuid: string }): JSX.Element {
  const at = (): number | undefined => gpuOf(props.uuid)?.sampled ?? lastSeen().get(props.uuid);
  return <Show when={at()} keyed fallback={<span class="absent" title="no sample in the last 24 hours">{ABSENT}</span>}>{(seconds) => <Ago at={seconds} />}</Show>;
}
