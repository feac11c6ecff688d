// How often a page's subject is scraped: the grid of its charts and what counts as a gap follow from it.

import { createEffect } from "solid-js";
import { numberOf, query } from "./api";
import { targetPoll } from "./fleet";
import { hostOf } from "./metrics";
import { parseDuration, setScrapeInterval } from "./time";

const COMMON = [15, 30, 60, 120, 300];
const DEFAULT = 15;

/** Sets the page's scrape interval from the host's targets or, where it has none (pushed series), from a gauge of it. */
export function watchInterval(host: () => string, selector: string): void {
  createEffect(() => {
    const active = targetPoll.data()?.activeTargets;
    if (!active || !host()) return;
    const intervals = active.filter((target) => hostOf(target.labels) === host()).flatMap((target) => parseDuration(target.scrapeInterval ?? "") ?? []);
    if (intervals.length > 0) setScrapeInterval(snap(Math.max(...intervals)));
    else void infer(selector);
  });
}

const asked = new Set<string>();

/** From the most samples that five minutes of the last six hours hold. */
async function infer(selector: string): Promise<void> {
  if (asked.has(selector)) return;
  asked.add(selector);
  try {
    const counts = (await query(`max_over_time(count_over_time(${selector}[5m])[6h:5m])`)).flatMap(({ value }) => numberOf(value[1]) ?? []);
    setScrapeInterval(counts.length > 0 ? snap((300 / Math.max(...counts)) * 0.9) : DEFAULT);
  } catch {
    setScrapeInterval(DEFAULT); // the panels tell what is wrong with the hub
  }
}

function snap(seconds: number): number {
  return COMMON.find((common) => common >= seconds) ?? 300;
}
