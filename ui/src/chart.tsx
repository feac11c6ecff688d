// Lines over time by uPlot: one crosshair over all charts of the page, a drag sets the page's range,
// a gap in the data is a gap in the line and is hatched where nothing at all is known.
//
// `data-gaps` on the element counts the stretches without data after a series' first point.

import { createEffect, createSignal, Index, type JSX, on, onCleanup, onMount, Show, untrack } from "solid-js";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { drawLanes, drawMarks, hatchUnknown, nameUnknown } from "./paint";
import { color, themeVersion } from "./theme";
import { absolute, setAbsolute, type Window } from "./time";
import { ABSENT, format, isBinary, type Unit } from "./units";

export interface Line {
  name: string;
  /** One value per point of the grid, `null` where there is none. */
  values: (number | null)[];
  /** A limit is drawn dashed and does not widen the scale beyond need. */
  limit?: boolean;
  /** Another unit than the panel's, for the legend alone. */
  unit?: Unit;
}

/** A moment drawn as a vertical line on every chart of the page. */
export interface Mark {
  time: number;
  text: string;
  level: "critical" | "warning" | "info";
}

export interface ChartProps {
  title: string;
  unit: Unit;
  window: Window;
  lines: Line[];
  /** `lanes`: each line is a row that is on where its value is above 0. */
  kind?: "line" | "stack" | "lanes" | undefined;
  /** Fixed scale, such as 0–100 %. */
  min?: number | undefined;
  max?: number | undefined;
  marks?: Mark[] | undefined;
}

const HEIGHT = 168;
const LANE_HEIGHT = 22;
/** One left edge for most charts, so that a moment lies under itself from chart to chart. */
const LABEL_WIDTH = 52;
const SYNC = "page";
/** As many line colours as the style sheet has. */
export const COLORS = 8;

export function gridOf({ start, end, step }: Window): number[] {
  return Array.from({ length: Math.round((end - start) / step) + 1 }, (_, i) => start + i * step);
}

/** Stretches of missing points after a line's first point; a point still under way at the end is none. */
export function gapsIn(values: (number | null)[]): number {
  let gaps = 0;
  let last = values.findIndex((value) => value !== null);
  if (last < 0) return 0;
  for (let i = last + 1; i < values.length; i++) {
    if (values[i] === null) continue;
    if (i - last > 1) gaps += 1;
    last = i;
  }
  return gaps + (values.length - 1 - last > 1 ? 1 : 0);
}

export function Chart(props: ChartProps): JSX.Element {
  let holder!: HTMLDivElement;
  let plot: uPlot | undefined;
  const [cursor, setCursor] = createSignal<number | undefined>();
  const [hidden, setHidden] = createSignal<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = createSignal<string>();

  const gaps = (): number => Math.max(0, ...props.lines.map((line) => gapsIn(line.values)));
  const at = (line: Line): number | null => {
    const index = cursor();
    return index === undefined ? latest(line) : (line.values[index] ?? null);
  };
  const time = (): number => props.window.start + (cursor() ?? 0) * props.window.step;
  /** The names of the marks under the crosshair. */
  const nearby = (): string => {
    const reach = Math.max(props.window.step, (props.window.end - props.window.start) / 120);
    return [...new Set((props.marks ?? []).filter((mark) => Math.abs(mark.time - time()) <= reach).map(({ text }) => text))].join(", ");
  };
  const summary = (): string =>
    `${props.title}: ${props.lines.slice(0, 6).map((line) => `${line.name} ${format(latest(line), line.unit ?? props.unit)}`).join(", ")}` +
    `${gaps() > 0 ? `; ${gaps()} gaps` : ""}. Arrow keys move the crosshair, Enter zooms in.`;

  const draw = (): void => {
    plot?.destroy();
    plot = new uPlot(options(props, holder, hidden(), setCursor), dataOf(props, hidden()), holder);
  };

  onMount(() => {
    // What the drawing is made of: same shape, new numbers only is a setData, anything else a new plot.
    createEffect(on([() => shapeOf(props), hidden, themeVersion], draw));
    createEffect(on([() => props.lines, () => props.window, () => props.marks], () => {
      if (!plot) return;
      plot.batch(() => {
        plot?.setData(dataOf(props, untrack(hidden)), false);
        plot?.setScale("x", { min: props.window.start, max: props.window.end });
      });
      plot.redraw(true, true);
    }, { defer: true }));
    createEffect(on(focused, (name) => {
      const index = props.lines.findIndex((line) => line.name === name);
      plot?.setSeries(index < 0 ? null : index + 1, { focus: true });
    }, { defer: true }));
    const resized = new ResizeObserver(() => plot?.setSize({ width: holder.clientWidth, height: heightOf(props) }));
    resized.observe(holder);
    onCleanup(() => {
      resized.disconnect();
      plot?.destroy();
    });
  });

  const toggle = (name: string): void => {
    const next = new Set(hidden());
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };

  return (
    <div class="chart" data-gaps={gaps()} data-points={props.lines[0]?.values.length ?? 0}>
      <div
        class="plot" ref={holder} tabindex="0" role="img" aria-label={summary()}
        onKeyDown={(event) => { if (plot && moveByKey(event, plot, props.window)) event.preventDefault(); }}
        onBlur={() => plot && moveCursor(plot, -10)}
      />
      <div class="legend" role="list">
        <Index each={props.lines}>
          {(line, index) => (
            <button
              type="button" role="listitem" class="key" classList={{ off: hidden().has(line().name) }} aria-pressed={!hidden().has(line().name)}
              title={hidden().has(line().name) ? `show ${line().name}` : `hide ${line().name}`}
              onClick={() => toggle(line().name)} onMouseEnter={() => setFocused(line().name)} onMouseLeave={() => setFocused(undefined)}
            >
              <span class="swatch" classList={{ dashed: !!line().limit }} data-color={line().limit ? "limit" : index % COLORS} />
              <span class="name">{line().name}</span>
              <span class="value" classList={{ absent: at(line()) === null }}>
                {props.kind === "lanes" ? laneText(at(line())) : format(at(line()), line().unit ?? props.unit)}
              </span>
            </button>
          )}
        </Index>
        <Show when={cursor() !== undefined}>
          <span class="at"><Show when={nearby()}><strong>{nearby()}</strong> </Show><time>{absolute(time())}</time></span>
        </Show>
      </div>
    </div>
  );
}

