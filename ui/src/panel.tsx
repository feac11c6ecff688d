// A panel: title, unit and queries; and its states: loading, an error with its text, empty with a reason, data.

import { createEffect, createSignal, type JSX, Match, on, onCleanup, Show, Switch } from "solid-js";
import { type Labels, isAbort, messageOf, numberOf, queryRange, type RangeSeries, ApiError } from "./api";
import { Chart, type Line, type Mark } from "./chart";
import { sampleWindow } from "./metrics";
import { range, refreshed, type Window } from "./time";
import { duration, UNIT_NAME, type Unit } from "./units";

export interface Query {
  expr: (window: Window) => string;
  /** The line's name, or how its labels make one. */
  legend: string | ((labels: Labels) => string);
  limit?: boolean;
  scale?: number;
}

export interface PanelProps {
  title: string;
  unit: Unit;
  queries: Query[];
  /** Why there may be nothing to draw; shown in the empty panel. */
  absent: string | (() => string);
  kind?: "line" | "stack" | "lanes";
  min?: number;
  max?: number;
  marks?: Mark[];
  /** Turns the fetched lines into the drawn ones (such as bits into lanes). */
  shape?: (lines: Line[]) => Line[];
  /** How points are folded on a coarse grid: "average", "highest". */
  folded?: string;
  wide?: boolean;
}

/** More lines than this are noise; the largest are drawn and the rest is counted. */
const LINES_MAX = 12;
const RETRY_MS = 3000;

interface Drawn {
  lines: Line[];
  window: Window;
  left_out: number;
}

export function Panel(props: PanelProps): JSX.Element {
  const [drawn, setDrawn] = createSignal<Drawn>();
  const [error, setError] = createSignal<ApiError>();
  const [asking, setAsking] = createSignal(false);
  let running: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const ask = async (): Promise<void> => {
    clearTimeout(timer);
    running?.abort();
    const mine = (running = new AbortController());
    const window = range.window();
    setAsking(true);
    try {
      const answers = await Promise.all(props.queries.map((query) => queryRange(query.expr(window), window.start, window.end, window.step, mine.signal)));
      if (mine.signal.aborted) return;
      const found = props.queries.flatMap((query, i) => linesOf(query, answers[i] ?? [], window));
      const lines = props.shape ? props.shape(found) : found;
      setDrawn({ ...largest(lines), window });
      setError(undefined);
      setAsking(false);
    } catch (err) {
      if (mine.signal.aborted || isAbort(err)) return;
      const failure = err instanceof ApiError ? err : new ApiError("http", messageOf(err));
      mine.abort();
      setError(failure);
      setAsking(false);
      if (failure.kind === "replaying" || failure.kind === "unreachable") timer = setTimeout(() => void ask(), RETRY_MS);
    }
  };
  createEffect(on([range.window, refreshed, () => props.queries], () => void ask()));
  onCleanup(() => {
    clearTimeout(timer);
    running?.abort();
  });

  /** An error that leaves nothing to show; what was drawn before stays while the hub is away. */
  const lost = (): ApiError | undefined => (drawn() && error() && error()?.kind !== "query" && error()?.kind !== "http" ? undefined : error());
  const coarse = (): boolean => range.window().step > sampleWindow();
  const reason = (): string => (typeof props.absent === "function" ? props.absent() : props.absent);
  return (
    <section class="panel" classList={{ wide: !!props.wide, asking: asking() && !drawn() }} aria-busy={asking()} data-state={error() ? "error" : !drawn() ? "loading" : drawn()?.lines.length ? "data" : "empty"}>
      <header>
        <h3>{props.title}</h3>
        <Show when={props.kind !== "lanes"}><span class="unit">{UNIT_NAME[props.unit]}</span></Show>
        <Show when={coarse() && props.folded}><span class="folded">{props.folded} of each {duration(range.window().step)}</span></Show>
        <Show when={drawn()?.left_out}>{(count) => <span class="folded">{count()} smaller lines not drawn</span>}</Show>
        <Show when={!lost() && error()}>{(err) => <span class="problem" title={err().message}>not updated: {err().kind === "replaying" ? "the hub replays its data" : "no answer"}</span>}</Show>
      </header>
      <Switch>
        <Match when={lost()}>
          {(err) => (
            <div class="note" classList={{ bad: err().kind !== "replaying" }} role="status">
              <strong>{err().kind === "replaying" ? "Replaying…" : err().kind === "query" ? "The query failed" : "No answer"}</strong>
              <span>{err().message}</span>
            </div>
          )}
        </Match>
        <Match when={!drawn()}><div class="note quiet" role="status">Loading…</div></Match>
        <Match when={drawn()?.lines.length === 0}>
          <div class="note" role="status"><strong>No data in this range</strong><span>{reason()}</span></div>
        </Match>
        <Match when={drawn()}>
          {(data) => <Chart title={props.title} unit={props.unit} kind={props.kind} min={props.min} max={props.max} marks={props.marks} window={data().window} lines={data().lines} />}
        </Match>
      </Switch>
    </section>
  );
}

/** Puts the points of an answer on the grid; a point that is missing, or no number, is `null`. */
export function linesOf(query: Query, answer: RangeSeries[], window: Window): Line[] {
  const count = Math.round((window.end - window.start) / window.step) + 1;
  return answer.map(({ metric, values }) => {
    const column: (number | null)[] = new Array<number | null>(count).fill(null);
    for (const [time, text] of values) {
      const value = numberOf(text);
      const index = Math.round((time - window.start) / window.step);
      if (value !== undefined && index >= 0 && index < count) column[index] = value * (query.scale ?? 1);
    }
    const name = typeof query.legend === "string" ? query.legend : query.legend(metric);
    return query.limit ? { name, values: column, limit: true } : { name, values: column };
  });
}

function largest(lines: Line[]): { lines: Line[]; left_out: number } {
  if (lines.length <= LINES_MAX) return { lines, left_out: 0 };
  const size = (line: Line): number => line.values.reduce<number>((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
  const kept = new Set([...lines].sort((left, right) => size(right) - size(left)).slice(0, LINES_MAX));
  return { lines: lines.filter((line) => kept.has(line)), left_out: lines.length - LINES_MAX };
}
