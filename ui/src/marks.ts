// Events of a GPU as moments in time: a counter that steps up within the range is an event at that point.

import { createEffect, createSignal, on, onCleanup, type Accessor } from "solid-js";
import { type Alert, isAbort, messageOf, queryRange } from "./api";
import type { Mark } from "./chart";
import { severityOf } from "./condition";
import { linesOf } from "./panel";
import { quote } from "./metrics";
import { range, refreshed } from "./time";

export interface XidEvent {
  time: number;
  xid: string;
  count: number;
}

export interface Events {
  /** Why they cannot be told. */
  error: Accessor<string>;
  /** `undefined` while asking; empty where nothing happened. */
  xids: Accessor<XidEvent[] | undefined>;
  /** Whether a counter is there at all, so that "none" means none. */
  counted: Accessor<boolean>;
  marks: Accessor<Mark[]>;
}

export function xidEvents(uuid: string): Events {
  const [xids, setXids] = createSignal<XidEvent[]>();
  const [counted, setCounted] = createSignal(false);
  const [error, setError] = createSignal("");
  let running: AbortController | undefined;
  const ask = async (): Promise<void> => {
    running?.abort();
    const mine = (running = new AbortController());
    const window = range.window();
    const counter = `sum by (xid) (watchfire_gpu_xid_errors_total{UUID=${quote(uuid)}})`;
    try {
      const answer = await queryRange(counter, window.start, window.end, window.step, mine.signal);
      if (mine.signal.aborted) return;
      const lines = linesOf({ expr: () => counter, legend: (labels) => labels["xid"] ?? "?" }, answer, window);
      setError("");
      setCounted(lines.length > 0);
      setXids(lines.flatMap((line) => rises(line.values).map(({ index, by }) => ({ time: window.start + index * window.step, xid: line.name, count: by })))
        .sort((left, right) => right.time - left.time));
    } catch (err) {
      if (!isAbort(err) && !mine.signal.aborted) setError(messageOf(err));
    }
  };
  createEffect(on([range.window, refreshed], () => void ask()));
  onCleanup(() => running?.abort());
  return {
    error,
    xids,
    counted,
    marks: () => (xids() ?? []).map(({ time, xid }) => ({ time, text: `XID ${xid}`, level: "critical" as const })),
  };
}

/** The starts of alerts, as marks. */
export function startsOf(alerts: Alert[]): Mark[] {
  return alerts.map((alert) => ({ time: Date.parse(alert.activeAt) / 1000, text: alert.labels["alertname"] ?? "alert", level: severityOf(alert.labels) }));
}

/** Where a counter rises, over gaps too; a fall is a restart and counts from zero. */
export function rises(values: (number | null)[]): { index: number; by: number }[] {
  const found: { index: number; by: number }[] = [];
  let before: number | undefined;
  values.forEach((value, index) => {
    if (value === null) return;
    const by = before === undefined ? 0 : value < before ? value : value - before;
    if (by > 0) found.push({ index, by });
    before = value;
  });
  return found;
}
