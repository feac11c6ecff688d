// Why clocks are held down: the bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS as rows that are on or off.

import type { Line } from "./chart";

interface Reason { bit: number; name: string; benign?: boolean }

/** NVIDIA's bits, in the order of gravity to a reader. */
const REASONS: Reason[] = [
  { bit: 0x40, name: "thermal (hardware)" },
  { bit: 0x20, name: "thermal (software)" },
  { bit: 0x80, name: "power brake (supply)" },
  { bit: 0x8, name: "slowdown (hardware)" },
  { bit: 0x4, name: "power cap (software)" },
  { bit: 0x10, name: "sync boost", benign: true },
  { bit: 0x2, name: "application clocks", benign: true },
  { bit: 0x100, name: "display clocks", benign: true },
  { bit: 0x1, name: "idle", benign: true },
];

/** Rows for the reasons seen in the range; those that matter stand even if never seen, as proof that they were looked at. */
export function lanesOf(lines: Line[]): Line[] {
  const mask = lines[0]?.values;
  if (!mask) return [];
  const isOn = (value: number, bit: number): boolean => (value & bit) !== 0;
  const always = 0x40 | 0x20 | 0x8 | 0x4;
  return REASONS
    .filter(({ bit }) => (bit & always) !== 0 || mask.some((value) => value !== null && isOn(value, bit)))
    .map(({ bit, name, benign }) => ({
      name: benign ? `${name}, benign` : name,
      values: mask.map((value) => (value === null ? null : isOn(value, bit) ? 1 : 0)),
    }));
}

/** Drops the lines that never leave zero, unless all do: then the first stand for them. */
export function withoutIdleLines(lines: Line[]): Line[] {
  const busy = lines.filter((line) => line.values.some((value) => value !== null && value > 0));
  return busy.length > 0 ? busy : lines.slice(0, 4);
}
