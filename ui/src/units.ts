// How values are written: always with their unit, and "—" (never 0) where there is none.

export type Unit =
  | "celsius" | "watts" | "mebibytes" | "bytes" | "bytes_per_second" | "megahertz"
  | "percent" | "seconds" | "count" | "per_second" | "generation" | "lanes" | "load";

export const ABSENT = "—";
/** Keeps number and unit on one line. */
const NB = "\u202f";

/** The unit as a panel's title names it. */
export const UNIT_NAME: Record<Unit, string> = {
  celsius: "°C",
  watts: "W",
  mebibytes: "GiB",
  bytes: "bytes",
  bytes_per_second: "bytes/s",
  megahertz: "MHz",
  percent: "%",
  seconds: "seconds",
  count: "count",
  per_second: "per second",
  generation: "generation",
  lanes: "lanes",
  load: "processes",
};

export function isBinary(unit: Unit): boolean {
  return unit === "mebibytes" || unit === "bytes" || unit === "bytes_per_second";
}

function digits(value: number, places: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: places, useGrouping: Math.abs(value) >= 10_000 });
}

/** Three significant figures or so: 0.42, 4.2, 42. */
function significant(value: number): string {
  const size = Math.abs(value);
  return digits(value, size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4);
}

function binary(bytes: number, tail: string): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes;
  let power = 0;
  while (Math.abs(value) >= 1024 && power < names.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${power === 0 ? digits(value, 0) : significant(value)}${NB}${names[power]}${tail}`;
}

/** A value with its unit; "—" where there is none. */
export function format(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return ABSENT;
  switch (unit) {
    case "celsius": return `${digits(value, 0)}${NB}°C`;
    case "watts": return `${digits(value, Math.abs(value) < 10 ? 1 : 0)}${NB}W`;
    case "mebibytes": return binary(value * 1024 * 1024, "");
    case "bytes": return binary(value, "");
    case "bytes_per_second": return binary(value, "/s");
    case "megahertz": return `${digits(value, 0)}${NB}MHz`;
    case "percent": return `${digits(value, Math.abs(value) < 10 && value !== 0 ? 1 : 0)}${NB}%`;
    case "seconds": return duration(value);
    case "count": return significant(value);
    case "per_second": return `${significant(value)}/s`;
    case "generation": return `gen${NB}${digits(value, 0)}`;
    case "lanes": return `×${digits(value, 0)}`;
    case "load": return digits(value, 2);
  }
}

/** A length of time in its two leading units: "340 ms", "12 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size === 0) return `0${NB}s`;
  if (size < 0.001) return `${sign}${significant(size * 1e6)}${NB}µs`;
  if (size < 1) return `${sign}${significant(size * 1000)}${NB}ms`;
  if (size < 10) return `${sign}${digits(size, 1)}${NB}s`;
  const whole = Math.round(size);
  if (whole < 60) return `${sign}${whole}${NB}s`;
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor((whole % 86400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return sign + parts.slice(first, first + 2).filter(([count]) => count > 0).map(([count, name]) => `${count}${NB}${name}`).join(" ");
}

/** "1 GPU", "8 GPUs". */
export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : many}`;
}
