// What is watched and how it fares: hub, alerts, rules and GPUs. One store for every page, so that all of
// them answer "is anything wrong?" alike.

import { createEffect, createMemo, createRoot, createSignal, on } from "solid-js";
import * as api from "./api";
import type { Alert, InstantSample, Labels } from "./api";
import { type Condition, conditionOf, isHeartbeat, severityOf, worst } from "./condition";
import { hostOf, oneOf } from "./metrics";
import { FRESH_SECONDS, poll } from "./poll";
import { hubNow, second, syncClock } from "./time";
import { duration, plural } from "./units";

const REFRESH_MS = 5000;
const SLOW_MS = 60_000;
const SEEN_SECONDS = 86_400;

export interface Gpu {
  key: string;
  uuid: string;
  host: string;
  index: string;
  pci: string;
  model: string;
  driver: string;
  simulated: boolean;
  /** Time of the newest sample; `undefined` if there is none within the lookback. */
  sampled: number | undefined;
  /** Whether its readings are too old, or none, to say anything about now. */
  stale: boolean;
  condition: Condition;
  /** Why it is not healthy, in words. */
  reason: string;
  alerts: Alert[];
}

/** One metric that each GPU has is enough; boards differ in which. Its sample's time is the value. */
const FRESHNESS = ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"]
  .map((name) => `timestamp(${name}{UUID!=""})`)
  .join(" or ");

const polls = createRoot(() => ({
  status: poll(async (signal) => {
    const status = await api.status(signal);
    syncClock(status.now);
    return status;
  }, REFRESH_MS),
  alerts: poll(api.alerts, REFRESH_MS),
  rules: poll(api.rules, SLOW_MS / 2),
  targets: poll(api.targets, REFRESH_MS * 2),
  fresh: poll((signal) => api.query(FRESHNESS, signal), REFRESH_MS),
  agent: poll((signal) => api.query('watchfire_gpu_up{UUID!=""}', signal), REFRESH_MS),
  // GPUs that should be there, by the bus, and do not answer: they may have no series at all.
  missing: poll((signal) => api.query("sum(watchfire_gpus_expected - watchfire_gpus_present)", signal), REFRESH_MS),
  // What was here in the last day: a GPU must not vanish from the screen because it vanished from the data.
  seen: poll((signal) => {
    const now = hubNow();
    return api.series(['DCGM_FI_DEV_GPU_TEMP{UUID!=""}', 'watchfire_gpu_info{UUID!=""}'], now - SEEN_SECONDS, now, signal);
  }, SLOW_MS),
}));

export const hub = polls.status;
export const alertPoll = polls.alerts;
export const rulePoll = polls.rules;
export const targetPoll = polls.targets;
export const gpuPoll = polls.fresh;

/** Every alert but the heartbeats. */
export const alerts = createRoot(() => createMemo(() => (polls.alerts.data() ?? []).filter((alert) => !isHeartbeat(alert)).sort(byWeight)));
export const firing = createRoot(() => createMemo(() => alerts().filter((alert) => alert.state === "firing")));
/** Alerts that fire to show that alerting works. */
export const heartbeats = createRoot(() => createMemo(() => (polls.alerts.data() ?? []).filter((alert) => isHeartbeat(alert) && alert.state === "firing")));

const WEIGHT = { critical: 0, warning: 1, info: 2 };

/** Critical first, then the newest. */
export function byWeight(left: Alert, right: Alert): number {
  return WEIGHT[severityOf(left.labels)] - WEIGHT[severityOf(right.labels)] || right.activeAt.localeCompare(left.activeAt);
}

const byName = new Intl.Collator("en", { numeric: true }).compare;

const GATHER_MS = 60;

/** Moves when any source of the GPUs has news, once for answers that come together; and with time, so that what is fresh now turns unknown by itself when no answer comes. */
const news = createRoot(() => {
  const [count, setCount] = createSignal(0);
  const slow = createMemo(() => Math.floor(second() / 5));
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(on([polls.fresh.data, polls.agent.data, polls.seen.data, firing, slow], () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      setCount((n) => n + 1);
    }, GATHER_MS);
  }));
  return count;
});

