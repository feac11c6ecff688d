// Alerts: what fires and what is about to, with what to do; what was sent to whom; and whether the rules work.

import { createMemo, createSignal, For, type JSX, Match, Show, Switch } from "solid-js";
import { AlertCard } from "../alert_card";
import { type Alert, notifications, type RuleGroup } from "../api";
import { SEVERITIES, type Severity, severityOf } from "../condition";
import { alertPoll, alerts, heartbeats, rulePoll } from "../fleet";
import { Icon } from "../icons";
import { poll } from "../poll";
import { absolute } from "../time";
import { ABSENT, duration, plural } from "../units";
import { Ago, SimulatedBadge } from "../value";

const SENT_REFRESH_MS = 10_000;
const SENT_SHOWN = 50;

export function Alerts(): JSX.Element {
  const [severity, setSeverity] = createSignal<Severity>();
  const [text, setText] = createSignal("");
  const all = alerts;
  const matching = createMemo(() => all().filter((alert) => (!severity() || severityOf(alert.labels) === severity()) && contains(alert, text())));
  const firing = createMemo(() => matching().filter((alert) => alert.state === "firing"));
  const pending = createMemo(() => matching().filter((alert) => alert.state === "pending"));
  const other = createMemo(() => matching().filter((alert) => alert.state !== "firing" && alert.state !== "pending"));
  const count = (of: Severity): number => all().filter((alert) => alert.state === "firing" && severityOf(alert.labels) === of).length;

  return (
    <>
      <div class="title">
        <h1>Alerts <Show when={all().some((alert) => alert.labels["simulated"] === "true")}><SimulatedBadge /></Show></h1>
        <div class="filters" role="group" aria-label="Filter">
          <For each={SEVERITIES}>
            {(name) => (
              <button type="button" class="tag" data-severity={name} aria-pressed={severity() === name} onClick={() => setSeverity(severity() === name ? undefined : name)}>
                <Icon of={name} />{name === "warning" ? plural(count(name), name) : `${count(name)} ${name}`}
              </button>
            )}
          </For>
          <input type="search" placeholder="Filter by name, label or text" aria-label="Filter alerts" value={text()} onInput={(event) => setText(event.currentTarget.value)} />
        </div>
      </div>
      <Show when={alertPoll.error()}>{(err) => <div class="note bad" role="alert"><strong>Alerts cannot be fetched<Show when={alertPoll.at()}>{(at) => <>; what is below is from <Ago at={at()} /></>}</Show></strong><span>{err().message}</span></div>}</Show>

      <Group title="Firing" alerts={firing()} none={all().length && !matching().length ? "None matches the filter." : "None fires."} loaded={alertPoll.data() !== undefined} />
      <Show when={other().length > 0}><Group title="Unknown" alerts={other()} none="" loaded /></Show>
      <Group title="Pending" note="true now, but not yet for as long as the rule asks" alerts={pending()} none="None is pending." loaded={alertPoll.data() !== undefined} />
      <Show when={heartbeats().length > 0}><p class="quiet">{heartbeats().map((alert) => alert.labels["alertname"]).join(", ")} fires, as it always must: alerts are evaluated.</p></Show>
      <Sent />
      <Rules />
    </>
  );
}

function contains(alert: Alert, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return true;
  return [...Object.values(alert.labels), ...Object.values(alert.annotations)].some((value) => value.toLowerCase().includes(wanted));
}

function Group(props: { title: string; note?: string; alerts: Alert[]; none: string; loaded: boolean }): JSX.Element {
  return (
    <section class="stack" aria-label={`${props.title} alerts`}>
      <header class="bar"><h2>{props.title} <span class="count">{props.alerts.length}</span></h2><Show when={props.note}><span class="quiet">{props.note}</span></Show></header>
      <Show when={props.alerts.length > 0} fallback={<p class="quiet">{props.loaded ? props.none : "Loading…"}</p>}>
        <For each={props.alerts}>{(alert) => <AlertCard alert={alert} />}</For>
      </Show>
    </section>
  );
}

