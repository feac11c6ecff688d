// Small drawings. Each condition and severity has a shape of its own, so that colour is never the only sign.

import type { JSX } from "solid-js";
import type { Condition, Severity } from "./condition";

type Shape = () => JSX.Element;

const SHAPES: Record<Condition | Severity | "pending" | "wait", Shape> = {
  healthy: () => <path d="m3 8.5 3.3 3.3L13 4.8" />,
  warm: () => <><path d="M8 2.2 14.3 13.5H1.7Z" /><path d="M8 6.5v3.2M8 11.5v.3" /></>,
  degraded: () => <path d="M8 2 14 8 8 14 2 8Z M5.5 8h5" />,
  throttled: () => <path d="m3.5 4 4.5 4 4.5-4M3.5 8.5l4.5 4 4.5-4" />,
  unknown: () => <><circle cx="8" cy="8" r="6.2" stroke-dasharray="2.6 1.7" /><path d="M6 6.5c0-2.7 4-2.5 4-.2C10 7.8 8 7.8 8 9.3M8 11.5v.3" /></>,
  faulty: () => <path d="m3.5 3.5 9 9m0-9-9 9" />,
  hung: () => <path d="M4 2.5h8M4 13.5h8M5 2.5c0 3.5 6 7 6 11M11 2.5c0 3.5-6 7-6 11" />,
  lost: () => <><circle cx="8" cy="8" r="6" /><path d="m3.8 12.2 8.4-8.4" /></>,
  critical: () => <><path d="M5.3 1.8h5.4l3.5 3.5v5.4l-3.5 3.5H5.3l-3.5-3.5V5.3Z" /><path d="M8 4.8v4M8 10.9v.3" /></>,
  warning: () => <><path d="M8 2.2 14.3 13.5H1.7Z" /><path d="M8 6.5v3.2M8 11.5v.3" /></>,
  info: () => <><circle cx="8" cy="8" r="6.2" /><path d="M8 7.3v3.9M8 4.8v.3" /></>,
  pending: () => <><circle cx="8" cy="8" r="6.2" /><path d="M8 4.5V8l2.3 1.5" /></>,
  wait: () => <><circle cx="8" cy="8" r="6.2" /><path d="M8 4.5V8l2.3 1.5" /></>,
};

export function Icon(props: { of: keyof typeof SHAPES }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
      {SHAPES[props.of]()}
    </svg>
  );
}

export function Flame(): JSX.Element {
  return (
    <svg class="flame" viewBox="0 0 24 24" aria-hidden="true">
      <path fill="var(--brand)" d="M12.6 1.5c.6 3.3-.6 5-2.3 6.9C8.5 10.3 6 12.2 6 15.8A6.1 6.1 0 0 0 12 22a6.1 6.1 0 0 0 6-6.2c0-2.6-1.2-4.6-2.6-6.3.1 1.5-.4 2.6-1.4 3.3.3-4.4-.2-8.3-1.4-11.3Z" />
      <path fill="var(--brand-core)" d="M12.1 13c.2 1.5-.5 2.3-1.2 3.1-.5.6-.9 1.2-.9 2.1a2.1 2.1 0 0 0 4.2 0c0-1.8-.9-3.4-2.1-5.2Z" />
    </svg>
  );
}
