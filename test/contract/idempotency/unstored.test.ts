import { expect, test } from "vitest";
import {
  type Codec,
  forgetKey,
  type Idempotency,
  inspectKey,
  type JsonValue,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { runner, textsOf } from "../../support/virtual-runs.ts";

// When the handler has returned, the effect has happened, and must not be repeated even where the result cannot be stored.

const never = () => expect.unreachable("the effect has happened");

/** A run whose result is not stored: what its caller and every later caller gets, and the record. */
async function expectUnstored(
  value: unknown,
  reason: "unserializable" | "too-large",
  { codec, ...options }: { codec?: Codec<unknown>; maxResult?: number } = {},
) {
  const world = virtualWorld();
  // The run has ended: its key is complete, and not dead.
  const { idempotency, links, events } = runner(world, { ...options, maxAttempts: 1 });
  const outcome = await idempotency.run("key", { codec, fingerprint: "f" }, () => value);
  expect(outcome).toStrictEqual({ status: "executed", value, unstored: reason });
  expect(outcome.value).toBe(value);
  const record = new RegExp(`^N1 t\\w{32} \\d+ \\w{64} ${reason}$`);
  for (const text of textsOf(world)) expect(text).toMatch(record);
  for (const { run } of [idempotency, runner(world).idempotency].map((each) => ({
    run: (fingerprint: string) => outcomeOf(each.run("key", { fingerprint }, never)),
  }))) {
    const { error } = await run("f");
    expect(error).toBeInstanceOf(ResultUnavailableError);
    expect(error).toMatchObject({ code: "RESULT_UNAVAILABLE", key: "key", reason });
    expect((await run("g")).error).toMatchObject({ code: "FINGERPRINT_MISMATCH" });
  }
  expect(events.map((event) => [event.type, event.reason])).toEqual([
    ["unstored", reason],
    ["omitted", reason],
    ["mismatch", undefined],
  ]);
  const sent = links.flatMap((link) => link.sent);
  expect(await inspectKey(idempotency, "key")).toMatchObject({ state: "complete", unstored: reason });
  expect(await forgetKey(idempotency, "key")).toBe(true);
  expect(await idempotency.run("key", () => "again")).toEqual({ status: "executed", value: "again" });
  return { sent, error: events[0]?.error };
}

test.each<[what: string, value: unknown, message: RegExp]>([
  ["what JSON has not", 1n, /BigInt/],
  ["what JSON would lose", { lines: [new Map()] }, /the result\.lines\[0\] is of class Map/],
])("%s is not run again", async (_what, value, message) => {
  const { error } = await expectUnstored(value, "unserializable");
  expect(String(error)).toMatch(message);
});

test("what a codec that returns no text was given is not run again", async () => {
  const codec = { encode: (() => 1) as never, decode: JSON.parse };
  const { error } = await expectUnstored("paid", "unserializable", { codec });
  expect(String(error)).toMatch(/codec\.encode/);
});

test("a result larger than maxResult is not uploaded, and the handler does not run again", async () => {
  for (const value of ["x".repeat(1_000), "ü".repeat(500), '"'.repeat(300), ["x".repeat(2_000_000)]]) {
    const { sent } = await expectUnstored(value, "too-large", { maxResult: 1_000 });
    for (const command of sent) expect(JSON.stringify(command).length).toBeLessThan(4_000);
  }
  await expectUnstored("x".repeat(1_000_000), "too-large");
});

test("every caller gets what is stored, the first one too", async () => {
  class Payment {
    readonly at = new Date(0);
    readonly note = undefined;
    readonly parts = [-0, undefined];
    amount = () => 1;
  }
  const { idempotency } = runner(virtualWorld());
  const stored = { at: "1970-01-01T00:00:00.000Z", parts: [0, null] };
  const cents: Codec<number> = { encode: (value) => value.toFixed(2), decode: Number };
  for (const status of ["executed", "replayed"]) {
    const paid = await idempotency.run<unknown>("key", () => new Payment());
    expect(paid).toStrictEqual({ status, value: stored });
    const rounded = await idempotency.run("rounded", { codec: cents }, () => 1 / 3);
    expect(rounded).toEqual({ status, value: 0.33 });
  }
});

test("the types of results refuse results that JSON does not return as they were, unless there is a codec", () => {
  interface Payment {
    readonly id: number;
    readonly note?: string;
    readonly parts: readonly Payment[];
    pay(): void;
  }
  const check = (idempotency: Idempotency, payment: Payment, anything: unknown, value: JsonValue) => {
    idempotency.run("k", () => undefined);
    idempotency.run("k", async ({ signal }) => (signal.aborted ? "x" : null));
    idempotency.run("k", { scope: "s" }, async ({ signal }) => ({ aborted: signal.aborted }));
    idempotency.run("k", async () => payment);
    idempotency.run("k", () => anything);
    idempotency.run("k", () => value);
    idempotency.run("k", () => Promise.reject(new Error("no")));
    const codec: Codec<Map<string, number>> = { encode: () => "", decode: () => new Map() };
    idempotency.run("k", { codec }, () => new Map<string, number>());
    // @ts-expect-error it comes back as a string
    idempotency.run("k", () => new Date());
    // @ts-expect-error JSON has none
    idempotency.run("k", async () => 1n);
    // @ts-expect-error it comes back as {}
    idempotency.run("k", { scope: "s" }, async () => new Map<string, number>());
    // @ts-expect-error it comes back as a string
    idempotency.run("k", async () => ({ paid: { at: new Date() } }));
    // @ts-expect-error it comes back as an object
    idempotency.run("k", async () => [new Uint8Array(1)]);
    // @ts-expect-error there is none
    idempotency.run("k", () => () => 1);
  };
  expect(check).toBeTypeOf("function");
});
