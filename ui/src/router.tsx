// Real paths by the History API; the hub answers those that `app.tsx` matches with index.html, others with 404.

import { type Accessor, createMemo, createRoot, createSignal } from "solid-js";

const [address, setAddress] = createSignal(location.pathname + location.search);

export const path: Accessor<string> = createRoot(() => createMemo(() => address().split("?")[0] ?? "/"));
export const search: Accessor<string> = createRoot(() => createMemo(() => {
  const at = address().indexOf("?");
  return at < 0 ? "" : address().slice(at);
}));

export function searchParam(name: string): string | undefined {
  return new URLSearchParams(search()).get(name) ?? undefined;
}

export function go(to: string): void {
  if (to === address()) return;
  history.pushState(null, "", to);
  const samePath = to.split("?")[0] === path();
  setAddress(to);
  if (!samePath) {
    scrollTo(0, 0);
    // A reader of the screen, and the keyboard, start at the new page's heading.
    queueMicrotask(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
}

/** Sets or (with `undefined`) removes parts of the search; a step in the history, so that "back" undoes a zoom. */
export function replaceSearch(changes: Record<string, string | undefined>): void {
  const params = new URLSearchParams(search());
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) params.delete(name);
    else params.set(name, value);
  }
  // Colons are legal in a query and make a shared address readable.
  const text = params.toString().replaceAll("%3A", ":");
  go(path() + (text ? `?${text}` : ""));
}

/** The path with the page's range, so that moving between pages keeps the time looked at. */
export function withRange(to: string): string {
  const params = new URLSearchParams(search());
  const kept = ["from", "to"].flatMap((name) => (params.has(name) ? [`${name}=${params.get(name)}`] : []));
  return kept.length ? `${to}?${kept.join("&")}` : to;
}

export const gpuPath = (uuid: string): string => `/gpu/${encodeURIComponent(uuid)}`;
export const hostPath = (host: string): string => `/host/${encodeURIComponent(host)}`;

/** The rest of the path behind a prefix, decoded: `rest("/gpu/")`. */
export function rest(prefix: string): string | undefined {
  if (!path().startsWith(prefix)) return undefined;
  try {
    return decodeURIComponent(path().slice(prefix.length)) || undefined;
  } catch {
    return undefined;
  }
}

/** Follows links of this page without a reload; leaves modified clicks and foreign addresses to the browser. */
export function followLinks(): void {
  addEventListener("popstate", () => setAddress(location.pathname + location.search));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest("a");
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/api/") || link.pathname.startsWith("/-/") || link.dataset["native"] !== undefined) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
