import type { FaultRule } from "../../faults/faults.ts";

// The faults that have a switch, and what a switch does to the rules. No I/O.

/** A fault that can be switched on and off. */
export interface FaultSwitch {
  readonly label: string;
  readonly about: string;
  readonly rule: FaultRule;
}

export const switches: readonly FaultSwitch[] = [
  { label: "down", about: "Connections break, nothing is executed", rule: { fault: "down" } },
  { label: "answer 503", about: "Nothing is executed", rule: { fault: "status", status: 503 } },
  {
    label: "lose requests",
    about: "Requests are never executed, and never answered",
    rule: { fault: "drop-request" },
  },
  { label: "lose replies", about: "Requests are executed, but not answered", rule: { fault: "drop-reply" } },
  { label: "late requests", about: "Executed after 400 ms", rule: { fault: "delay", ms: 400 } },
  { label: "late replies", about: "Answered after 400 ms", rule: { fault: "delay-reply", ms: 400 } },
  { label: "execute twice", about: "Each request is executed twice", rule: { fault: "duplicate" } },
  { label: "cut streams", about: "Streams end after 1 s", rule: { fault: "cut-stream", ms: 1_000 } },
];

/** The rule of a switch among the rules that are active. */
export function isOn({ rule }: FaultSwitch, rules: readonly FaultRule[]): boolean {
  return rules.some((each) => same(each, rule));
}

/** The rules without the one of a switch. */
export function without({ rule }: FaultSwitch, rules: readonly FaultRule[]): FaultRule[] {
  return rules.filter((each) => !same(each, rule));
}

/** The rules that no switch stands for: by flag, in code, or over HTTP. */
export function others(rules: readonly FaultRule[]): FaultRule[] {
  return rules.filter((rule) => !switches.some((each) => same(rule, each.rule)));
}

function same({ probability = 1, ...one }: FaultRule, other: FaultRule): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof FaultRule>;
  return probability === 1 && [...names].every((name) => Reflect.get(one, name) === other[name]);
}