function laneText(value: number | null): string {
  return value === null ? ABSENT : value > 0 ? "active" : "no";
}

/** The newest point, if it belongs to the end of the range; an older one is no present value. */
function latest(line: Line): number | null {
  return line.values.at(-1) ?? line.values.at(-2) ?? null;
}

function shapeOf(props: ChartProps): string {
  return [props.kind, props.unit, props.min, props.max, ...props.lines.map((line) => `${line.name}${line.limit ? "!" : ""}`)].join("\n");
}

function heightOf(props: ChartProps): number {
  return props.kind === "lanes" ? Math.max(2, props.lines.length) * LANE_HEIGHT + 30 : HEIGHT;
}

/** The columns to draw: grid first; stacked lines are summed from the first up. */
function dataOf(props: ChartProps, hidden: ReadonlySet<string>): uPlot.AlignedData {
  const grid = gridOf(props.window);
  const columns = props.lines.map((line) => (hidden.has(line.name) ? grid.map(() => null) : line.values));
  if (props.kind !== "stack") return [grid, ...columns];
  const sum = grid.map(() => 0);
  return [grid, ...columns.map((column) => column.map((value, i) => {
    if (value === null) return null;
    return (sum[i] = (sum[i] ?? 0) + value);
  }))];
}

function moveByKey(event: KeyboardEvent, plot: uPlot, { start, end, step }: Window): boolean {
  const width = plot.bbox.width / devicePixelRatio;
  const points = plot.data[0].length;
  const here = plot.cursor.idx ?? points - 1;
  const far = event.shiftKey ? 10 : 1;
  let to: number;
  switch (event.key) {
    case "ArrowLeft": to = here - far; break;
    case "ArrowRight": to = here + far; break;
    case "Home": to = 0; break;
    case "End": to = points - 1; break;
    case "Escape": moveCursor(plot, -10); return true;
    case "Enter": {
      const middle = start + here * step;
      setAbsolute(middle - (end - start) / 8, middle + (end - start) / 8);
      return true;
    }
    default: return false;
  }
  to = Math.max(0, Math.min(points - 1, to));
  moveCursor(plot, Math.min(width - 1, plot.valToPos(start + to * step, "x")));
  return true;
}

/** Moves the crosshair, here and on the page's other charts. */
function moveCursor(plot: uPlot, left: number): void {
  // The third parameter publishes to the synced charts; uPlot's types leave it out.
  (plot.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void)({ left, top: left < 0 ? -10 : 10 }, true, true);
}

