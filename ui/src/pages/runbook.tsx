// A runbook: what an alert means, likely causes, and the next queries, which can be asked on the spot.

import { createResource, createSignal, For, type JSX, Match, Show, Switch } from "solid-js";
import { type InstantSample, messageOf, numberOf, query } from "../api";
import { AlertCard } from "../alert_card";
import { firing } from "../fleet";
import { Markdown } from "../markdown";
import { withRange } from "../router";
import { runbook } from "../runbooks";

const SHOWN = 20;

export function Runbook(props: { name: string }): JSX.Element {
  const [text] = createResource(() => props.name, runbook);
  const now = () => firing().filter((alert) => alert.labels["alertname"] === props.name);
  return (
    <>
      <p class="crumbs"><a href={withRange("/alerts")}>Alerts</a> / runbook</p>
      <For each={now()}>{(alert) => <AlertCard alert={alert} brief />}</For>
      <Switch>
        <Match when={text.loading}><div class="note quiet">Loading…</div></Match>
        <Match when={text()}>
          {(found) => <article class="prose"><Markdown text={found()} code={(language, code) => (language === "promql" ? <Ask expr={code} /> : <pre><code>{code}</code></pre>)} /></article>}
        </Match>
        <Match when={!text.loading}><div class="note"><strong>No runbook {props.name}</strong><span>{text.error ? messageOf(text.error) : "None of that name came with this version."}</span></div></Match>
      </Switch>
    </>
  );
}

/** A query with its answer of this moment. */
function Ask(props: { expr: string }): JSX.Element {
  const [answer, setAnswer] = createSignal<InstantSample[]>();
  const [error, setError] = createSignal("");
  const ask = async (): Promise<void> => {
    try {
      setAnswer(await query(props.expr));
      setError("");
    } catch (err) {
      setError(messageOf(err));
    }
  };
  return (
    <div class="ask">
      <pre><code>{props.expr}</code></pre>
      <button type="button" onClick={() => void ask()}>{answer() ? "Ask again" : "Ask now"}</button>
      <Show when={error()}><p class="problem" role="alert">{error()}</p></Show>
      <Show when={answer()}>
        {(samples) => (
          <Show when={samples().length > 0} fallback={<p class="quiet" role="status">No series answers: either it holds nowhere, or its metric is absent here.</p>}>
            <div class="scroll"><table>
              <tbody>
                <For each={samples().slice(0, SHOWN)}>
                  {({ metric, value }) => <tr><td><Labels of={metric} /></td><td class="number">{numberOf(value[1])?.toLocaleString("en", { maximumFractionDigits: 4 }) ?? value[1]}</td></tr>}
                </For>
              </tbody>
            </table></div>
            <Show when={samples().length > SHOWN}><p class="quiet">{samples().length - SHOWN} more</p></Show>
          </Show>
        )}
      </Show>
    </div>
  );
}

function Labels(props: { of: Record<string, string> }): JSX.Element {
  return <For each={Object.entries(props.of)} fallback={<span class="quiet">no labels</span>}>{([name, value]) => <span class="chip"><b>{name}</b> {value}</span>}</For>;
}
