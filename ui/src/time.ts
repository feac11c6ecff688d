// Time: the hub's clock, the page's range (kept in the address, so it can be shared) and the step of its queries.
//
// The range is two texts, `from` and `to`, each relative ("now-1h") or absolute (ISO 8601). A relative
// range moves with the hub's clock; an absolute one, as drawn by a drag over a chart, stands still.

import { batch, createMemo, createRoot, createSignal } from "solid-js";
import { replaceSearch, searchParam } from "./router";

const [offset, setOffset] = createSignal(0);

/** Sets the page's clock by the hub's, of which `status` tells. */
export function syncClock(hub_seconds: number): void {
  const difference = hub_seconds - Date.now() / 1000;
  if (Math.abs(difference - offset()) > 1) setOffset(difference);
}

/** Now by the hub's clock, in seconds. */
export function hubNow(): number {
  return Date.now() / 1000 + offset();
}

/** Ticks once a second while the page is seen, for ages on the screen. */
export const second = createRoot(() => {
  const [now, setNow] = createSignal(hubNow());
  setInterval(() => { if (!document.hidden) setNow(hubNow()); }, 1000);
  return now;
});

export const PRESETS = ["15m", "1h", "6h", "24h", "7d", "30d"] as const;
export type Preset = (typeof PRESETS)[number];
export const PRESET_DEFAULT: Preset = "1h";

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** "now", "now-6h", ISO 8601, or seconds or milliseconds since 1970; `undefined` if it is none of them. */
export function parseTime(text: string, now: number): number | undefined {
  const relative = /^now(?:-(\d+)([smhdw]))?$/.exec(text);
  if (relative) return now - Number(relative[1] ?? 0) * (UNIT_SECONDS[relative[2] ?? "s"] ?? 1);
  if (/^\d{9,11}(\.\d+)?$/.test(text)) return Number(text);
  if (/^\d{12,14}$/.test(text)) return Number(text) / 1000;
  const absolute = Date.parse(text);
  return Number.isNaN(absolute) ? undefined : absolute / 1000;
}

/** "15s" or "1m30s", as Prometheus writes durations, in seconds. */
export function parseDuration(text: string): number | undefined {
  let total = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|[smhdw])/g)) {
    total += Number(count) * (unit === "ms" ? 0.001 : (UNIT_SECONDS[unit ?? ""] ?? 0));
  }
  return total > 0 ? total : undefined;
}

export interface Window {
  start: number;
  end: number;
  step: number;
}

const POINTS_MAX = 400;
const STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

/** The smallest step that draws the span in at most `POINTS_MAX` points, and never below the scrape interval. */
export function stepFor(span: number, scrape_interval: number): number {
  const least = Math.max(span / POINTS_MAX, scrape_interval);
  return STEPS.find((step) => step >= least) ?? Math.ceil(span / POINTS_MAX / 86400) * 86400;
}

/** The scrape interval the page's queries reckon with, in seconds. */
export const [scrapeInterval, setScrapeInterval] = createSignal(15);

const [tick, setTick] = createSignal(0);

export const range = createRoot(() => {
  const from = createMemo(() => searchParam("from") ?? `now-${PRESET_DEFAULT}`);
  const to = createMemo(() => searchParam("to") ?? "now");
  const live = createMemo(() => to() === "now" && from().startsWith("now"));
  const preset = createMemo(() => (to() === "now" ? PRESETS.find((name) => from() === `now-${name}`) : undefined));
  const window = createMemo((): Window => {
    tick();
    const now = hubNow();
    const end = Math.min(parseTime(to(), now) ?? now, now);
    let start = parseTime(from(), now) ?? end - 3600;
    if (start >= end) start = end - 3600;
    const step = stepFor(end - start, scrapeInterval());
    // The grid stands on multiples of the scrape interval, so that a refresh asks for the same points again.
    const grid = Math.min(step, scrapeInterval());
    const last = Math.floor(end / grid) * grid;
    return { start: last - Math.floor((last - start) / step) * step, end: last, step };
  });
  setInterval(() => {
    if (document.hidden || !live()) return;
    const { end, step } = window();
    if (hubNow() - end >= Math.max(scrapeInterval(), step / 4)) setTick((n) => n + 1);
  }, 1000);
  return { from, to, live, preset, window };
});

/** Asks everything on the page again. */
export function refresh(): void {
  setTick((n) => n + 1);
}
export const refreshed = tick;

export function setPreset(name: Preset): void {
  setRange(`now-${name}`, "now");
}

export function setRange(from: string, to: string): void {
  batch(() => replaceSearch({ from: from === `now-${PRESET_DEFAULT}` && to === "now" ? undefined : from, to: to === "now" ? undefined : to }));
}

/** A range drawn on a chart: seconds, never shorter than a minute. */
export function setAbsolute(start: number, end: number): void {
  const middle = (start + end) / 2;
  const half = Math.max(end - start, 60) / 2;
  setRange(iso(middle - half), iso(middle + half));
}

/** Moves through the presets: −1 shorter, +1 longer. */
export function stepPreset(direction: -1 | 1): void {
  const { start, end } = range.window();
  const spans = PRESETS.map((name) => parseDuration(name) ?? 0);
  const current = range.preset();
  let index = current ? PRESETS.indexOf(current) + direction : spans.findIndex((span) => span >= end - start);
  if (index < 0 && !current) index = PRESETS.length - 1;
  const name = PRESETS[Math.max(0, Math.min(PRESETS.length - 1, index))];
  if (name) setPreset(name);
}

/** The search part of an address that shows the time around a moment: from half an hour before it. */
export function around(moment: number): string {
  const now = hubNow();
  const to = moment + 1800 >= now ? "now" : iso(moment + 1800);
  return `?from=${iso(moment - 1800)}${to === "now" ? "" : `&to=${to}`}`;
}

export function iso(seconds: number): string {
  return new Date(Math.round(seconds) * 1000).toISOString().replace(".000Z", "Z");
}

const ZONE = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts().find((part) => part.type === "timeZoneName")?.value ?? "";

/** Date and time of this reader, with the zone's name. */
export function absolute(seconds: number): string {
  return `${local(seconds)} ${ZONE}`;
}

/** Date and time of this reader; the date only if it is not today's. */
export function local(seconds: number): string {
  const date = new Date(seconds * 1000);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const today = new Date(hubNow() * 1000).toDateString() === date.toDateString();
  return today ? clock : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