function options(props: ChartProps, holder: HTMLElement, hidden: ReadonlySet<string>, onCursor: (index: number | undefined) => void): uPlot.Options {
  const ink = color("--ink-2");
  const grid = { stroke: color("--grid"), width: 1 };
  const lanes = props.kind === "lanes";
  const font = "11px system-ui, sans-serif";
  return {
    width: holder.clientWidth || 400,
    height: heightOf(props),
    // Room above the plot for the names of marks.
    padding: [() => (props.marks?.length ? 20 : 8), 12, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.25 },
    cursor: {
      // A drag selects a time on this chart and, by the range in the address, zooms all of them.
      drag: { x: true, y: false, setScale: false, dist: 4 },
      sync: { key: SYNC, setSeries: false },
      points: lanes ? { show: false } : { size: 6 },
      focus: { prox: lanes ? -1 : 16 },
      y: false,
    },
    scales: {
      x: { time: true, range: () => [props.window.start, props.window.end] },
      y: lanes ? { range: [0, props.lines.length] } : { range: (_, low, high) => scaleOf(props, low, high) },
    },
    axes: [
      { stroke: ink, grid, ticks: { show: false }, font, size: 26, space: 70, values: timeLabels },
      lanes
        ? { stroke: ink, grid: { show: false }, ticks: { show: false }, font, size: laneLabelWidth, splits: () => props.lines.map((_, i) => props.lines.length - i - 0.5), values: () => props.lines.map((line) => line.name) }
        : { stroke: ink, grid, ticks: { show: false }, font, size: labelWidth, space: 32, incrs: isBinary(props.unit) ? binaryIncrements() : undefined, values: (_, splits) => splits.map((value) => format(value, props.unit)) },
    ],
    series: [{}, ...props.lines.map((line, index) => seriesOf(props, line, index, lanes, hidden))],
    bands: props.kind === "stack" ? props.lines.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) : [],
    hooks: {
      drawClear: [(plot) => hatchUnknown(plot, props)],
      draw: [(plot) => {
        if (lanes) drawLanes(plot, props, hidden);
        nameUnknown(plot, props);
        drawMarks(plot, props.marks ?? []);
      }],
      setCursor: [(plot) => onCursor(plot.cursor.left !== undefined && plot.cursor.left >= 0 ? (plot.cursor.idx ?? undefined) : undefined)],
      setSelect: [(plot) => {
        if (plot.select.width < 4) return;
        const from = plot.posToVal(plot.select.left, "x");
        const to = plot.posToVal(plot.select.left + plot.select.width, "x");
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        setAbsolute(from, to);
      }],
    },
  };
}

function seriesOf(props: ChartProps, line: Line, index: number, lanes: boolean, hidden: ReadonlySet<string>): uPlot.Series {
  const stroke = line.limit ? color("--limit") : color(`--line-${index % COLORS}`);
  const series: uPlot.Series = {
    label: line.name,
    stroke,
    width: line.limit ? 1 : 1.5,
    spanGaps: false,
    show: !hidden.has(line.name),
    // A point between two gaps has no line; a dot shows it.
    points: { show: false, filter: (plot, i) => lonely(plot.data[i] as (number | null)[]) },
  };
  if (line.limit) series.dash = [5, 4];
  else if (!lanes) series.points = { show: true, size: 3.5, width: 0, fill: stroke, filter: (plot, i) => lonely(plot.data[i] as (number | null)[]) };
  if (props.kind === "stack") series.fill = translucent(stroke, 0.55);
  else if (props.lines.length === 1 && !lanes) series.fill = translucent(stroke, 0.1);
  if (lanes) series.paths = () => null;
  return series;
}

function lonely(values: (number | null)[]): number[] {
  return values.flatMap((value, i) => (value !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : []));
}

/** "#rrggbb" with an alpha. */
function translucent(hex: string, alpha: number): string {
  return hex + Math.round(alpha * 255).toString(16).padStart(2, "0");
}

/** From zero where that is near, with room above; a fixed end only as far as the data needs. */
function scaleOf(props: ChartProps, low: number | null, high: number | null): [number, number] {
  let bottom = low ?? 0;
  let top = high ?? 1;
  if (props.min !== undefined) bottom = Math.min(props.min, bottom);
  if (props.max !== undefined) top = Math.max(props.max, top);
  if (props.min === undefined && bottom > 0 && bottom < top * 0.6) bottom = 0;
  if (top === bottom) top = bottom + (Math.abs(bottom) * 0.1 || 1);
  const room = (top - bottom) * 0.06;
  return [props.min === bottom || bottom === 0 ? bottom : bottom - room, props.max === top ? top : top + room];
}

function binaryIncrements(): number[] {
  return Array.from({ length: 50 }, (_, power) => 2 ** power);
}

function labelWidth(plot: uPlot, labels: string[] | null): number {
  const context = plot.ctx;
  context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  return Math.ceil(Math.max(LABEL_WIDTH, ...(labels ?? []).map((label) => context.measureText(label ?? "").width / devicePixelRatio)) + 14);
}

function laneLabelWidth(plot: uPlot, labels: string[] | null): number {
  return Math.min(labelWidth(plot, labels), plot.width * 0.4);
}

/** Hours and minutes, the date at its change; 24-hour clock. */
function timeLabels(_: uPlot, splits: number[], __: number, space: number, increment: number): string[] {
  void space;
  let shown = "";
  return splits.map((seconds) => {
    const date = new Date(seconds * 1000);
    const two = (value: number): string => String(value).padStart(2, "0");
    const day = `${date.toLocaleString("en", { month: "short" })} ${date.getDate()}`;
    if (increment >= 86_400) return day;
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}${increment < 60 ? `:${two(date.getSeconds())}` : ""}`;
    const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
    if (midnight && shown !== day) {
      shown = day;
      return day;
    }
    return clock;
  });
}