function Sent(): JSX.Element {
  const sent = poll(notifications, SENT_REFRESH_MS);
  const failed = (): number => sent.data()?.filter((notification) => !notification.ok).length ?? 0;
  return (
    <section aria-label="Notifications">
      <header class="bar"><h2>Notifications sent</h2><Show when={failed() > 0}><span class="problem">{failed()} failed</span></Show></header>
      <Switch>
        <Match when={sent.error() && !sent.data()}><div class="note bad"><strong>Cannot be fetched</strong><span>{sent.error()?.message}</span></div></Match>
        <Match when={!sent.data()}><p class="quiet">Loading…</p></Match>
        <Match when={sent.data()?.length === 0}><p class="quiet">None was sent. Without a receiver in the configuration an alert is shown here and reaches nobody.</p></Match>
        <Match when={sent.data()}>
          {(list) => (
            <div class="scroll"><table class="cards">
              <thead><tr><th>when</th><th>result</th><th>receiver</th><th>what</th><th>group</th><th class="number">took</th></tr></thead>
              <tbody>
                <For each={list().slice(0, SENT_SHOWN)}>
                  {(notification) => (
                    <tr>
                      <td data-label="when"><Ago at={notification.time} /> <small class="quiet">{absolute(notification.time)}</small></td>
                      <td data-label="result">
                        <span class="tag" data-condition={notification.ok ? "healthy" : "faulty"}><Icon of={notification.ok ? "healthy" : "faulty"} />{notification.ok ? "delivered" : "failed"}</span>
                        <Show when={notification.attempts > 1}> <small>{notification.attempts} attempts</small></Show>
                        <Show when={notification.error}><div class="problem">{notification.error}</div></Show>
                      </td>
                      <td data-label="receiver">{notification.receiver} <small class="quiet">{notification.integration}</small></td>
                      <td data-label="what">{plural(notification.alerts, "alert")} {notification.status}</td>
                      <td data-label="group"><code>{notification.group}</code></td>
                      <td data-label="took" class="number">{duration(notification.duration_seconds)}</td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table></div>
          )}
        </Match>
      </Switch>
    </section>
  );
}

function Rules(): JSX.Element {
  const groups = (): RuleGroup[] => rulePoll.data() ?? [];
  const rules = createMemo(() => groups().flatMap((group) => group.rules.map((rule) => ({ group, rule }))));
  const bad = createMemo(() => rules().filter(({ rule }) => rule.health === "err"));
  const sorted = createMemo(() => [...bad(), ...rules().filter(({ rule }) => rule.health !== "err")]);
  return (
    <section aria-label="Rules">
      <header class="bar"><h2>Rules</h2><Show when={bad().length > 0}><span class="problem">{bad().length} cannot be evaluated</span></Show></header>
      <Switch>
        <Match when={rulePoll.error() && !rulePoll.data()}><div class="note bad"><strong>Cannot be fetched</strong><span>{rulePoll.error()?.message}</span></div></Match>
        <Match when={!rulePoll.data()}><p class="quiet">Loading…</p></Match>
        <Match when={rules().length === 0}><div class="note bad"><strong>No rule is loaded</strong><span>Nothing can fire: silence means nothing here.</span></div></Match>
        <Match when={rules().length > 0}>
          <details open={bad().length > 0}>
            <summary>{plural(rules().length, "rule")} in {plural(groups().length, "group")}{bad().length ? "" : ", all evaluated without error"}</summary>
            <div class="scroll"><table class="cards">
              <thead><tr><th>rule</th><th>group</th><th>health</th><th>state</th><th>for</th><th>evaluated</th><th class="number">took</th></tr></thead>
              <tbody>
                <For each={sorted()}>
                  {({ group, rule }) => (
                    <tr>
                      <th scope="row" data-label="rule"><span title={rule.query}>{rule.name}</span><Show when={rule.type === "recording"}> <small class="quiet">recording</small></Show></th>
                      <td data-label="group">{group.name}</td>
                      <td data-label="health">
                        <span class="tag" data-condition={rule.health === "ok" ? "healthy" : rule.health === "err" ? "faulty" : "unknown"}><Icon of={rule.health === "ok" ? "healthy" : rule.health === "err" ? "faulty" : "unknown"} />{rule.health}</span>
                        <Show when={rule.lastError}><div class="problem">{rule.lastError}</div></Show>
                      </td>
                      <td data-label="state">{rule.state ?? ABSENT}</td>
                      <td data-label="for">{rule.duration ? duration(rule.duration) : ABSENT}</td>
                      <td data-label="evaluated"><Show when={Date.parse(rule.lastEvaluation ?? "") > 0} fallback={<span class="absent" title="not yet">{ABSENT}</span>}><Ago at={Date.parse(rule.lastEvaluation ?? "") / 1000} /></Show></td>
                      <td data-label="took" class="number">{rule.evaluationTime === undefined ? ABSENT : duration(rule.evaluationTime)}</td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table></div>
          </details>
        </Match>
      </Switch>
    </section>
  );
}
