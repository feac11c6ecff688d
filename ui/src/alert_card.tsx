// One alert as a person needs it at night: what, since when, what to do, and the charts around its start.

import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import { type Alert, numberOf } from "./api";
import { severityOf } from "./condition";
import { Icon } from "./icons";
import { hostOf } from "./metrics";
import { gpuPath, hostPath, withRange } from "./router";
import { runbookPath } from "./runbooks";
import { absolute, around } from "./time";
import { ABSENT } from "./units";
import { Ago } from "./value";

/** Labels the card tells in words already. */
const TOLD = new Set(["alertname", "severity", "condition"]);

export function AlertCard(props: { alert: Alert; brief?: boolean }): JSX.Element {
  const labels = (): Record<string, string> => props.alert.labels;
  const notes = (): Record<string, string> => props.alert.annotations;
  const since = createMemo(() => Date.parse(props.alert.activeAt) / 1000);
  const subject = (): { path: string; name: string } | undefined => {
    const uuid = labels()["UUID"];
    const host = hostOf(labels());
    if (uuid) return { path: gpuPath(uuid), name: `GPU ${labels()["gpu"] ?? uuid}${host ? ` on ${host}` : ""}` };
    return host ? { path: hostPath(host), name: host } : undefined;
  };
  const kind = (): "critical" | "warning" | "info" => severityOf(labels());
  return (
    <article class="alert" data-severity={kind()} data-state={props.alert.state}>
      <header>
        <span class="severity"><Icon of={props.alert.state === "pending" ? "pending" : kind()} />{props.alert.state === "firing" ? kind() : `${props.alert.state} ${kind()}`}</span>
        <h3>{labels()["alertname"]}</h3>
        <Show when={subject()}>{(to) => <a class="subject" href={`${to().path}${around(since())}`}>{to().name}</a>}</Show>
        <span class="since">since <Ago at={since()} /><Show when={!props.brief}> <span class="exact">({absolute(since())})</span></Show></span>
      </header>
      <Show when={notes()["summary"]}><p class="summary">{notes()["summary"]}</p></Show>
      <Show when={!props.brief && notes()["description"]}><p>{notes()["description"]}</p></Show>
      <Show when={notes()["action"]}><p class="action"><strong>What to do</strong> {notes()["action"]}</p></Show>
      <Show when={!props.brief}>
        <footer>
          <Show when={subject()}>{(to) => <a href={`${to().path}${around(since())}`}>Charts around its start</a>}</Show>
          <Show when={notes()["runbook_url"]}>{(url) => <Runbook url={url()} />}</Show>
          <span class="labels">
            <span class="chip"><b>value</b> {shortValue(props.alert.value)}</span>
            <For each={Object.entries(labels()).filter(([name]) => !TOLD.has(name))}>{([name, value]) => <span class="chip"><b>{name}</b> {value}</span>}</For>
          </span>
        </footer>
      </Show>
    </article>
  );
}

/** A link where the address is one, or names a runbook that came along; any other path stands as it is. */
function Runbook(props: { url: string }): JSX.Element {
  const own = (): string | undefined => runbookPath(props.url);
  return (
    <Switch fallback={<span class="quiet">Runbook <code>{props.url}</code></span>}>
      <Match when={own()}>{(path) => <a href={withRange(path())}>Runbook</a>}</Match>
      <Match when={/^https?:\/\//.test(props.url)}><a href={props.url} target="_blank" rel="noreferrer">Runbook</a></Match>
    </Switch>
  );
}

function shortValue(text: string): string {
  const value = numberOf(text);
  return value === undefined ? text || ABSENT : value.toLocaleString("en", { maximumFractionDigits: 4 });
}
