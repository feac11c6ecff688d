// What a page's subject exports, asked of the series index: its labels, and the names it has series of.

import { type Accessor, createMemo } from "solid-js";
import { type Labels, series } from "./api";
import { poll } from "./poll";
import { hubNow, range } from "./time";

export interface Identity {
  /** The newest known value of a label over all series. */
  label: (name: string) => string | undefined;
  has: (metric: string) => boolean;
  known: Accessor<boolean>;
  simulated: Accessor<boolean>;
}

const REFRESH_MS = 60_000;
const SEEN_SECONDS = 86_400;

export function identify(selector: string): Identity {
  const found = poll((signal) => {
    const { start, end } = range.window();
    return series([selector], Math.min(start, hubNow() - SEEN_SECONDS), Math.max(end, hubNow()), signal);
  }, REFRESH_MS);
  const names = createMemo(() => new Set((found.data() ?? []).map((labels) => labels["__name__"] ?? "")));
  const withLabel = (name: string): Labels | undefined => (found.data() ?? []).findLast((labels) => labels[name]);
  return {
    label: (name) => withLabel(name)?.[name],
    has: (metric) => names().has(metric),
    known: () => found.data() !== undefined,
    simulated: createMemo(() => (found.data() ?? []).some((labels) => labels["simulated"] === "true")),
  };
}
