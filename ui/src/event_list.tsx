// The events of a page's subject, newest first: what and when, or that there was none, or that nobody knows.

import { For, type JSX, Match, Show, Switch } from "solid-js";
import type { CountedEvent, Events } from "./events";
import { absolute, local } from "./time";
import { duration } from "./units";
import { Ago } from "./value";
import { xidCatalog } from "./xids";

const SHOWN = 20;
/** On a finer grid the time is told as it is. */
const EXACT_SECONDS = 30;

export function EventList(props: { title: string; of: Events; unknown: string }): JSX.Element {
  const xids = xidCatalog();
  const list = (): CountedEvent[] => props.of.list() ?? [];
  return (
    <section class="panel events" aria-label={props.title}>
      <header><h3>{props.title}</h3><span class="unit">in this range</span></header>
      <Switch>
        <Match when={props.of.error()}><p class="problem">Not known: {props.of.error()}</p></Match>
        <Match when={!props.of.list()}><p class="quiet">Loading…</p></Match>
        <Match when={list().length > 0}>
          <ul class="event-list">
            <For each={list().slice(0, SHOWN)}>
              {(event) => (
                <li>
                  <strong>{event.name}</strong>
                  <Show when={event.count > 1}><span>{event.count} times</span></Show>
                  <time title={absolute(event.time)}>{event.step > EXACT_SECONDS ? `in the ${duration(event.step)} to ${local(event.time)}` : absolute(event.time)}</time>
                  <span class="quiet"><Ago at={event.time} /></span>
                  <Show when={xids()?.[event.code ?? ""]}>
                    {(known) => <p><span>{known().name}: {known().causes}</span> <Show when={known().action}><span class="act"><strong>What to do</strong> {known().action}</span></Show></p>}
                  </Show>
                </li>
              )}
            </For>
          </ul>
          <Show when={list().length > SHOWN}><p class="quiet">{list().length - SHOWN} earlier ones not listed</p></Show>
        </Match>
        <Match when={props.of.counted()}><p class="quiet">None: the counters are there and did not rise.</p></Match>
        <Match when={!props.of.counted()}><p class="quiet">Not known: {props.unknown}</p></Match>
      </Switch>
    </section>
  );
}
