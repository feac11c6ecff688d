// Asking again and again: while the page is seen, one request at a time, the last answer kept over a failure.

import { type Accessor, batch, createMemo, createSignal, onCleanup } from "solid-js";
import { ApiError, isAbort, messageOf } from "./api";
import { hubNow, second } from "./time";

export interface Poll<T> {
  /** The last good answer; stays when a later request fails. */
  data: Accessor<T | undefined>;
  /** The same, but only while it is fresh: nothing that is old may pass for now. */
  current: Accessor<T | undefined>;
  /** When the last good answer came, by the hub's clock. */
  at: Accessor<number | undefined>;
  /** Why the latest request failed; `undefined` once one succeeds. */
  error: Accessor<ApiError | undefined>;
  refresh: () => void;
}

/** Older data says nothing about now. */
export const FRESH_SECONDS = 60;
const REPLAY_RETRY_MS = 2000;

export function poll<T>(ask: (signal: AbortSignal) => Promise<T>, every_ms: number): Poll<T> {
  const [data, setData] = createSignal<T>();
  const [error, setError] = createSignal<ApiError>();
  const [at, setAt] = createSignal<number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: AbortController | undefined;

  const run = async (): Promise<void> => {
    clearTimeout(timer);
    running?.abort();
    const mine = (running = new AbortController());
    let wait = every_ms;
    try {
      const answer = await ask(mine.signal);
      if (mine.signal.aborted) return;
      batch(() => {
        setAt(hubNow());
        setData(() => answer);
        setError(undefined);
      });
    } catch (err) {
      if (mine.signal.aborted || isAbort(err)) return;
      const failure = err instanceof ApiError ? err : new ApiError("http", messageOf(err));
      if (failure.kind === "replaying") wait = REPLAY_RETRY_MS;
      setError(failure);
    }
    running = undefined;
    if (!document.hidden) timer = setTimeout(() => void run(), wait);
  };
  const seen = (): void => {
    if (document.hidden) clearTimeout(timer);
    else void run();
  };

  document.addEventListener("visibilitychange", seen);
  onCleanup(() => {
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(timer);
    running?.abort();
  });
  void run();
  const fresh = createMemo(() => !error() || second() - (at() ?? 0) <= FRESH_SECONDS);
  return { data, current: () => (fresh() ? data() : undefined), at, error, refresh: () => void run() };
}
