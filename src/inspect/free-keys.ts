import type { Ask } from "../endpoints/ask.ts";
import type { Settings } from "../lock/options.ts";
import { query } from "../quorum/query.ts";
import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { randomToken } from "../runtime/runtime.ts";
import { freeScript } from "./free.lua.ts";

/**
 * @param shown so many keys, the first ones, decide whether there was anything to free. Default: all
 * @returns whether there was anything to free
 * @throws QuorumError when too few endpoints answered
 */
export async function freeKeys(
  settings: Settings,
  name: string,
  keys: readonly string[],
  shown: number = keys.length,
): Promise<boolean> {
  const nonce = randomToken(settings.runtime);
  const freeOne = async (call: Ask): Promise<Answer> => {
    const reply = await runScript(call, freeScript, keys, ["free", nonce, shown]);
    const echo: unknown = Array.isArray(reply) && reply.length === 1 && reply[0];
    if (echo !== nonce && echo !== 0) throw unexpectedReply();
    return { outcome: echo === nonce ? "granted" : "lost" };
  };
  // If a quorum had nothing to free, a slow endpoint may have.
  const enough = async (round: Round<Answer>) =>
    (await round.result) === "granted" ? round.mostlyDone() : round.done;
  const round = await query(settings, ["free", [name]], freeOne, enough);
  return round.answers().some(({ outcome }) => outcome === "granted");
}
