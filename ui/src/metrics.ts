// PromQL of the page: selectors, windows and the shorthand that fetches many metrics in one query.

import type { Labels } from "./api";
import { scrapeInterval, type Window } from "./time";

/** A label value inside double quotes. */
export function quote(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

function regexQuote(value: string): string {
  return value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

export function oneOf(values: string[]): string {
  return quote(values.map(regexQuote).join("|"));
}

/** The host of a series: its `instance` without the port, as exporters of one host differ in it. */
export function hostOf(labels: Labels): string {
  return (labels["instance"] ?? labels["Hostname"] ?? "").replace(/:\d+$/, "");
}

/** Matches every exporter of a host, whatever its port. */
export function onHost(host: string): string {
  return `instance=~${quote(`${regexQuote(host)}(:[0-9]+)?`)}`;
}

/** A scrape and a half: a point further from its sample is a gap. */
export function sampleWindow(): number {
  return Math.ceil(scrapeInterval() * 1.5 + 2);
}

/**
 * A gauge for drawing. On a fine grid: the sample of the last scrape, and nothing if that scrape is missing
 * (a bare selector would repeat the last value for five minutes). On a coarse grid: `fold` over each step, so
 * that a spike between two points is not lost.
 */
export function gauge(selector: string, fold: "avg" | "max" | "min" | "last" = "avg"): (window: Window) => string {
  return ({ step }) =>
    step > sampleWindow() ? `${fold}_over_time(${selector}[${step}s])` : `last_over_time(${selector}[${sampleWindow()}s])`;
}

/** A counter's rate for drawing, over a step but at least four scrapes. */
export function rate(selector: string): (window: Window) => string {
  return ({ step }) => `rate(${selector}[${rateWindow(step)}s])`;
}

export function rateWindow(step: number): number {
  return Math.max(step, scrapeInterval() * 4);
}

/** One query for several expressions: each sample carries its key in the label `m`. */
export function together(exprs: Record<string, string>): string {
  return Object.entries(exprs).map(([key, expr]) => `label_replace(${expr}, "m", "${key}", "", "")`).join(" or ");
}
