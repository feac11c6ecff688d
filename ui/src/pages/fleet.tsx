// The fleet: every GPU as a cell, grouped by host; then hosts and what fires now. At a thousand GPUs the
// cells shrink to index, shape and load, and the rest is told of the one under the pointer or the focus.

import { createEffect, createMemo, createSignal, For, type JSX, Match, Show, Switch } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { AlertCard } from "../alert_card";
import * as api from "../api";
import { CONDITIONS, type Condition, worst } from "../condition";
import { alertPoll, byWeight, firing, type Gpu, gpuPoll, gpus, hub, lastSeen, rulePoll, targetPoll } from "../fleet";
import { Icon } from "../icons";
import { hostOf, together } from "../metrics";
import { poll } from "../poll";
import { gpuPath, hostPath, withRange } from "../router";
import { absolute, second } from "../time";
import { duration, format, plural, type Unit } from "../units";
import { ConditionTag, Value } from "../value";

const REFRESH_MS = 5000;
/** From this many GPUs on, cells are small. */
const COMPACT_FROM = 65;

const GPU_VALUES = together({
  util: "max by (instance, UUID) (DCGM_FI_DEV_GPU_UTIL) or max by (instance, UUID) (100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE)",
  temp: "max by (instance, UUID) (DCGM_FI_DEV_GPU_TEMP)",
  power: "max by (instance, UUID) (DCGM_FI_DEV_POWER_USAGE)",
  used: "max by (instance, UUID) (DCGM_FI_DEV_FB_USED)",
  free: "max by (instance, UUID) (DCGM_FI_DEV_FB_FREE)",
  reserved: "max by (instance, UUID) (DCGM_FI_DEV_FB_RESERVED)",
});

const HOST_VALUES = together({
  cpu: '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m])))',
  cores: 'count by (instance) (node_cpu_seconds_total{mode="idle"})',
  memory: "max by (instance) (100 * (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes))",
  load: "max by (instance) (node_load1)",
  expected: "max by (instance) (watchfire_gpus_expected)",
  present: "max by (instance) (watchfire_gpus_present)",
});

type Readings = Partial<Record<string, number>>;

/** Samples by the entity their labels name, each under its `m`. */
function readings(samples: api.InstantSample[], keyOf: (labels: api.Labels) => string): Record<string, Readings> {
  const found: Record<string, Readings> = {};
  for (const { metric, value } of samples) {
    const number = api.numberOf(value[1]);
    if (number !== undefined) (found[keyOf(metric)] ??= {})[metric["m"] ?? ""] = number;
  }
  return found;
}

interface HostRow {
  name: string;
  up: number;
  down: number;
  simulated: boolean;
  readings: Readings;
  gpus: number;
  condition: Condition;
}

const byName = new Intl.Collator("en", { numeric: true }).compare;

export function Fleet(): JSX.Element {
  const values = poll((signal) => api.query(GPU_VALUES, signal), REFRESH_MS);
  const hostValues = poll((signal) => api.query(HOST_VALUES, signal), REFRESH_MS);
  const up = poll((signal) => api.query('up{job!="watchfire"}', signal), REFRESH_MS);

  const [store, setStore] = createStore<{ gpus: Gpu[]; readings: Record<string, Readings>; hosts: HostRow[] }>({ gpus: [], readings: {}, hosts: [] });
  createEffect(() => setStore("gpus", reconcile(gpus(), { key: "key" })));
  createEffect(() => setStore("readings", reconcile(readings(values.data() ?? [], (labels) => `${hostOf(labels)} ${labels["UUID"]}`))));

  const hosts = createMemo((): HostRow[] => {
    const rows = new Map<string, HostRow>();
    const row = (name: string): HostRow => {
      let found = rows.get(name);
      if (!found) rows.set(name, (found = { name, up: 0, down: 0, simulated: false, readings: {}, gpus: 0, condition: "healthy" }));
      return found;
    };
    for (const gpu of gpus()) {
      const host = row(gpu.host);
      host.gpus += 1;
      host.condition = worst([host.condition, gpu.condition]);
      host.simulated ||= gpu.simulated;
    }
    for (const { metric, value } of up.data() ?? []) {
      const host = row(hostOf(metric));
      if (!up.current()) continue;
      if (value[1] === "1") host.up += 1;
      else host.down += 1;
      host.simulated ||= metric["simulated"] === "true";
    }
    for (const [name, found] of Object.entries(readings(hostValues.current() ?? [], hostOf))) row(name).readings = found;
    for (const alert of firing()) {
      const name = hostOf(alert.labels);
      if (name) row(name);
    }
    return [...rows.values()].sort((left, right) => byName(left.name, right.name));
  });
  createEffect(() => setStore("hosts", reconcile(hosts(), { key: "name" })));
  const error = () => values.error() ?? gpuPoll.error();
  const empty = createMemo(() => gpuPoll.data() && up.data() && gpus().length === 0 && hosts().length === 0);

  return (
    <>
      <h1 class="visually-hidden">Fleet</h1>
      <Show when={error() && error()?.kind !== "replaying" && error()?.kind !== "unreachable"}>
        <div class="note bad" role="alert"><strong>The readings cannot be fetched</strong><span>{error()?.message}</span></div>
      </Show>
      <Show when={!empty()} fallback={<NothingYet />}>
        <GpuMap gpus={store.gpus} readings={store.readings} hosts={store.hosts} loaded={gpuPoll.data() !== undefined} />
        <Show when={gpuPoll.data() ?? up.data() ?? alertPoll.data()}>
          <div class="columns">
            <CurrentAlerts />
            <Hosts hosts={store.hosts} />
          </div>
        </Show>
      </Show>
    </>
  );
}

