// Targets: who is asked, who answers, and why not; and what the store holds.

import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import type { Target } from "../api";
import { hub, targetPoll } from "../fleet";
import { Icon } from "../icons";
import { hostOf } from "../metrics";
import { hostPath, withRange } from "../router";
import { ABSENT, duration, format } from "../units";
import { Ago, SimulatedBadge } from "../value";

const ORDER: Record<string, number> = { down: 0, unknown: 1, up: 2 };

export function Targets(): JSX.Element {
  const active = createMemo(() => [...(targetPoll.data()?.activeTargets ?? [])].sort((left, right) =>
    (ORDER[left.health] ?? 1) - (ORDER[right.health] ?? 1) || id(left).localeCompare(id(right), "en", { numeric: true })));
  const dropped = (): number => {
    const counts = Object.values(targetPoll.data()?.droppedTargetCounts ?? {}).reduce((sum, count) => sum + count, 0);
    return counts || (targetPoll.data()?.droppedTargets?.length ?? 0);
  };
  const count = (health: string): number => active().filter((target) => target.health === health).length;
  return (
    <>
      <div class="title">
        <h1>Targets <Show when={active().some((target) => target.labels["simulated"] === "true")}><SimulatedBadge /></Show></h1>
        <p class="quiet">{count("up")} up, {count("down")} down{count("unknown") ? `, ${count("unknown")} not asked yet` : ""}{dropped() ? `, ${dropped()} dropped by relabelling` : ""}</p>
      </div>
      <Show when={hub.data()}>
        {(status) => (
          <dl class="facts strip" aria-label="Hub">
            <div><dt>hub</dt><dd>{status().hostname} ({status().mode}{status().demo ? ", demo" : ""})</dd></div>
            <div><dt>version</dt><dd>{status().version}</dd></div>
            <div><dt>series</dt><dd>{status().series.toLocaleString("en")}</dd></div>
            <div><dt>kept for</dt><dd>{duration(status().retention.time_seconds)}</dd></div>
            <div><dt>kept at most</dt><dd>{format(status().retention.size_bytes, "bytes")}</dd></div>
          </dl>
        )}
      </Show>
      <Show when={targetPoll.error() && targetPoll.data()}><div class="note bad" role="alert"><strong>Not updated: what is below is from <Ago at={targetPoll.at() ?? 0} /></strong><span>{targetPoll.error()?.message}</span></div></Show>
      <Switch>
        <Match when={targetPoll.error() && !targetPoll.data()}><div class="note bad" role="alert"><strong>Targets cannot be fetched</strong><span>{targetPoll.error()?.message}</span></div></Match>
        <Match when={!targetPoll.data()}><div class="note quiet">Loading…</div></Match>
        <Match when={active().length === 0}><div class="note"><strong>No target is configured</strong><span>Name them in <code>watchfire.yml</code> under <code>prometheus: scrape_configs:</code>, or start <code>watchfire run</code> to watch this machine.</span></div></Match>
        <Match when={active().length > 0}>
          <div class="scroll"><table class="cards">
            <thead><tr><th>instance</th><th>job</th><th>state</th><th>last scrape</th><th class="number">took</th><th>address and labels</th></tr></thead>
            <tbody>
              <For each={active()}>
                {(target) => (
                  <tr data-health={target.health}>
                    <th scope="row" data-label="instance"><a href={withRange(hostPath(hostOf(target.labels)))}>{target.labels["instance"] ?? ABSENT}</a></th>
                    <td data-label="job">{target.labels["job"] ?? target.scrapePool ?? ABSENT}</td>
                    <td data-label="state">
                      <span class="tag" data-condition={conditionOf(target)}><Icon of={conditionOf(target)} />{target.health}</span>
                      <Show when={target.lastError}><div class="problem">{target.lastError}</div></Show>
                    </td>
                    <td data-label="last scrape"><Show when={Date.parse(target.lastScrape) > 0} fallback={<span class="absent" title="not scraped yet">{ABSENT}</span>}><Ago at={Date.parse(target.lastScrape) / 1000} /></Show><Show when={target.scrapeInterval}> <small class="quiet">each {target.scrapeInterval}</small></Show></td>
                    <td data-label="took" class="number">{Date.parse(target.lastScrape) > 0 ? duration(target.lastScrapeDuration) : ABSENT}</td>
                    <td data-label="address"><code>{target.scrapeUrl}</code> <Labels of={target} /></td>
                  </tr>
                )}
              </For>
            </tbody>
          </table></div>
        </Match>
      </Switch>
    </>
  );
}

function id(target: Target): string {
  return `${target.labels["job"]} ${target.labels["instance"]}`;
}

function conditionOf(target: Target): "healthy" | "lost" | "unknown" {
  return target.health === "up" ? "healthy" : target.health === "down" ? "lost" : "unknown";
}

function Labels(props: { of: Target }): JSX.Element {
  const shown = (): [string, string][] => Object.entries(props.of.labels).filter(([name]) => name !== "instance" && name !== "job");
  return <For each={shown()}>{([name, value]) => <span class="chip"><b>{name}</b> {value}</span>}</For>;
}
