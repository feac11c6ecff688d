// The hub's HTTP API: Prometheus' JSON forms and Watchfire's own, fetched from the same origin.
//
// Every failure is an `ApiError` with a message a person can act on; `kind` says whether to wait
// (`replaying`, `unreachable`) or to mend something (`query`, `http`).

export type Labels = Record<string, string>;
/** Seconds since 1970 and the value as Prometheus writes it ("NaN" and "+Inf" included). */
export type Point = [number, string];
export interface InstantSample { metric: Labels; value: Point }
export interface RangeSeries { metric: Labels; values: Point[] }

export interface Alert {
  labels: Labels;
  annotations: Labels;
  state: string;
  activeAt: string;
  value: string;
}

export interface Rule {
  type: "alerting" | "recording";
  name: string;
  query: string;
  duration?: number;
  labels?: Labels;
  annotations?: Labels;
  alerts?: Alert[];
  state?: string;
  health: string;
  lastError?: string;
  evaluationTime?: number;
  lastEvaluation?: string;
}
export interface RuleGroup { name: string; file: string; interval: number; rules: Rule[]; lastEvaluation?: string; evaluationTime?: number }

export interface Target {
  labels: Labels;
  scrapePool?: string;
  scrapeUrl: string;
  lastError: string;
  lastScrape: string;
  lastScrapeDuration: number;
  health: string;
  scrapeInterval?: string;
  scrapeTimeout?: string;
}
export interface Targets { activeTargets: Target[]; droppedTargets?: unknown[]; droppedTargetCounts?: Record<string, number> }

export interface Status {
  version: string;
  ready: boolean;
  now: number;
  hostname: string;
  mode: string;
  demo: boolean;
  targets: { up: number; down: number };
  series: number;
  retention: { time_seconds: number; size_bytes: number };
}

export interface Notification {
  time: number;
  receiver: string;
  integration: string;
  status: string;
  alerts: number;
  group: string;
  ok: boolean;
  attempts: number;
  duration_seconds: number;
  error: string | null;
}

export type Failure = "replaying" | "unreachable" | "query" | "timeout" | "http";

export class ApiError extends Error {
  constructor(readonly kind: Failure, message: string, readonly status = 0) {
    super(message);
  }
}

/** The text of any thrown thing, for the screen. */
export function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

export function isAbort(err: unknown): boolean {
  return err instanceof DOMException && err.name === "AbortError";
}

/** A request line longer than this goes as a form POST instead. */
const GET_LENGTH_MAX = 4000;
const REQUEST_TIMEOUT_MS = 30_000;

type Params = [string, string | number][];

async function request(path: string, params: Params, signal?: AbortSignal): Promise<unknown> {
  const form = new URLSearchParams(params.map(([name, value]) => [name, String(value)]));
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const options: RequestInit = { signal: signal ? AbortSignal.any([signal, timeout]) : timeout };
  let address = params.length ? `${path}?${form}` : path;
  if (address.length > GET_LENGTH_MAX) {
    address = path;
    options.method = "POST";
    options.body = form;
  }
  let response: Response;
  try {
    response = await fetch(address, options);
  } catch (err) {
    if (isAbort(err)) throw err;
    if (timeout.aborted) throw new ApiError("timeout", `no answer from ${path} within ${REQUEST_TIMEOUT_MS / 1000} s`);
    throw new ApiError("unreachable", `the hub at ${location.host} does not answer`);
  }
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    if (response.status === 503) throw new ApiError("replaying", text.trim() || "the hub is replaying its data", 503);
    throw new ApiError("http", `${path} answered ${response.status} ${response.statusText} and no JSON`.replace("  ", " "), response.status);
  }
  if (!response.ok) throw failure(path, response.status, body);
  return body;
}

function failure(path: string, status: number, body: unknown): ApiError {
  const { error, errorType } = (body ?? {}) as { error?: string; errorType?: string };
  const message = error ?? `${path} answered ${status}`;
  if (status === 503 && errorType !== "timeout") return new ApiError("replaying", message, status);
  if (errorType === "timeout") return new ApiError("timeout", message, status);
  return new ApiError(status === 400 || status === 422 ? "query" : "http", message, status);
}

async function prometheus<T>(path: string, params: Params, signal?: AbortSignal): Promise<T> {
  const body = (await request(`/api/v1/${path}`, params, signal)) as { status?: string; data?: T; error?: string };
  if (body.status !== "success" || body.data === undefined) {
    throw new ApiError("http", body.error ?? `/api/v1/${path} answered without data`);
  }
  return body.data;
}

/** The instant vector of an expression, now by the hub's clock unless `time` is given. */
export async function query(expr: string, signal?: AbortSignal, time?: number): Promise<InstantSample[]> {
  const params: Params = [["query", expr]];
  if (time !== undefined) params.push(["time", time]);
  const data = await prometheus<{ resultType: string; result: InstantSample[] }>("query", params, signal);
  return data.resultType === "vector" ? data.result : [];
}

/** The matrix of an expression on the grid `start`, `start + step` … `end`, all in seconds. */
export async function queryRange(expr: string, start: number, end: number, step: number, signal?: AbortSignal): Promise<RangeSeries[]> {
  const params: Params = [["query", expr], ["start", start], ["end", end], ["step", step]];
  return (await prometheus<{ result: RangeSeries[] }>("query_range", params, signal)).result;
}

/** Label sets of the series that match any selector within the time range. */
export function series(selectors: string[], start: number, end: number, signal?: AbortSignal): Promise<Labels[]> {
  const params: Params = selectors.map((selector) => ["match[]", selector]);
  return prometheus("series", [...params, ["start", start], ["end", end]], signal);
}

export async function alerts(signal?: AbortSignal): Promise<Alert[]> {
  return (await prometheus<{ alerts: Alert[] }>("alerts", [], signal)).alerts;
}

export async function rules(signal?: AbortSignal): Promise<RuleGroup[]> {
  return (await prometheus<{ groups: RuleGroup[] }>("rules", [], signal)).groups;
}

export function targets(signal?: AbortSignal): Promise<Targets> {
  return prometheus("targets", [], signal);
}

export async function status(signal?: AbortSignal): Promise<Status> {
  return (await request("/api/watchfire/v1/status", [], signal)) as Status;
}

export async function notifications(signal?: AbortSignal): Promise<Notification[]> {
  return ((await request("/api/watchfire/v1/notifications", [], signal)) as { notifications: Notification[] }).notifications;
}

/** A sample's value as a number; `undefined` for NaN and infinities, which are no reading. */
export function numberOf(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