/** Every GPU that is here, was here in the last day, or that an alert speaks of. */
export const gpus = createRoot(() => createMemo(on(news, (): Gpu[] => {
  const found = new Map<string, Gpu>();
  const add = (labels: Labels, sampled?: number): void => {
    const uuid = labels["UUID"];
    if (!uuid) return;
    const host = hostOf(labels);
    const key = `${host} ${uuid}`;
    const known = found.get(key);
    if (!known) {
      found.set(key, {
        key, uuid, host, sampled,
        index: labels["gpu"] ?? "?",
        pci: labels["pci_bus_id"] ?? "",
        model: labels["modelName"] ?? "",
        driver: labels["DCGM_FI_DRIVER_VERSION"] ?? labels["driver_version"] ?? "",
        simulated: labels["simulated"] === "true",
        stale: true,
        condition: "unknown",
        reason: "",
        alerts: [],
      });
      return;
    }
    if (sampled !== undefined) known.sampled = Math.max(known.sampled ?? 0, sampled);
    known.model ||= labels["modelName"] ?? "";
    known.driver ||= labels["DCGM_FI_DRIVER_VERSION"] ?? labels["driver_version"] ?? "";
  };

  for (const { metric, value } of polls.fresh.data() ?? []) add(metric, api.numberOf(value[1]));
  for (const { metric } of polls.agent.data() ?? []) add(metric);
  for (const labels of polls.seen.data() ?? []) add(labels);
  const byUuid = new Map<string, Gpu[]>();
  for (const gpu of found.values()) byUuid.set(gpu.uuid, [...(byUuid.get(gpu.uuid) ?? []), gpu]);
  for (const alert of firing()) {
    const uuid = alert.labels["UUID"];
    if (!uuid) continue;
    const host = hostOf(alert.labels);
    const here = (byUuid.get(uuid) ?? []).filter((gpu) => !host || gpu.host === host);
    if (here.length === 0) {
      add(alert.labels);
      const gpu = found.get(`${host} ${uuid}`);
      if (gpu) {
        byUuid.set(uuid, [...(byUuid.get(uuid) ?? []), gpu]);
        here.push(gpu);
      }
    }
    for (const gpu of here) gpu.alerts.push(alert);
  }
  const agent = agentStates(polls.agent.data() ?? []);
  const now = hubNow();
  for (const gpu of found.values()) judge(gpu, agent.get(gpu.uuid), now);
  return [...found.values()].sort((left, right) => (left.host === right.host ? byName(left.index, right.index) : byName(left.host, right.host)));
})));


function judge(gpu: Gpu, agent_state: string | undefined, now: number): void {
  gpu.stale = gpu.sampled === undefined || now - gpu.sampled > FRESH_SECONDS;
  const said = gpu.alerts.flatMap((alert) => conditionOf(alert) ?? []);
  const reasons = gpu.alerts.map((alert) => alert.annotations["summary"] ?? alert.labels["alertname"] ?? "");
  if (agent_state) {
    // What it is called is the rules' to say; until they do, it is not known to be well.
    said.push("unknown");
    if (reasons.length === 0) reasons.push(`the driver says ${agent_state.replaceAll("_", " ")}`);
  }
  if (gpu.stale) {
    const gone = said.includes("lost") || said.includes("hung");
    said.push("unknown");
    if (!gone && !agent_state) reasons.unshift(gpu.sampled === undefined ? "seen in the last 24 h, no data now" : `no data for ${duration(Math.round(now - gpu.sampled))}`);
  }
  gpu.condition = worst(said);
  gpu.reason = reasons.join("; ");
}

const WELL = new Set(["ok", "up", "present", "healthy"]);

/** By UUID the state an agent gives, where it is not well. */
function agentStates(samples: InstantSample[]): Map<string, string> {
  const states = new Map<string, string>();
  const fine = new Set<string>();
  for (const { metric, value } of samples) {
    const uuid = metric["UUID"] ?? "";
    const state = metric["state"] ?? "down";
    const well = WELL.has(state);
    // One series per GPU with its state (0 = not up), or one per possible state (1 = the present one).
    if (value[1] === "1") {
      if (well || !metric["state"]) fine.add(uuid);
      else states.set(uuid, state);
    } else if (!well && !states.has(uuid)) {
      states.set(uuid, state);
    }
  }
  for (const uuid of fine) states.delete(uuid);
  return states;
}

const LAST_SEEN_MAX = 32;

/** When a GPU without data was last heard of, by UUID. */
export const lastSeen = createRoot(() => {
  const missing = createMemo(() => gpus().filter((gpu) => gpu.sampled === undefined).slice(0, LAST_SEEN_MAX).map((gpu) => gpu.uuid).join(" "));
  const last = poll((signal) => {
    if (!missing()) return Promise.resolve([]);
    const selector = `DCGM_FI_DEV_GPU_TEMP{UUID=~${oneOf(missing().split(" "))}}`;
    return api.query(`max by (UUID) (max_over_time(timestamp(${selector})[1d:1m]))`, signal);
  }, SLOW_MS);
  createEffect(on(missing, last.refresh, { defer: true }));
  return createMemo(() => new Map((last.data() ?? []).map(({ metric, value }) => [metric["UUID"] ?? "", api.numberOf(value[1])])));
});

export const gpuOf = (uuid: string): Gpu | undefined => gpus().find((gpu) => gpu.uuid === uuid);

export const simulated = createRoot(() => createMemo(() => gpus().some((gpu) => gpu.simulated)));

/** The newest GPU sample's age, in seconds. */
export function dataAge(): number | undefined {
  const newest = Math.max(...gpus().map((gpu) => gpu.sampled ?? 0));
  return newest > 0 ? Math.max(0, second() - newest) : undefined;
}

