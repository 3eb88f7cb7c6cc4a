import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { start } from "../../../local/src/index.ts";
import { httpEndpoint } from "../../../src/endpoints/http.ts";
import { EndpointError } from "../../../src/errors.ts";
import {
  type Codec,
  forgetKey,
  Idempotency,
  type IdempotencyEvent,
  InProgressError,
  inspectKey,
  type JsonValue,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";
import { Redlock } from "../../../src/redlock.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordsOf,
  storesOf,
} from "../../support/stores.ts";

// When the handler has returned, the effect has happened, and must not be repeated even where the result cannot be stored.

const never = () => expect.unreachable("the effect has happened");
const circular: Record<string, unknown> = {};
circular.self = circular;
const throwing = {
  toJSON() {
    throw new Error("no JSON");
  },
};
const codecOf = (encode: () => unknown): Codec<unknown> => ({
  encode: encode as () => string,
  decode: JSON.parse,
});

eachEngine(storesOf([1, 2, 3], [1, 3]))("results on $title", ({ open, engine, count, dialect }) => {
  let store: OpenStore;
  let other: Client;
  beforeAll(async () => {
    store = await open();
    other = clientOf(store);
  });
  afterAll(() => store.close());

  /** A run whose result is not stored: what its caller and every later caller gets, and the record. */
  async function expectUnstored(
    value: unknown,
    reason: "unserializable" | "too-large",
    { codec, ...options }: { codec?: Codec<unknown>; maxResult?: number } = {},
  ) {
    const key = freshKey();
    const events: IdempotencyEvent[] = [];
    const { idempotency, links } = clientOf(store, {
      ...options,
      // The run has ended: its key is complete, and not dead.
      maxAttempts: 1,
      onEvent: (event) => event.type !== "called" && events.push(event),
    });
    const outcome = await idempotency.run(key, { codec, fingerprint: "f" }, () => value);
    expect(outcome).toStrictEqual({ status: "executed", value, unstored: reason });
    expect(outcome.value).toBe(value);
    await allArrived(links);
    const records = await recordsOf(store, key);
    for (const record of records) expect(record).toMatch(new RegExp(`^N1 t\\w{32} \\d+ \\w{64} ${reason}$`));
    for (const client of [idempotency, other.idempotency]) {
      const { error } = await outcomeOf(client.run(key, { fingerprint: "f" }, never));
      expect(error).toBeInstanceOf(ResultUnavailableError);
      expect(error).toMatchObject({
        name: "ResultUnavailableError",
        code: "RESULT_UNAVAILABLE",
        key,
        reason,
      });
    }
    expect((await outcomeOf(idempotency.run(key, { fingerprint: "g" }, never))).error).toMatchObject({
      code: "FINGERPRINT_MISMATCH",
    });
    expect(events.map(({ type, reason }) => [type, reason])).toEqual([
      ["unstored", reason],
      ["omitted", reason],
      ["mismatch", undefined],
    ]);
    expect(await inspectKey(idempotency, key)).toMatchObject({ state: "complete", unstored: reason });
    expect(await forgetKey(idempotency, key)).toBe(true);
    expect(await idempotency.run(key, () => "again")).toEqual({ status: "executed", value: "again" });
    return { sent: links.flatMap(({ sent }) => sent), error: events[0]?.error };
  }

  test.each<[what: string, value: unknown, message: RegExp]>([
    ["a function", () => undefined, /function/],
    ["a symbol", Symbol("s"), /symbol/],
    ["a bigint", 1n, /BigInt/],
    ["a bigint within", { ids: [1n] }, /BigInt/],
    ["a circle", circular, /circular/],
    ["a throwing toJSON", throwing, /no JSON/],
    ["a Map within", { lines: [new Map()] }, /the result\.lines\[0\] is of class Map/],
  ])("%s is not run again", async (_what, value, message) => {
    const { error } = await expectUnstored(value, "unserializable");
    expect(String(error)).toMatch(message);
  });

  test("every caller gets what is stored, the first one too", async () => {
    class Payment {
      readonly at = new Date(0);
      readonly note = undefined;
      readonly parts = [-0, undefined];
      amount = () => 1;
    }
    const stored = { at: "1970-01-01T00:00:00.000Z", parts: [0, null] };
    const key = freshKey();
    const pay = () => other.idempotency.run<unknown>(key, () => new Payment());
    expect(await pay()).toStrictEqual({ status: "executed", value: stored });
    expect(await pay()).toStrictEqual({ status: "replayed", value: stored });
    const cents: Codec<number> = { encode: (value) => value.toFixed(2), decode: Number };
    const rounded = freshKey();
    for (const status of ["executed", "replayed"]) {
      const outcome = await other.idempotency.run(rounded, { codec: cents }, () => 1 / 3);
      expect(outcome).toEqual({ status, value: 0.33 });
    }
  });

  test.each<[what: string, encode: () => unknown, message: RegExp]>([
    [
      "throws",
      () => {
        throw new Error("cannot encode");
      },
      /cannot encode/,
    ],
    ["returns no string", () => 1, /codec\.encode/],
    ["returns a promise", async () => "late", /codec\.encode/],
    ["returns half of a surrogate pair", () => "\ud800", /surrogate/],
  ])("what a codec that %s was given is not run again", async (_what, encode, message) => {
    const { error } = await expectUnstored("paid", "unserializable", { codec: codecOf(encode) });
    expect(String(error)).toMatch(message);
  });

  test("a codec may be an object with a state of its own", async () => {
    class Signed implements Codec<unknown> {
      readonly #mark = "signed ";
      encode(value: unknown): string {
        return this.#mark + JSON.stringify(value);
      }
      decode(text: string): unknown {
        return JSON.parse(text.slice(this.#mark.length));
      }
    }
    const key = freshKey();
    const codec = new Signed();
    const first = await other.idempotency.run(key, { codec }, () => ({ paid: 1 }));
    expect(first).toEqual({ status: "executed", value: { paid: 1 } });
    expect(await other.idempotency.run(key, { codec }, never)).toEqual({
      status: "replayed",
      value: { paid: 1 },
    });
  });

  test("a result larger than maxResult is not uploaded, and the handler does not run again", async () => {
    for (const value of ["x".repeat(1_000), "ü".repeat(500), '"'.repeat(300), ["x".repeat(2_000_000)]]) {
      const { sent } = await expectUnstored(value, "too-large", { maxResult: 1_000 });
      for (const command of sent) expect(JSON.stringify(command).length).toBeLessThan(4_000);
    }
    await expectUnstored("x".repeat(1_000_000), "too-large");
  });

  test("a result of at most maxResult bytes in the request is stored", async () => {
    // Megabytes take the embedded Lua machine seconds.
    const maxResult = engine === "redis" ? 4_000_000 : 100_000;
    const measured = clientOf(store, { maxResult });
    for (const value of ["", "ü\n\"'<\u2028".repeat(300), "x".repeat(maxResult - 10_000)]) {
      const key = freshKey();
      await measured.idempotency.run(key, () => value);
      expect(await other.idempotency.run(key, never)).toEqual({ status: "replayed", value });
      const size = new TextEncoder().encode(JSON.stringify((await recordsOf(store, key))[0])).length;
      const again = freshKey();
      if (size < 1_000) continue;
      const exact = clientOf(store, { maxResult: Math.min(maxResult, size) });
      expect((await exact.idempotency.run(again, () => value)).unstored).toBe(undefined);
      const short = clientOf(store, { maxResult: size - 3 });
      expect((await short.idempotency.run(freshKey(), () => value)).unstored).toBe("too-large");
      expect((await inspectKey(other.idempotency, key)).state).toBe("complete");
      expect(await forgetKey(other.idempotency, key)).toBe(true);
    }
  });

  test.each([
    ["a gateway", "http", "HTTP 413, no usable reply", 413],
    [
      "Upstash",
      "redis",
      "HTTP 400, ERR max request size exceeded. Limit: 1048576 bytes, Actual: 1100000 bytes",
      400,
    ],
    ["Redis", "redis", "HTTP 400, ERR string exceeds maximum allowed size (proto-max-bulk-len)", 400],
  ] as const)(
    "what %s refuses for its size is uploaded once, and not run again",
    async (_, kind, said, status) => {
      const key = freshKey();
      const events: IdempotencyEvent[] = [];
      const { idempotency, links } = clientOf(store, {
        onEvent: (event) => event.type !== "called" && events.push(event),
      });
      const large = "x".repeat(10_000);
      let uploads = 0;
      for (const link of links) {
        link.fate = (command) => {
          if (JSON.stringify(command).length < 10_000) return "delivered";
          uploads += 1;
          return {
            before() {
              throw new EndpointError(link.name, kind, said, { status });
            },
          };
        };
      }
      const outcome = await idempotency.run(key, () => large);
      expect(outcome).toEqual({ status: "executed", value: large, unstored: "too-large" });
      expect(uploads).toBe(count);
      expect(events.map(({ type, reason }) => [type, reason])).toEqual([["unstored", "too-large"]]);
      const { error } = await outcomeOf(other.idempotency.run(key, never));
      expect(error).toMatchObject({ code: "RESULT_UNAVAILABLE", reason: "too-large" });
    },
  );

  test("a result that a minority refuses for its size is stored by the others", async () => {
    if (count < 3) return;
    const key = freshKey();
    const { idempotency, links } = clientOf(store);
    const large = "x".repeat(10_000);
    const refuse = (command: readonly unknown[]) => JSON.stringify(command).length >= 10_000;
    links[0]!.fate = (command) =>
      refuse(command)
        ? {
            before() {
              throw new EndpointError(links[0]!.name, "http", "HTTP 413, no usable reply", { status: 413 });
            },
          }
        : "delivered";
    expect(await idempotency.run(key, () => large)).toEqual({ status: "executed", value: large });
    expect((await other.idempotency.run(key, never)).value).toBe(large);
  });

  test("the reason takes the place of the result where a minority took that", async () => {
    if (count === 1) return;
    const key = freshKey();
    const { idempotency, links } = clientOf(store);
    const large = "x".repeat(10_000);
    for (const link of links.slice(1)) {
      link.fate = (command) =>
        JSON.stringify(command).length < 10_000
          ? "delivered"
          : {
              before() {
                throw new EndpointError(link.name, "http", "HTTP 413, no usable reply", { status: 413 });
              },
            };
    }
    expect((await idempotency.run(key, () => large)).unstored).toBe("too-large");
    for (const link of links) link.fate = () => "delivered";
    for (let time = 0; time < 2; time += 1) {
      const { error } = await outcomeOf(other.idempotency.run(key, never));
      expect(error).toBeInstanceOf(ResultUnavailableError);
    }
    expect((await recordsOf(store, key)).every((record) => record?.startsWith("N1 "))).toBe(true);
  });

  test("a reason that a minority has is brought to a quorum before any caller gets it", async () => {
    if (count < 3) return;
    const key = freshKey();
    const { idempotency, links } = clientOf(store, { timeout: paced(500), lease: paced(500) });
    const outcome = await idempotency.run<unknown>(key, { wait: 0 }, async () => {
      await allArrived(links);
      for (const link of links.slice(1)) link.fate = () => "lost";
      return 1n;
    });
    expect(outcome).toEqual({ status: "executed", value: 1n, unstored: "no-quorum" });
    const reader = clientOf(store, { timeout: paced(500) });
    // A bare quorum, with the endpoint that has the reason: without its answer a reader would not know of it.
    for (const link of reader.links.slice(Math.floor(count / 2) + 1)) link.fate = () => "lost";
    const later = await outcomeOf(reader.idempotency.run(key, { wait: 10_000 }, never));
    expect(later.error).toBeInstanceOf(ResultUnavailableError);
    const marked = (await recordsOf(store, key)).filter((record) => record?.startsWith("N1 "));
    expect(marked.length).toBeGreaterThanOrEqual(2);
  });

  test("a run under way is busy, also when its result will not be stored", async () => {
    const key = freshKey();
    await other.idempotency.run<unknown>(key, async () => {
      const { error } = await outcomeOf(clientOf(store).idempotency.run(key, never));
      expect(error).toBeInstanceOf(InProgressError);
      return 1n;
    });
  });

  test("a backoff that throws while storing goes on does not end the call", async () => {
    const { idempotency, links } = clientOf(store, {
      timeout: paced(500),
      backoff: () => {
        throw new Error("the user's own");
      },
    });
    const outcome = await idempotency.run(freshKey(), async () => {
      await allArrived(links);
      for (const link of links) link.fate = () => "refused";
      return "paid";
    });
    expect(outcome).toEqual({ status: "executed", value: "paid", unstored: "no-quorum" });
  });

  test.each([
    [999, RangeError],
    [4_000_001, RangeError],
    [1_000.5, RangeError],
    ["1000", TypeError],
  ])("maxResult %j is refused before anything runs", async (maxResult, type) => {
    const { error } = await outcomeOf(
      other.idempotency.run(freshKey(), { maxResult: maxResult as number }, never),
    );
    expect(error).toBeInstanceOf(type);
    expect(String(error)).toContain("maxResult");
  });

  if (count === 1) {
    test(`what a server takes no request for is run once (${dialect})`, async () => {
      // The server's own limit of 10 MB, which says so as Upstash does.
      await using local = await start({ count: 1, engine: "embedded" });
      const { url, token } = local.endpoints[0]!;
      const redlock = new Redlock({ endpoints: [httpEndpoint({ url, token, dialect })] });
      const idempotency = new Idempotency(redlock);
      const key = freshKey();
      expect((await idempotency.run(key, () => "x".repeat(11_000_000))).unstored).toBe("too-large");
      expect((await outcomeOf(idempotency.run(key, never))).error).toBeInstanceOf(ResultUnavailableError);
    });
  }
});

describe("the types of results", () => {
  test("refuse results that JSON does not return as they were, unless there is a codec", () => {
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
});
