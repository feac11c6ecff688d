// What a chart draws beside its lines: stretches without data, rows that are on or off, and marked moments.

import type uPlot from "uplot";
import { type ChartProps, COLORS, type Mark } from "./chart";
import { color } from "./theme";
import { hubNow } from "./time";

/** The times of which no line knows anything, up to now. */
function unknownStretches(props: ChartProps): [number, number][] {
  const columns = props.lines.filter((line) => !line.limit).map((line) => line.values);
  const { start, end, step } = props.window;
  const count = columns[0]?.length ?? 0;
  const known = (i: number): boolean => columns.some((column) => (column[i] ?? null) !== null);
  const found: [number, number][] = [];
  let from = -1;
  for (let i = 0; i <= count; i++) {
    const missing = i < count && !known(i);
    if (missing && from < 0) from = i;
    if (missing || from < 0) continue;
    // The newest point may still be under way.
    if (i < count || i - from > 1) {
      found.push([from === 0 ? start : start + (from - 0.5) * step, i === count ? Math.min(end, hubNow()) : start + (i - 0.5) * step]);
    }
    from = -1;
  }
  return found;
}

/** Hatches what nobody knows: absence is news too. */
export function hatchUnknown(plot: uPlot, props: ChartProps): void {
  const { top, height } = plot.bbox;
  const context = plot.ctx;
  for (const [from, to] of unknownStretches(props)) {
    const left = plot.valToPos(from, "x", true);
    const width = plot.valToPos(to, "x", true) - left;
    if (width <= 0) continue;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.strokeStyle = color("--hatch");
    context.lineWidth = devicePixelRatio;
    context.beginPath();
    for (let x = left - height; x < left + width; x += 7 * devicePixelRatio) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.stroke();
    context.restore();
  }
}

/** "no data" over each hatched stretch that has the room. */
export function nameUnknown(plot: uPlot, props: ChartProps): void {
  const { top, height } = plot.bbox;
  const context = plot.ctx;
  const px = devicePixelRatio;
  context.save();
  context.font = `${11 * px}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [from, to] of unknownStretches(props)) {
    const left = plot.valToPos(from, "x", true);
    const right = plot.valToPos(to, "x", true);
    if (right - left < 64 * px) continue;
    const middle = (left + right) / 2;
    const half = context.measureText("no data").width / 2 + 5 * px;
    context.fillStyle = color("--panel");
    context.fillRect(middle - half, top + height / 2 - 9 * px, 2 * half, 18 * px);
    context.fillStyle = color("--ink-2");
    context.fillText("no data", middle, top + height / 2);
  }
  context.restore();
}

/** Rows that are on or off; a point stands for the step before it. */
export function drawLanes(plot: uPlot, props: ChartProps, hidden: ReadonlySet<string>): void {
  const { step } = props.window;
  const context = plot.ctx;
  const height = Math.min(12 * devicePixelRatio, (plot.bbox.height / props.lines.length) * 0.7);
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  context.clip();
  props.lines.forEach((line, row) => {
    if (hidden.has(line.name)) return;
    const middle = plot.valToPos(props.lines.length - row - 0.5, "y", true);
    line.values.forEach((value, i) => {
      if (value === null) return;
      const time = props.window.start + i * step;
      const left = Math.floor(plot.valToPos(time - step, "x", true));
      const right = Math.ceil(plot.valToPos(time, "x", true));
      const on = value > 0;
      context.fillStyle = on ? color(`--line-${row % COLORS}`) : color("--grid");
      const thick = on ? height : Math.max(1, 2 * devicePixelRatio);
      context.fillRect(left, middle - thick / 2, Math.max(right - left, devicePixelRatio * 2), thick);
    });
  });
  context.restore();
}

/** Moments as vertical lines, with their names above. */
export function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { left, top, width, height } = plot.bbox;
  const context = plot.ctx;
  const px = devicePixelRatio;
  context.save();
  context.font = `600 ${10 * px}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "bottom";
  const seen = marks
    .map((mark) => ({ ...mark, x: plot.valToPos(mark.time, "x", true) }))
    .filter(({ x }) => x >= left && x <= left + width)
    .sort((one, other) => one.time - other.time);
  for (const { x, level } of seen) {
    context.strokeStyle = context.fillStyle = color(`--${level}`);
    context.lineWidth = px;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
    context.beginPath();
    context.moveTo(x - 4 * px, top - px);
    context.lineTo(x + 4 * px, top - px);
    context.lineTo(x, top + 5 * px);
    context.fill();
  }
  // Names stand above the plot, those of one moment together; one without room is left to the crosshair.
  let end = -Infinity;
  for (const group of groupsOf(seen, 14 * px)) {
    const names = [...new Set(group.map(({ text }) => text))];
    const name = names.length > 2 ? `${names.length} events` : names.join(" · ");
    const wide = context.measureText(name).width;
    const middle = group[0]?.x ?? 0;
    const at = Math.max(left, Math.min(middle - wide / 2, left + width - wide));
    if (at < end + 8 * px) continue;
    context.fillStyle = color(`--${group[0]?.level ?? "info"}`);
    context.fillText(name, at, top - 3 * px);
    end = at + wide;
  }
  context.restore();
}

/** Neighbours no further than `reach` from the first of them. */
function groupsOf<T extends { x: number }>(sorted: T[], reach: number): T[][] {
  const groups: T[][] = [];
  for (const item of sorted) {
    const group = groups.at(-1);
    if (group?.[0] && item.x - group[0].x <= reach) group.push(item);
    else groups.push([item]);
  }
  return groups;
}
