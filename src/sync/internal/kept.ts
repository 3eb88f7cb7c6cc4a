import { QuorumError } from "../../errors.ts";
import type { Settings } from "../../lock/options.ts";
import { runRound } from "../../quorum/round.ts";
import { mostlyDone } from "../../quorum/settled.ts";
import type { Answer } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { debounceScript } from "../debounce.lua.ts";
import { itemsOf } from "./reply.ts";

// What a refresh has returned and its store has not taken, kept in Redis. At each endpoint the greatest text stays, as it
// does for `debounce`, and so whatever is executed late changes nothing: the fence of the refresh, then `k` and the sealed
// value, or `x` once that value is not needed any more.

const form = /^d(\d{16})([kx])(.*)$/s;

/** A value that is kept. */
export interface Kept {
  /** Of the lock under which it was refreshed. */
  readonly fence: number;
  readonly sealed: string;
}

/**
 * The newest value of this name that is kept and needed.
 *
 * @throws QuorumError when too few endpoints answered
 */
export async function readKept(settings: Settings, name: string): Promise<Kept | undefined> {
  const key = keyOf(settings.prefix, "kept", name);
  const round = runRound(settings, async (call): Promise<Answer & { readonly text: string }> => {
    const [text] = itemsOf(await runScript(call, peekScript, [key], ["peek"]));
    if (typeof text !== "string" || (text && !form.test(text))) throw unexpectedReply();
    return { outcome: "granted", text };
  });
  if ((await round.result) !== "granted") throw new QuorumError("read", [name], round.votes());
  const texts = round.answers.map((answer) => (answer && "text" in answer ? answer.text : ""));
  const [, fence, kind, sealed] = form.exec(texts.sort().pop()!) ?? [];
  return kind === "k" ? { fence: Number(fence), sealed: sealed! } : undefined;
}

/**
 * Keeps a value for `ttl` ms, or with `sealed` undefined the knowledge that the value of this fence is not needed any more.
 *
 * @returns whether a quorum has it, and nothing newer
 */
export async function keep(
  settings: Settings,
  name: string,
  { fence, sealed }: { readonly fence: number; readonly sealed: string | undefined },
  ttl: number,
): Promise<boolean> {
  const key = keyOf(settings.prefix, "kept", name);
  const text = `d${String(fence).padStart(16, "0")}${sealed === undefined ? "x" : `k${sealed}`}`;
  const round = runRound(settings, async (call): Promise<Answer> => {
    const [echo, other] = itemsOf(await runScript(call, debounceScript, [key], [text, ttl]));
    if (echo !== text && (echo !== 0 || !form.test(String(other)))) throw unexpectedReply();
    return { outcome: echo === text ? "granted" : "held" };
  });
  // Each endpoint that has it counts, and nothing else keeps these requests alive.
  await mostlyDone(settings, round);
  return (await round.result) === "granted";
}
