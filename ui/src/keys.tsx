// The keyboard: every page and the range have a key; "?" tells them.

import { createSignal, For, type JSX, Show } from "solid-js";
import { go, withRange } from "./router";
import { refresh, stepPreset } from "./time";
import { toggleTheme } from "./theme";

const [shown, setShown] = createSignal(false);
export const showHelp = (): boolean => setShown(true);

interface Key { keys: string; does: string; run: () => void }

const KEYS: Key[] = [
  { keys: "g f", does: "fleet", run: () => go(withRange("/")) },
  { keys: "g a", does: "alerts", run: () => go(withRange("/alerts")) },
  { keys: "g t", does: "targets", run: () => go(withRange("/targets")) },
  { keys: "[", does: "shorter range", run: () => stepPreset(-1) },
  { keys: "]", does: "longer range", run: () => stepPreset(1) },
  { keys: "r", does: "ask again now", run: refresh },
  { keys: "d", does: "light or dark", run: toggleTheme },
  { keys: "?", does: "this help", run: () => setShown(!shown()) },
];

const ELSEWHERE: [string, string][] = [
  ["← → ↑ ↓", "move between GPUs, and the crosshair of a focused chart"],
  ["Enter", "open a GPU; zoom in at the crosshair"],
  ["Alt ←", "back: undo a zoom"],
  ["Esc", "close, hide the crosshair"],
];

const PREFIX_MS = 1500;

export function listenForKeys(): void {
  let prefix = "";
  let at = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.target instanceof HTMLTextAreaElement) return;
    if (event.key === "Escape") {
      setShown(false);
      return;
    }
    const typed = prefix && event.timeStamp - at < PREFIX_MS ? `${prefix} ${event.key}` : event.key;
    prefix = event.key === "g" ? "g" : "";
    at = event.timeStamp;
    const found = KEYS.find((key) => key.keys === typed);
    if (!found) return;
    prefix = "";
    event.preventDefault();
    found.run();
  });
}

export function KeyHelp(): JSX.Element {
  return (
    <Show when={shown()}>
      <div class="veil" onClick={() => setShown(false)}>
        <div class="help" role="dialog" aria-modal="true" aria-label="Keys" onClick={(event) => event.stopPropagation()}>
          <header>
            <h2>Keys</h2>
            <button type="button" class="plain" ref={(button) => queueMicrotask(() => button.focus())} onClick={() => setShown(false)}>Close</button>
          </header>
          <dl>
            <For each={[...KEYS.map((key): [string, string] => [key.keys, key.does]), ...ELSEWHERE]}>
              {([keys, does]) => (
                <div><dt><For each={keys.split(" ")}>{(key) => <kbd>{key}</kbd>}</For></dt><dd>{does}</dd></div>
              )}
            </For>
          </dl>
        </div>
      </div>
    </Show>
  );
}