export type Level = "critical" | "warning" | "unknown" | "healthy" | "wait";

export interface Verdict {
  level: Level;
  /** The answer, in one sentence. */
  answer: string;
  /** What it rests on. */
  detail: string;
}

/** Is anything wrong? */
export const verdict = createRoot(() => createMemo((): Verdict => {
  const failure = polls.status.error() ?? polls.alerts.error();
  const status = polls.status.data();
  if (failure?.kind === "replaying" || (status && !status.ready)) {
    return { level: "wait", answer: "Replaying stored data…", detail: "The hub has started and is reading what it kept. The page goes on by itself." };
  }
  if (failure) {
    const known = status ? `; what is below is from ${duration(Math.max(0, second() - status.now))} ago` : "";
    return { level: "critical", answer: "Nobody is watching: the hub does not answer", detail: `${failure.message}${known}` };
  }
  if (!status || !polls.alerts.data() || (!polls.fresh.data() && !polls.fresh.error()) || !polls.seen.data() && !polls.seen.error() || news() === 0) {
    return { level: "wait", answer: "Asking the hub…", detail: "" };
  }
  return judgeAll();
}));

const SILENT = new Set<Condition>(["unknown", "hung", "lost"]);

function judgeAll(): Verdict {
  const critical = firing().filter((alert) => severityOf(alert.labels) === "critical");
  const warning = firing().filter((alert) => severityOf(alert.labels) === "warning");
  const unknown = gpus().filter((gpu) => gpu.condition === "unknown");
  const down = (polls.targets.data()?.activeTargets ?? []).filter((target) => target.health === "down");
  const blind = blindness();
  // Those the page knows by name are told of by their condition.
  const nameless = (api.numberOf(polls.missing.current()?.[0]?.value[1] ?? "0") ?? 0) - gpus().filter((gpu) => gpu.stale || SILENT.has(gpu.condition)).length;

  const counts = [
    critical.length > 0 ? `${critical.length} critical` : "",
    warning.length > 0 ? plural(warning.length, "warning") : "",
    unknown.length > 0 ? `${plural(unknown.length, "GPU")} unknown` : "",
    nameless > 0 ? `${plural(nameless, "GPU")} missing` : "",
    down.length > 0 ? `${plural(down.length, "target")} down` : "",
  ].filter(Boolean);
  const first = [...critical, ...warning][0];
  if (counts.length > 0) {
    const detail = first
      ? first.annotations["summary"] ?? first.labels["alertname"] ?? ""
      : unknown[0] ? `GPU ${unknown[0].index} on ${unknown[0].host}: ${unknown[0].reason}`
      : nameless > 0 ? "Fewer GPUs answer than sit on the bus."
      : down[0] ? `${down[0].labels["instance"]}: ${down[0].lastError || "no answer"}` : "";
    const level = critical.length > 0 ? "critical" : warning.length > 0 || nameless > 0 || down.length > 0 ? "warning" : "unknown";
    return { level, answer: counts.join(", "), detail };
  }
  if (blind) return { level: "unknown", ...blind };
  const count = gpus().length;
  const hosts = new Set(gpus().map((gpu) => gpu.host)).size;
  if (count > 0) {
    return { level: "healthy", answer: count === 1 ? "The GPU is healthy" : `All ${count.toLocaleString("en")} GPUs healthy`, detail: `${plural(hosts, "host")}, no alert firing` };
  }
  if (polls.status.data()?.series === 0 || (polls.status.data()?.targets.up ?? 0) === 0) {
    return { level: "unknown", answer: "Nothing is watched yet", detail: "No target has answered and no series is stored." };
  }
  return { level: "healthy", answer: "No alert is firing", detail: "No GPU is watched here." };
}

/** Why silence would mean nothing: no rules, or rules that fail. */
function blindness(): { answer: string; detail: string } | undefined {
  const failure = polls.fresh.error();
  if (failure) return { answer: "Not known: the GPU readings cannot be fetched", detail: failure.message };
  const groups = polls.rules.data();
  if (!groups) return undefined;
  const alerting = groups.flatMap((group) => group.rules).filter((rule) => rule.type === "alerting");
  if (alerting.length === 0 && gpus().length > 0) {
    return { answer: "No alert rule is loaded", detail: "Silence means nothing until rules watch the data." };
  }
  const failing = alerting.filter((rule) => rule.health === "err");
  if (failing.length > 0) {
    return { answer: `${plural(failing.length, "alert rule")} cannot be evaluated`, detail: `${failing[0]?.name}: ${failing[0]?.lastError ?? "no reason given"}` };
  }
  const heart = alerting.find((rule) => rule.labels?.["severity"] === "none" && rule.health === "ok");
  if (heart && heartbeats().length === 0) {
    return { answer: `${heart.name} does not fire`, detail: "It always should: alerts may not be evaluated." };
  }
  return undefined;
}
