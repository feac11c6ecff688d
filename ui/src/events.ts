// Events as moments in time: a counter that rises within the range is an event at that point of the grid.

import { type Accessor, createEffect, createSignal, on, onCleanup } from "solid-js";
import { type Alert, isAbort, type Labels, messageOf, queryRange } from "./api";
import type { Mark } from "./chart";
import { severityOf } from "./condition";
import { linesOf } from "./panel";
import { range, refreshed } from "./time";

export interface CountedEvent {
  /** The point of the grid that knows of it; it happened within the step before. */
  time: number;
  step: number;
  name: string;
  /** The value of the label that tells the kind, such as the XID's code. */
  code: string | undefined;
  count: number;
}

export interface Events {
  /** Why they cannot be told. */
  error: Accessor<string>;
  /** Newest first; `undefined` while asking, empty where nothing happened. */
  list: Accessor<CountedEvent[] | undefined>;
  /** Whether a counter is there at all, so that "none" means none. */
  counted: Accessor<boolean>;
  marks: Accessor<Mark[]>;
}

/** The rises of counters; `exprs` are instant selectors or sums of them, named by their labels. */
export function countedEvents(exprs: { expr: string; name: (labels: Labels) => string; code?: string }[]): Events {
  const [list, setList] = createSignal<CountedEvent[]>();
  const [counted, setCounted] = createSignal(false);
  const [error, setError] = createSignal("");
  let running: AbortController | undefined;
  const ask = async (): Promise<void> => {
    running?.abort();
    const mine = (running = new AbortController());
    const window = range.window();
    const { start, end, step } = window;
    try {
      const answers = await Promise.all(exprs.map(({ expr }) => queryRange(expr, start, end, step, mine.signal)));
      if (mine.signal.aborted) return;
      const lines = exprs.flatMap(({ expr, name, code }, i) =>
        linesOf({ expr: () => expr, legend: name }, answers[i] ?? [], window).map((line, k) => ({ ...line, code: code ? answers[i]?.[k]?.metric[code] : undefined })));
      setError("");
      setCounted(lines.length > 0);
      const firsts = lines.map((line) => line.values.findIndex((value) => value !== null));
      const alive = Math.min(...firsts);
      setList(lines
        .flatMap((line, i) => rises(line.values, (firsts[i] ?? 0) > alive + 1).map(({ index, by }) => ({ time: start + index * step, step, name: line.name, code: line.code, count: by })))
        .sort((left, right) => right.time - left.time));
    } catch (err) {
      if (!isAbort(err) && !mine.signal.aborted) setError(messageOf(err));
    }
  };
  createEffect(on([range.window, refreshed], () => void ask()));
  onCleanup(() => running?.abort());
  return { error, list, counted, marks: () => (list() ?? []).map(({ time, name }) => ({ time, text: name, level: "critical" as const })) };
}

/** The starts of alerts, as marks. */
export function startsOf(alerts: Alert[]): Mark[] {
  return alerts.map((alert) => ({ time: Date.parse(alert.activeAt) / 1000, text: alert.labels["alertname"] ?? "alert", level: severityOf(alert.labels) }));
}

/** Where a counter rises, over gaps too; a fall is a restart and counts from zero, and so does a `born` one: its source stood before it did. */
function rises(values: (number | null)[], born: boolean): { index: number; by: number }[] {
  const found: { index: number; by: number }[] = [];
  let before = born ? 0 : undefined;
  values.forEach((value, index) => {
    if (value === null) return;
    const by = before === undefined ? 0 : value < before ? value : value - before;
    if (by > 0) found.push({ index, by });
    before = value;
  });
  return found;
}
