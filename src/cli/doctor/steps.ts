import type { Command } from "../../index.ts";
import { type Ask, probeTtl, type Seen, type Session, type Written } from "./session.ts";
import { mustBeStored } from "./stored.ts";

// Commands one after another. What is stored after each of them counts as well as what was answered.

/** One command, and what must be seen of it. */
export interface Step {
  readonly send: Command;
  /** What must be stored afterwards. The first step that names it writes it. */
  readonly stored?: Written;
  /** The reply, or whether it is right. Default: any. */
  readonly reply?: unknown;
  /** Begins the message where something is wrong. */
  readonly when?: string;
  /** ms to wait before it. */
  readonly after?: number;
}

/** A question that is answered by steps: something works where all of them do. */
export function steps(stepsOf: (session: Session) => readonly Step[]): Ask {
  return (session) => follow(session, stepsOf(session));
}

/** Goes through steps, until something is wrong. What they have stored must still be there at the end of all. */
export async function follow(session: Session, all: readonly Step[]): Promise<Seen> {
  const spans = new Map<Written, Written>();
  for (const step of all) {
    if (step.after) await session.pause(step.after);
    const { reply, at } = await session.askTimed(step.send);
    if (step.stored) {
      const written = spans.get(step.stored) ?? { ...step.stored, at };
      spans.set(step.stored, written);
      await mustBeStored(session, written, step.when);
    }
    if (!("reply" in step) || isRight(step.reply, reply)) continue;
    return { works: false, found: `${step.when ? `${step.when}: ` : ""}the reply is another one` };
  }
  const last = new Map([...spans.values()].map((written) => [written.key, written]));
  session.kept.push(...[...last.values()].filter(({ value }) => value !== undefined));
  return { works: true };
}

function isRight(expected: unknown, reply: unknown): boolean {
  if (typeof expected !== "function") return reply === expected;
  return expected(Array.isArray(reply) ? reply : []) === true;
}

/** The command that writes this. `options` stand between the value and the ttl: `NX`. */
export function setting({ key, value, ttl = probeTtl }: Written, ...options: string[]): Command {
  return ["SET", key, value!, ...options, "PX", ttl];
}

/** Writes a value. */
export async function write(
  session: Session,
  written: Written,
): Promise<Written & { readonly reply: unknown }> {
  return { ...written, ...(await session.askTimed(setting(written))) };
}
