import type { FaultRule } from "../../faults/faults.ts";

// The faults that have a switch. No I/O.

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

/** Whether two rules are one: those of switches come back as they were sent. */
export const isSame = (one: FaultRule, other: FaultRule): boolean =>
  JSON.stringify(one) === JSON.stringify(other);
