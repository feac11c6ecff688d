// The page's time range: presets, what is shown, and the way back to now.

import { createSignal, For, type JSX, Show } from "solid-js";
import { absolute, hubNow, iso, parseTime, PRESETS, range, setPreset, setRange } from "./time";
import { duration } from "./units";

export function RangeBar(): JSX.Element {
  const [editing, setEditing] = createSignal(false);
  const span = (): number => range.window().end - range.window().start;
  return (
    <div class="range" role="group" aria-label="Time range">
      <div class="presets">
        <For each={PRESETS}>
          {(name) => <button type="button" aria-pressed={range.preset() === name} onClick={() => setPreset(name)}>{name}</button>}
        </For>
      </div>
      <button type="button" class="plain shown" aria-expanded={editing()} title="Set the range by hand" onClick={() => setEditing(!editing())}>
        <Show when={range.preset()} fallback={<>{absolute(range.window().start)} – {range.to() === "now" ? "now" : absolute(range.window().end)} ({duration(span())})</>}>
          last {range.preset()}, one point each {duration(range.window().step)}
        </Show>
      </button>
      <Show when={!range.preset()}><button type="button" onClick={() => setPreset("1h")}>Back to now</button></Show>
      <Show when={editing()}><RangeForm done={() => setEditing(false)} /></Show>
    </div>
  );
}

function RangeForm(props: { done: () => void }): JSX.Element {
  const [error, setError] = createSignal("");
  const start = (): string => (range.live() ? range.from() : iso(range.window().start));
  const end = (): string => (range.to() === "now" ? "now" : iso(range.window().end));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const from = String(form.get("from")).trim();
    const to = String(form.get("to")).trim();
    const now = hubNow();
    const [first, last] = [parseTime(from, now), parseTime(to, now)];
    if (first === undefined || last === undefined) setError("write now-6h or 2026-01-31T02:40:00Z");
    else if (first >= last) setError("the start must be before the end");
    else {
      setRange(from, to);
      props.done();
    }
  };
  return (
    <form class="range-form" onSubmit={submit}>
      <label>from <input name="from" value={start()} autocomplete="off" spellcheck={false} /></label>
      <label>to <input name="to" value={end()} autocomplete="off" spellcheck={false} /></label>
      <button type="submit">Show</button>
      <Show when={error()}><span class="problem" role="alert">{error()}</span></Show>
    </form>
  );
}
