// Small words of the pages: a value or its absence, an age, a condition, where it comes from.

import type { JSX } from "solid-js";
import type { Condition } from "./condition";
import { Icon } from "./icons";
import { absolute, second } from "./time";
import { ABSENT, duration, format, type Unit } from "./units";

/** A value with its unit; where there is none a dash that tells why. */
export function Value(props: { of: number | null | undefined; unit: Unit; why?: string }): JSX.Element {
  const text = (): string => format(props.of, props.unit);
  const why = (): string | undefined => (text() === ABSENT ? props.why ?? "no sample" : undefined);
  return <span classList={{ absent: !!why() }} title={why()} aria-label={why() ? `absent: ${why()}` : undefined}>{text()}</span>;
}

/** "3 min ago" with the full time behind it. */
export function Ago(props: { at: number }): JSX.Element {
  return <time dateTime={new Date(props.at * 1000).toISOString()} title={absolute(props.at)}>{duration(Math.max(0, Math.round(second() - props.at)))} ago</time>;
}

export function ConditionTag(props: { of: Condition }): JSX.Element {
  return <span class="tag" data-condition={props.of}><Icon of={props.of} />{props.of}</span>;
}

/** Stands on every page that shows a simulated series. */
export function SimulatedBadge(): JSX.Element {
  return <span class="badge simulated" title="Some of this data comes from a simulated server, not from hardware">simulated</span>;
}
