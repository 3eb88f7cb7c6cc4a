import { randomUUID } from "node:crypto";
import type { Command } from "../../index.ts";
import { cellScript } from "../../redis/cell.lua.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import { textOf } from "../../redis/script.ts";
import { type Ask, probeTtl, type Seen, type Session } from "./session.ts";
import { follow, setting, steps } from "./steps.ts";
import { tolerance } from "./stored.ts";

// What a conformance check asks of scripts: the library's own, as it sends them.

type Reply = readonly unknown[];

/** The lowest fence: as many digits as one of today has. */
const leastFence = 1_234_567_890_123;

/** One lock with a fence, by the library's own script. */
function scriptedLock(session: Session, name: string, how: "EVAL" | "EVALSHA") {
  const keys = [name, `${name}:void`, `${name}:fence`].map((each) => session.key(each));
  const script = how === "EVAL" ? cellScript.source : cellScript.sha.redis;
  const value = `c${keys[0]}`;
  const command = (operation: "claim" | "keep" | "end", token: string, ttl: number): Command => {
    const expected = operation === "claim" ? "" : token;
    const next = operation === "end" ? "" : token;
    const args = [operation, token, 1, ttl, probeTtl, leastFence, probeTtl, expected, next];
    return [how, script, keys.length, ...keys, ...args];
  };
  const isGranted = ([echo, , fence]: Reply) => echo === value && Number(fence) >= leastFence;
  return { key: keys[0]!, value, command, isGranted };
}

export const askEval: Ask = steps((session) => {
  const { key, value, command, isGranted } = scriptedLock(session, "script", "EVAL");
  const began = session.runtime.monotonic();
  const ttl = probeTtl / 2;
  const [acquired, extended, gone] = [
    { key, value, ttl },
    { key, value, ttl: probeTtl },
    { key, value: null },
  ];
  const isInTheWay = ([no, , , remaining, other]: Reply) => {
    const least = ttl - (session.runtime.monotonic() - began) - tolerance;
    return no === 0 && other === value && Number(remaining) >= least && Number(remaining) <= ttl;
  };
  // Where it is executed twice, the fence may be larger by 1.
  const isExact = (reply: Reply) => isGranted(reply) && Number(reply[2]) <= leastFence + 1;
  const echoes = ([echo]: Reply) => echo === value;
  const found = (hits: "t" | "f") => (reply: Reply) => reply[2] === hits;
  const [claim, claimOther] = [command("claim", value, ttl), command("claim", "cother", probeTtl)];
  const keep = command("keep", value, probeTtl);
  const [endOther, end] = [command("end", "cother", 0), command("end", value, 0)];
  return [
    { send: claim, stored: acquired, reply: isExact, when: "a script's SET" },
    { send: claimOther, stored: acquired, reply: isInTheWay, when: "a script's PTTL" },
    { send: keep, stored: extended, reply: echoes, when: "a script's second SET" },
    { send: endOther, stored: extended, reply: found("f"), when: "a script that deletes nothing" },
    { send: end, stored: gone, reply: found("t"), when: "a script's DEL" },
  ];
});

export async function askEvalsha(session: Session): Promise<Seen> {
  const unknown = randomUUID().replaceAll("-", "").padEnd(40, "0");
  const refusal = await session.ask(["EVALSHA", unknown, 1, session.key("noscript")]).then(
    () => undefined,
    (error: Error) => error,
  );
  if (!refusal) return { works: false, found: "it ran a script that it cannot know" };
  if (!refusal.message.includes("NOSCRIPT")) throw refusal;
  const { key, value, command, isGranted } = scriptedLock(session, "sha", "EVALSHA");
  const stored = { key, value, ttl: probeTtl };
  return follow(session, [{ send: command("claim", value, probeTtl), stored, reply: isGranted }]);
}

export const askFlag: Ask = steps((session) => {
  const first = { key: session.key("peek"), value: "v1" };
  const script = textOf(peekScript.source, "upstash");
  const isRead = ([value, remaining]: Reply) => value === first.value && Number(remaining) > 0;
  const send = ["EVAL", script, 2, first.key, session.key("peek:fence"), "peek"];
  return [{ send: setting(first) }, { send, reply: isRead }];
});
