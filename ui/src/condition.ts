// The condition of a GPU: the worst that its firing alerts say of it, and healthy only while data is fresh.

import type { Alert } from "./api";

export type Condition = "healthy" | "warm" | "degraded" | "throttled" | "unknown" | "faulty" | "hung" | "lost";

/** From best to worst. */
export const CONDITIONS: Condition[] = ["healthy", "warm", "degraded", "throttled", "unknown", "faulty", "hung", "lost"];

export function worst(conditions: Condition[]): Condition {
  return conditions.reduce((left, right) => (CONDITIONS.indexOf(right) > CONDITIONS.indexOf(left) ? right : left), "healthy");
}

/** What one firing alert says of its GPU; `undefined` if it is for information only. */
export function conditionOf(alert: Alert): Condition | undefined {
  const named = alert.labels["condition"] as Condition | undefined;
  if (named && CONDITIONS.includes(named)) return named;
  switch (severityOf(alert.labels)) {
    case "critical": return "faulty";
    case "warning": return "warm";
    default: return undefined;
  }
}

export type Severity = "critical" | "warning" | "info";
export const SEVERITIES: Severity[] = ["critical", "warning", "info"];

/** `page`, `error` and the like are other people's words for ours; what is unnamed warns. */
export function severityOf(labels: Record<string, string>): Severity {
  switch (labels["severity"]?.toLowerCase()) {
    case "critical": case "page": case "error": case "emergency": case "high": return "critical";
    case "info": case "notice": case "low": return "info";
    default: return "warning";
  }
}

/** Severity `none` is no trouble but a sign of life: the Watchdog alert, which always fires. */
export function isHeartbeat(alert: Alert): boolean {
  return alert.labels["severity"]?.toLowerCase() === "none";
}
