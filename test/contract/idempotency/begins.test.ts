import { describe, expect, test } from "vitest";
import { InProgressError, type RunOptions } from "../../../src/idempotency/index.ts";
import type { Link } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { put, runner } from "../../support/virtual-runs.ts";

// One round of begins in virtual time: which answers it waits for, and what they mean. The timeout of a request is 100 ms,
// the pause between two rounds 10 ms.

const never = () => expect.unreachable("nothing may run");
const start = 1_700_000_000_000;
const pending = (token: string, fingerprint = "-") => `P1 ${token} ${start} ${fingerprint}`;
const isBegin = (command: readonly unknown[]) => command.includes("NX") || command.includes("claim");

/** Calls a key that has these records, where the last endpoint answers begins after 50 ms. */
async function calling(
  texts: readonly (string | undefined)[],
  options: Parameters<typeof runner>[1] & Pick<RunOptions<unknown>, "fingerprint"> = {},
  disturb: (links: readonly Link[]) => void = () => undefined,
) {
  const { fingerprint, ...given } = options;
  const world = virtualWorld({ count: texts.length, dialect: "upstash" });
  await put(world, texts);
  const { slow } = delays(world.runtime);
  const client = runner(world, given);
  disturb(client.links);
  client.links.at(-1)!.fate = (command) => (isBegin(command) ? slow(50) : "delivered");
  const call = watch(client.idempotency.run<unknown>("key", { fingerprint }, never));
  await client.started();
  return { ...client, world, runtime: world.runtime, call };
}

describe("the slowest endpoint is waited for where it may change the answer:", () => {
  test("it shows that one run has a quorum", async () => {
    const { call, runtime } = await calling([pending("ta"), pending("tb"), pending("ta")]);
    await runtime.advance(49);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.error).toBeInstanceOf(InProgressError);
    // By the lease of that run, and not about a timeout.
    expect((call.error as InProgressError).retryAfter).toBe(28_950);
  });
});
