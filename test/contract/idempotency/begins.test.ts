import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import {
  FingerprintMismatchError,
  InProgressError,
  RecordCorruptError,
  type RunOptions,
} from "../../../src/idempotency/index.ts";
import type { Link } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { put, runner, silence, textsOf, ttls } from "../../support/virtual-runs.ts";

// One round of begins in virtual time: which answers it waits for, and what they mean. The timeout of a request is 100 ms,
// the pause between two rounds 10 ms.

const never = () => expect.unreachable("nothing may run");
const start = 1_700_000_000_000;
const pending = (token: string, fingerprint = "-") => `P1 ${token} ${start} ${fingerprint}`;
const complete = (token: string) => `C1 ${token} ${start} - "${token}"`;
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

  test("it shows that a quorum has the result", async () => {
    const { call, runtime, sent } = await calling([complete("ta"), pending("tb"), complete("ta")]);
    await runtime.advance(49);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.value).toEqual({ status: "replayed", value: "ta" });
    // Nothing had to be brought to a quorum.
    expect(sent()).toBe(3);
  });

  test("it shows another fingerprint, where the others fail", async () => {
    const { call, runtime } = await calling(
      [undefined, undefined, pending("ta", "ab")],
      { fingerprint: "x" },
      (links) => silence(links.slice(0, 2)),
    );
    await runtime.advance(50);
    expect(call.error).toBeInstanceOf(FingerprintMismatchError);
  });
});

describe("the slowest endpoint is not waited for where the answer is known:", () => {
  const options = { waitUntil: () => undefined };

  test("another run has a quorum", async () => {
    const { call } = await calling([pending("ta"), pending("ta"), undefined], options);
    expect(call.error).toBeInstanceOf(InProgressError);
  });

  test("a quorum has the result", async () => {
    const { call } = await calling([complete("ta"), complete("ta"), undefined], options);
    expect(call.value).toEqual({ status: "replayed", value: "ta" });
  });

  test("a run has another fingerprint", async () => {
    const other = pending("ta", "ab");
    const { call } = await calling([other, other, undefined], { ...options, fingerprint: "x" });
    expect(call.error).toBeInstanceOf(FingerprintMismatchError);
  });

  test("a quorum is free, and a minority has a result", async () => {
    const texts = [complete("ta"), undefined, undefined, undefined, undefined];
    const { call, world } = await calling(texts, options);
    expect(call.value).toEqual({ status: "replayed", value: "ta" });
    expect(textsOf(world).slice(0, 4)).toEqual(new Array(4).fill(complete("ta")));
  });
});

describe("a result that only a minority has", () => {
  test("is not spread where it cannot be decoded", async () => {
    const unreadable = `C1 ta ${start} - no JSON`;
    const { call, world, runtime } = await calling([unreadable, undefined, undefined]);
    await runtime.advance(100);
    expect(call.error).toBeInstanceOf(RecordCorruptError);
    expect(textsOf(world)).toEqual([unreadable, null, null]);
  });

  test("is like a run under way where it cannot be brought to a quorum, for two timeouts", async () => {
    const { call, runtime, events, links } = await calling([complete("ta"), undefined, undefined]);
    // Nothing is replaced there; the claims of each round are freed.
    for (const link of links.slice(1)) {
      link.fate = ([name, ...words]) => (name === "SET" && words.includes("IFEQ") ? "refused" : "delivered");
    }
    await runtime.advance(199);
    expect(call.settled).toBe(false);
    await runtime.advance(200);
    expect(call.error).toBeInstanceOf(InProgressError);
    expect((call.error as InProgressError).retryAfter).toBe(100);
    expect(events.map(({ type }) => type)).toEqual(["busy"]);
  });
});

describe("a silent endpoint", () => {
  /** Calls where one endpoint has another run, one is free, and one is silent: when rounds begin, and when the call ends. */
  async function rounds(wait: number, deadline?: number) {
    const world = virtualWorld({ dialect: "upstash" });
    await put(world, [pending("ta"), undefined, undefined]);
    const begun = world.runtime.now();
    const { idempotency, links, started } = runner(world, { wait });
    const times: number[] = [];
    links[0]!.fate = (command) => {
      if (isBegin(command)) times.push(world.runtime.now() - begun);
      return "delivered";
    };
    links[2]!.fate = () => "lost";
    const end = deadline === undefined ? {} : { deadline: begun + deadline };
    const call = watch(idempotency.run("key", end, never));
    await started();
    await world.runtime.advance(2_000);
    expect(call.error).toBeInstanceOf(QuorumError);
    return times;
  }

  test("is waited for in the last round, to tell a run under way from an outage", async () => {
    expect(await rounds(0)).toEqual([0, 110]);
    expect(await rounds(100)).toEqual([0, 110]);
  });

  test("is not waited for as long in those before", async () => {
    const times = await rounds(150);
    expect(times.slice(0, 3)).toEqual([0, 60, 170]);
  });

  test("is waited for in the last round before the deadline", async () => {
    expect(await rounds(1_000, 90)).toEqual([0]);
  });
});

describe("a claim in a later round", () => {
  test("lasts until the deadline and one timeout more, counted from the call", async () => {
    const world = virtualWorld({ dialect: "upstash" });
    await put(world, new Array(3).fill(pending("ta")), 200);
    const deadline = world.runtime.now() + 500;
    const { idempotency, started } = runner(world, { wait: 1_000, backoff: () => 50 });
    let remaining = 0;
    const call = watch(
      idempotency.run("key", { deadline }, (context) => {
        remaining = context.remaining();
        return new Promise(() => undefined);
      }),
    );
    await started();
    await world.runtime.advance(200);
    expect(ttls(world)).toEqual([400, 400, 400]);
    expect([Math.round(remaining), call.settled]).toEqual([295, false]);
  });

  test("runs where that of the first round was granted too late", async () => {
    const world = virtualWorld({ dialect: "upstash" });
    const { slow } = delays(world.runtime);
    const { idempotency, links, started } = runner(world, { lease: 100, wait: 1_000 });
    for (const link of links) {
      link.fate = (command) => {
        if (!isBegin(command)) return "delivered";
        link.fate = () => "delivered";
        // The lease less the drift: nothing of it is left.
        return slow(97);
      };
    }
    const call = watch(idempotency.run("key", () => world.runtime.now() - start));
    await started();
    await world.runtime.advance(2_500);
    expect(call.value).toMatchObject({ status: "executed" });
    expect((call.value as { value: number }).value).toBeGreaterThan(97);
  });
});
