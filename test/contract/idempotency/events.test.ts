import { describe, expect, test } from "vitest";
import {
  FingerprintMismatchError,
  Idempotency,
  type IdempotencyEvent,
  RecordCorruptError,
} from "../../../src/idempotency/index.ts";
import type { RedlockEvent } from "../../../src/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";
import { runner, silence } from "../../support/virtual-runs.ts";

// What the hooks of a run learn, in virtual time.

const never = () => expect.unreachable("nothing may run");

describe("the event of a call says what it took", () => {
  const cost = { key: "key", elapsed: 0, requests: 3, commands: 3 };

  test("executed, replayed, and busy meanwhile", async () => {
    const world = virtualWorld({ dialect: "upstash" });
    const { idempotency, events } = runner(world);
    await idempotency.run("key", async () => {
      await outcomeOf(idempotency.run("key", never));
      await world.runtime.advance(500);
      return "done";
    });
    await idempotency.run("key", never);
    expect(events).toEqual([
      { ...cost, type: "busy" },
      { ...cost, type: "executed", elapsed: 500, requests: 6, commands: 6 },
      { ...cost, type: "replayed" },
    ]);
  });

  test("failed, with the requests that freed the key", async () => {
    const { idempotency, events } = runner(virtualWorld({ dialect: "upstash" }));
    const error = new Error("declined");
    await outcomeOf(idempotency.run("key", () => Promise.reject(error)));
    expect(events).toMatchObject([{ type: "failed", key: "key", error }]);
    expect(events[0]!.error).toBe(error);
  });

  test("unstored and omitted, with the reason, and the codec's error where it was its own", async () => {
    const { idempotency, events } = runner(virtualWorld({ dialect: "upstash" }));
    const error = new Error("the codec's own");
    const codec = {
      encode: () => {
        throw error;
      },
      decode: () => never(),
    };
    await idempotency.run("key", { codec }, () => 1);
    await outcomeOf(idempotency.run("key", { codec }, never));
    const reason = "unserializable";
    expect(events).toEqual([
      { ...cost, type: "unstored", reason, error, requests: 6, commands: 6 },
      { ...cost, type: "omitted", reason },
    ]);
  });

  test("mismatch, corrupt and unavailable", async () => {
    const world = virtualWorld({ dialect: "upstash" });
    const { idempotency, events, links } = runner(world);
    await idempotency.run("key", { fingerprint: "a" }, () => 1);
    const calls = [
      idempotency.run("key", { fingerprint: "b" }, never),
      idempotency.run("key", { codec: { encode: String, decode: () => JSON.parse("no") } }, never),
    ];
    const errors = await Promise.all(calls.map((call) => outcomeOf<unknown>(call)));
    expect(errors[0]!.error).toBeInstanceOf(FingerprintMismatchError);
    expect(errors[1]!.error).toBeInstanceOf(RecordCorruptError);
    expect((errors[1]!.error as Error).cause).toBeInstanceOf(SyntaxError);
    silence(links);
    await outcomeOf(idempotency.run("key", never));
    expect(events.map(({ type }) => type).sort()).toEqual(["corrupt", "executed", "mismatch", "unavailable"]);
  });
});

test("every call reports its beginning and its end, with an id of its own", async () => {
  const world = virtualWorld();
  const events: IdempotencyEvent[] = [];
  const { idempotency, links } = runner(world, { onEvent: (event) => events.push(event) });
  await idempotency.run("key", async () => {
    await outcomeOf(idempotency.run("key", never));
  });
  await idempotency.run("key", never);
  await outcomeOf(idempotency.run("failing", () => Promise.reject(new Error("no"))));
  silence(links);
  await outcomeOf(idempotency.run("silent", never));
  const begins = events.filter(({ type }) => type === "called");
  const ends = events.filter(({ type }) => type !== "called");
  expect(begins[0]).toMatchObject({ key: "key", requests: 0, commands: 0 });
  const idOf = ({ id }: IdempotencyEvent) => id;
  // The second call began and ended within the first.
  expect(begins.map(idOf)).toEqual([ends[1]!, ends[0]!, ...ends.slice(2)].map(idOf));
  expect(new Set(begins.map(idOf)).size).toBe(5);
  expect(ends.map(({ type, key }) => [type, key])).toEqual([
    ["busy", "key"],
    ["executed", "key"],
    ["replayed", "key"],
    ["failed", "failing"],
    ["unavailable", "silent"],
  ]);
});

test("the client reports endpoints that failed", async () => {
  const world = virtualWorld();
  const events: RedlockEvent[] = [];
  const { idempotency, links, started } = runner(world, {}, { onEvent: (event) => events.push(event) });
  links[0]!.fate = () => "refused";
  const call = watch(idempotency.run("key", () => 0));
  await started();
  expect(call.value).toMatchObject({ status: "executed" });
  expect(events[0]).toMatchObject({ type: "endpointError", endpoint: "e1" });
  expect(new Set(events.map(({ type }) => type))).toEqual(new Set(["endpointError"]));
});

test.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new Error("the hook's own");
    },
  ],
  ["rejects", () => Promise.reject(new Error("the hook's own"))],
])("a hook that %s has no effect", async (_, onEvent) => {
  const { redlock } = virtualWorld().client();
  const idempotency = new Idempotency(redlock, { onEvent: onEvent as () => void });
  expect((await idempotency.run("key", () => 1)).status).toBe("executed");
});