function NothingYet(): JSX.Element {
  return (
    <section class="empty">
      <h2>Nothing is watched yet</h2>
      <p>No target has answered and nothing is stored. What to do:</p>
      <ol>
        <li>On this machine: stop this and start <code>watchfire run</code>; it watches GPUs and host by itself.</li>
        <li>To see it work without a GPU: <code>watchfire run --demo</code>.</li>
        <li>For other servers: start <code>watchfire agent</code> there and name them under <code>prometheus: scrape_configs:</code> in <code>watchfire.yml</code>.</li>
        <li>If targets are named already, the <a href="/targets">targets page</a> says why they do not answer; <code>watchfire doctor</code> says it for this machine's sources.</li>
      </ol>
      <Show when={hub.data()}>{(status) => <p class="quiet">The hub on {status().hostname} runs (version {status().version}) and answered at {absolute(status().now)}.</p>}</Show>
    </section>
  );
}

function GpuMap(props: { gpus: Gpu[]; readings: Record<string, Readings>; hosts: HostRow[]; loaded: boolean }): JSX.Element {
  const compact = (): boolean => props.gpus.length >= COMPACT_FROM;
  const [only, setOnly] = createSignal<Condition>();
  const [active, setActive] = createSignal<string>();
  const counts = createMemo(() => {
    const found = new Map<Condition, number>();
    for (const gpu of props.gpus) found.set(gpu.condition, (found.get(gpu.condition) ?? 0) + 1);
    return [...CONDITIONS].reverse().flatMap((condition) => (found.has(condition) ? [{ condition, count: found.get(condition) ?? 0 }] : []));
  });
  createEffect(() => { if (only() && !counts().some(({ condition }) => condition === only())) setOnly(undefined); });
  const groups = createMemo(() => {
    const found = new Map<string, Gpu[]>();
    for (const gpu of props.gpus) {
      if (only() && gpu.condition !== only()) continue;
      const group = found.get(gpu.host);
      if (group) group.push(gpu);
      else found.set(gpu.host, [gpu]);
    }
    return found;
  });
  const names = createMemo(() => [...groups().keys()], [], { equals: (left, right) => left.join("\n") === right.join("\n") });
  const told = createMemo(() => props.gpus.find((gpu) => gpu.key === active()));

  return (
    <section class="gpus" aria-label="GPUs" data-compact={compact()}>
      <header class="bar">
        <h2>{props.gpus.length ? plural(props.gpus.length, "GPU") : "GPUs"}</h2>
        <div class="filters" role="group" aria-label="Show only">
          <For each={counts()}>
            {({ condition, count }) => (
              <button type="button" class="tag" data-condition={condition} aria-pressed={only() === condition} title={`show only ${condition}`}
                onClick={() => setOnly(only() === condition ? undefined : condition)}>
                <Icon of={condition} />{count} {condition}
              </button>
            )}
          </For>
        </div>
        <Show when={compact()}><p class="told" role="status">{told() ? tell(told() as Gpu, props.readings[told()?.key ?? ""]) : "Numbers are utilisation in %. Point at a GPU, or move with the arrow keys, to read it."}</p></Show>
      </header>
      <Show when={props.gpus.length > 0} fallback={<div class="note" role="status"><strong>{props.loaded ? "No GPU is seen" : gpuPoll.error()?.kind === "replaying" ? "Replaying…" : gpuPoll.error() ? "No answer" : "Loading…"}</strong><span>{props.loaded ? "No GPU series in the last 24 hours. No driver means no GPU: `watchfire doctor` tells which." : gpuPoll.error()?.message}</span></div>}>
        <div class="groups" onKeyDown={moveFocus}>
          <For each={names()}>
            {(name) => (
              <div class="group">
                <h3><a href={withRange(hostPath(name))}>{name}</a><HostNote host={props.hosts.find((host) => host.name === name)} compact={compact()} /></h3>
                <div class="cells">
                  <For each={groups().get(name) ?? []}>
                    {(gpu) => (
                      <Show when={compact()} fallback={<Cell gpu={gpu} readings={props.readings[gpu.key]} />}>
                        <SmallCell gpu={gpu} readings={props.readings[gpu.key]} onActive={() => setActive(gpu.key)} />
                      </Show>
                    )}
                  </For>
                </div>
              </div>
            )}
          </For>
        </div>
      </Show>
    </section>
  );
}

