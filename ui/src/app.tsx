// The frame of every page: navigation, and above all else the answer to "is anything wrong?".

import { createEffect, ErrorBoundary, For, type JSX, lazy, Match, Show, Suspense, Switch } from "solid-js";
import { messageOf } from "./api";
import { dataAge, firing, hub, simulated, targetPoll, verdict } from "./fleet";
import { Flame, Icon } from "./icons";
import { KeyHelp, showHelp } from "./keys";
import { Alerts } from "./pages/alerts";
import { Fleet } from "./pages/fleet";
import { GpuPage } from "./pages/gpu";
import { HostPage } from "./pages/host";
import { Targets } from "./pages/targets";
import { path, rest, withRange } from "./router";
import { isDark, theme, toggleTheme } from "./theme";
import { duration } from "./units";
import { SimulatedBadge } from "./value";

/** Read seldom: loaded when opened. */
const Runbook = lazy(() => import("./pages/runbook").then(({ Runbook: page }) => ({ default: page })));

export function App(): JSX.Element {
  createEffect(() => {
    const { level, answer } = verdict();
    const sign = { critical: "✖ ", warning: "▲ ", unknown: "? ", healthy: "", wait: "" }[level];
    document.title = level === "healthy" || level === "wait" ? "Watchfire" : `${sign}${answer} · Watchfire`;
  });
  return (
    <>
      <a class="skip" href="#main" data-native="">Skip to the page</a>
      <TopBar />
      <VerdictBar />
      <main id="main" tabindex="-1">
        <ErrorBoundary fallback={(err: unknown) => <div class="note bad" role="alert"><strong>This page broke</strong><span>{messageOf(err)}</span></div>}>
          <Switch fallback={<NoSuchPage />}>
            <Match when={path() === "/"}><Fleet /></Match>
            <Match when={rest("/gpu/")} keyed>{(uuid) => <GpuPage uuid={uuid} />}</Match>
            <Match when={rest("/host/")} keyed>{(host) => <HostPage host={host} />}</Match>
            <Match when={path() === "/alerts"}><Alerts /></Match>
            <Match when={rest("/runbooks/")} keyed>{(name) => <Suspense><Runbook name={name} /></Suspense>}</Match>
            <Match when={path() === "/targets"}><Targets /></Match>
          </Switch>
        </ErrorBoundary>
      </main>
      <KeyHelp />
    </>
  );
}

function NoSuchPage(): JSX.Element {
  return <div class="note"><strong>There is no page at {path()}</strong><span><a href="/">The fleet</a> is a good start.</span></div>;
}

function TopBar(): JSX.Element {
  const down = (): number => targetPoll.data()?.activeTargets.filter((target) => target.health === "down").length ?? 0;
  const pages: { to: string; name: string; count?: () => number }[] = [
    { to: "/", name: "Fleet" },
    { to: "/alerts", name: "Alerts", count: () => firing().length },
    { to: "/targets", name: "Targets", count: down },
  ];
  const isHere = (to: string): boolean => (to === "/" ? path() === "/" || path().startsWith("/gpu/") || path().startsWith("/host/") : path() === to || (to === "/alerts" && path().startsWith("/runbooks/")));
  return (
    <header class="top">
      <a class="brand" href="/" aria-label="Watchfire, the fleet"><Flame /><span>Watchfire</span></a>
      <nav aria-label="Pages">
        <For each={pages}>
          {(page) => (
            <a href={withRange(page.to)} aria-current={isHere(page.to) ? "page" : undefined}>
              {page.name}<Show when={page.count?.()}>{(count) => <span class="count">{count()}</span>}</Show>
            </a>
          )}
        </For>
      </nav>
      <div class="tools">
        <Show when={simulated()}><SimulatedBadge /></Show>
        <button type="button" class="plain" onClick={showHelp} title="Keys (?)" aria-label="Keys">?</button>
        <button type="button" class="plain" onClick={toggleTheme} title={`Switch to ${theme() && isDark() ? "light" : "dark"} (d)`} aria-label="Light or dark">◐</button>
      </div>
    </header>
  );
}

function VerdictBar(): JSX.Element {
  const age = (): string => {
    const seconds = dataAge();
    return seconds === undefined ? "" : `newest data ${duration(Math.round(seconds))} old`;
  };
  return (
    <section class="verdict" data-level={verdict().level} role="status" aria-live="polite" aria-label="Is anything wrong?">
      <Icon of={verdict().level} />
      <div class="words">
        <a class="answer" href={withRange(firing().length > 0 ? "/alerts" : "/")}>{verdict().answer}</a>
        <Show when={verdict().detail}><span class="detail">{verdict().detail}</span></Show>
      </div>
      <div class="facts" aria-live="off">
        <Show when={age()}><span>{age()}</span></Show>
        <Show when={hub.data()}>{(status) => <span title={`Watchfire ${status().version}, ${status().series.toLocaleString("en")} series`}>{status().hostname}{status().demo ? " · demo" : ""}</span>}</Show>
      </div>
    </section>
  );
}
