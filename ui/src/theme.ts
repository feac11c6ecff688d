// Light, dark, or as the system says. The choice is kept; charts redraw when it changes.

import { createSignal } from "solid-js";

export type Theme = "system" | "light" | "dark";
const KEY = "watchfire-theme";

const [choice, setChoice] = createSignal<Theme>(read());
const [painted, setPainted] = createSignal(0);

export const theme = choice;
/** Changes whenever the colours on the screen do. */
export const themeVersion = painted;

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // storage switched off: the choice lives as long as the page
  }
}

function apply(): void {
  if (choice() === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice();
  setPainted((n) => n + 1);
}

export function isDark(): boolean {
  return choice() === "dark" || (choice() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Switches to the other look than the one seen. */
export function toggleTheme(): void {
  const next = isDark() ? "light" : "dark";
  setChoice(next);
  try {
    localStorage.setItem(KEY, next);
  } catch { /* see read() */ }
  apply();
}

export function startTheme(): void {
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

/** The present value of a CSS variable, for the canvas. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