function HostNote(props: { host: HostRow | undefined; compact: boolean }): JSX.Element {
  const missing = (): number => {
    const { expected, present } = props.host?.readings ?? {};
    return expected !== undefined && present !== undefined ? Math.max(0, expected - present) : 0;
  };
  return (
    <span class="host-note">
      <Show when={props.host?.simulated && !props.compact}><span class="badge simulated">simulated</span></Show>
      <Show when={missing() > 0}><span class="problem">{props.host?.readings["present"]} of {props.host?.readings["expected"]} present</span></Show>
      <Show when={(props.host?.down ?? 0) > 0}><span class="problem">{plural(props.host?.down ?? 0, "target")} down</span></Show>
    </span>
  );
}

function memoryShare(found: Readings | undefined): number | undefined {
  if (found?.["used"] === undefined || found["free"] === undefined) return undefined;
  const total = found["used"] + found["free"] + (found["reserved"] ?? 0);
  return total > 0 ? (100 * found["used"]) / total : undefined;
}

/** What is shown of a GPU whose data is old: nothing, rather than its last words. */
function current(gpu: Gpu, found: Readings | undefined): Readings {
  return gpu.stale ? {} : (found ?? {});
}

function why(gpu: Gpu): string {
  return gpu.stale ? gpu.reason || "no fresh data" : "not exported by this GPU";
}

function tell(gpu: Gpu, found: Readings | undefined): string {
  const now = current(gpu, found);
  const values = [format(now["util"], "percent"), format(now["temp"], "celsius"), format(now["power"], "watts"), `${format(memoryShare(now), "percent")} memory`];
  return `GPU ${gpu.index} on ${gpu.host}: ${gpu.condition}${gpu.reason ? ` (${gpu.reason})` : ""}, ${values.join(", ")}`;
}

function Cell(props: { gpu: Gpu; readings: Readings | undefined }): JSX.Element {
  const now = (): Readings => current(props.gpu, props.readings);
  const heard = (): number | undefined => props.gpu.sampled ?? lastSeen().get(props.gpu.uuid);
  return (
    <a class="cell" href={withRange(gpuPath(props.gpu.uuid))} data-condition={props.gpu.condition} title={tell(props.gpu, props.readings)}>
      <span class="head"><span class="index">GPU {props.gpu.index}</span><ConditionTag of={props.gpu.condition} /></span>
      <span class="meter" aria-hidden="true"><Bar percent={now()["util"]} /></span>
      <Reading name="util" of={now()["util"]} unit="percent" why={why(props.gpu)} />
      <Reading name="temp" of={now()["temp"]} unit="celsius" why={why(props.gpu)} />
      <Reading name="power" of={now()["power"]} unit="watts" why={why(props.gpu)} />
      <Reading name="memory" of={memoryShare(now())} unit="percent" why={why(props.gpu)} />
      <span class="reason">
        <Show when={props.gpu.stale && heard() !== undefined} fallback={props.gpu.reason}>
          {props.gpu.alerts.length ? props.gpu.reason : "no data"}, last heard {duration(Math.round(second() - (heard() ?? 0)))} ago
        </Show>
      </span>
    </a>
  );
}

/** Set by CSSOM: the content security policy allows no inline style. */
function Bar(props: { percent: number | undefined }): JSX.Element {
  let bar!: HTMLSpanElement;
  createEffect(() => bar.style.setProperty("width", `${Math.max(0, Math.min(100, props.percent ?? 0))}%`));
  return <span ref={bar} />;
}

function Reading(props: { name: string; of: number | undefined; unit: Unit; why: string }): JSX.Element {
  return <span class="reading"><Value of={props.of} unit={props.unit} why={props.why} /><small>{props.name}</small></span>;
}

