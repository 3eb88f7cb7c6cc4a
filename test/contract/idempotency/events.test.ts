import { describe, expect, test } from "vitest";
import { FingerprintMismatchError, RecordCorruptError } from "../../../src/idempotency/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { never, runner, silence } from "../../support/virtual-runs.ts";

// What the hooks of a run learn, in virtual time.

describe("the event of a call says what it took", () => {
  const call = { key: "key", elapsed: 0 };

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
      { ...call, type: "busy" },
      { ...call, type: "executed", elapsed: 500 },
      { ...call, type: "replayed" },
    ]);
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
      { ...call, type: "unstored", reason, error },
      { ...call, type: "omitted", reason },
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