function SmallCell(props: { gpu: Gpu; readings: Readings | undefined; onActive: () => void }): JSX.Element {
  const util = (): number | undefined => (props.gpu.stale ? undefined : props.readings?.["util"]);
  return (
    <a class="small cell" href={withRange(gpuPath(props.gpu.uuid))} data-condition={props.gpu.condition}
      aria-label={`GPU ${props.gpu.index} on ${props.gpu.host}: ${props.gpu.condition}, ${format(util(), "percent")}`}
      onMouseEnter={() => props.onActive()} onFocus={() => props.onActive()}>
      <Show when={props.gpu.condition !== "healthy"} fallback={<span class="util">{util() === undefined ? "—" : Math.round(util() ?? 0)}</span>}>
        <Icon of={props.gpu.condition} />
      </Show>
    </a>
  );
}

/** Arrow keys move between cells as they lie on the screen. */
function moveFocus(event: KeyboardEvent): void {
  const here = (event.target as Element).closest<HTMLElement>(".cell");
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!here || !way) return;
  const [across = 0, down = 0] = way;
  const cells = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>(".cell")];
  let next: HTMLElement | undefined;
  if (across !== 0) {
    next = cells[cells.indexOf(here) + across];
  } else {
    const from = here.getBoundingClientRect();
    let best = Infinity;
    for (const cell of cells) {
      const to = cell.getBoundingClientRect();
      const far = (to.top - from.top) * down;
      if (far < from.height / 2) continue;
      const distance = far * 4 + Math.abs(to.left - from.left);
      if (distance < best) [best, next] = [distance, cell];
    }
  }
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function CurrentAlerts(): JSX.Element {
  const shown = createMemo(() => [...firing()].sort(byWeight).slice(0, 8));
  const rules = (): number => (rulePoll.data() ?? []).flatMap((group) => group.rules).filter((rule) => rule.type === "alerting").length;
  return (
    <section class="current" aria-label="Current alerts">
      <header class="bar">
        <h2>Firing now</h2>
        <a href={withRange("/alerts")}>All alerts</a>
      </header>
      <Switch>
        <Match when={shown().length > 0}>
          <For each={shown()}>{(alert) => <AlertCard alert={alert} brief />}</For>
          <Show when={firing().length > shown().length}><a href={withRange("/alerts")}>{firing().length - shown().length} more</a></Show>
        </Match>
        <Match when={rulePoll.data() && rules() === 0}>
          <div class="note bad"><strong>No alert rule is loaded</strong><span>Silence means nothing here.</span></div>
        </Match>
        <Match when={rulePoll.data()}><div class="note"><strong>None</strong><span>{plural(rules(), "alert rule")} watched, none fires.</span></div></Match>
      </Switch>
    </section>
  );
}

function Hosts(props: { hosts: HostRow[] }): JSX.Element {
  const targetError = (name: string): string | undefined =>
    targetPoll.data()?.activeTargets.find((target) => hostOf(target.labels) === name && target.health === "down")?.lastError;
  return (
    <section class="hosts" aria-label="Hosts">
      <header class="bar"><h2>{plural(props.hosts.length, "host")}</h2></header>
      <div class="scroll">
        <table>
          <thead><tr><th>host</th><th>state</th><th class="number">CPU</th><th class="number">memory</th><th class="number">load</th><th>GPUs</th></tr></thead>
          <tbody>
            <For each={props.hosts}>
              {(host) => (
                <tr>
                  <th scope="row"><a href={withRange(hostPath(host.name))}>{host.name}</a><Show when={host.simulated}> <span class="badge simulated">simulated</span></Show></th>
                  <td>
                    <Show when={host.up + host.down > 0} fallback={<span class="tag" data-condition="unknown" title="no target of this host is known"><Icon of="unknown" />unknown</span>}>
                      <span class="tag" data-condition={host.down ? (host.up ? "warm" : "lost") : "healthy"} title={targetError(host.name)}>
                        <Icon of={host.down ? (host.up ? "warm" : "lost") : "healthy"} />{host.down ? (host.up ? `${host.down} of ${host.up + host.down} down` : "down") : "up"}
                      </span>
                    </Show>
                  </td>
                  <td class="number"><Value of={host.readings["cpu"]} unit="percent" why="no node metrics" /></td>
                  <td class="number"><Value of={host.readings["memory"]} unit="percent" why="no node metrics" /></td>
                  <td class="number"><Value of={host.readings["load"]} unit="load" why="no node metrics" /><Show when={host.readings["cores"]}><small> / {host.readings["cores"]}</small></Show></td>
                  <td><Show when={host.gpus > 0} fallback={<span class="absent" title="no GPU series of this host">—</span>}><span class="tag" data-condition={host.condition}><Icon of={host.condition} />{host.gpus}</span></Show></td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  );
}
