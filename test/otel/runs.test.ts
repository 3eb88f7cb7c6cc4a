import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";
import { link } from "../support/link.ts";
import { type OtelStand, otelStand } from "./stand.ts";

// The spans and metrics of idempotent runs and requests; and what does not depend on the kind of event.

function open(stand: OtelStand = otelStand()) {
  const links = ["e1", "e2", "e3"].map((name) => link(memoryEndpoint({ name })));
  const redlock = new Redlock({ endpoints: links, onEvent: stand.onEvent });
  return { links, redlock, stand, idempotency: new Idempotency(redlock, { onEvent: stand.onEvent }) };
}

const outcomesOf = (stand: OtelStand) =>
  stand.spans().map(({ name, attributes, error }) => [name, attributes["redlock.outcome"], error]);

describe("a run", () => {
  test("has one span, whatever becomes of it", async () => {
    const { idempotency, links, stand } = open();
    await idempotency.run("k", { fingerprint: "a" }, () => 1);
    await idempotency.run("k", { fingerprint: "a" }, () => 2);
    await expect(idempotency.run("k", { fingerprint: "b" }, () => 3)).rejects.toThrow();
    const failure = Object.assign(new Error("about a customer"), { code: "CARD_DECLINED" });
    await expect(idempotency.run("f", () => Promise.reject(failure))).rejects.toBe(failure);
    await expect(idempotency.run("g", () => Promise.reject(new TypeError("no")))).rejects.toThrow();
    await idempotency.run("large", { maxResult: 1_000 }, () => "x".repeat(2_000));
    await idempotency.run("busy", () => idempotency.run("busy", () => 0).catch(() => "was busy"));
    const signal = AbortSignal.abort(new RangeError("given up"));
    await expect(idempotency.run("k", { signal }, () => 4)).rejects.toThrow("given up");
    for (const each of links) each.fate = () => "refused";
    await expect(idempotency.run("k", () => 5)).rejects.toMatchObject({ code: "NO_QUORUM" });
    const run = "idempotency.run";
    expect(outcomesOf(stand)).toEqual([
      [run, "executed", undefined],
      [run, "replayed", undefined],
      [run, "mismatch", "FINGERPRINT_MISMATCH"],
      [run, "failed", "CARD_DECLINED"],
      [run, "failed", "TypeError"],
      [run, "unstored", "too-large"],
      [run, "busy", undefined],
      [run, "executed", undefined],
      [run, "aborted", "RangeError"],
      [run, "unavailable", "NO_QUORUM"],
    ]);
    expect(stand.spans()[0]?.attributes).toMatchObject({ "redlock.requests": 9 });
    const operations = await stand.series("redlock.operations");
    expect(operations).toContainEqual([{ "redlock.operation": "run", "redlock.outcome": "executed" }, 2]);
    expect(await stand.series("idempotency.run.duration")).toHaveLength(operations.length);
    expect(await stand.exported()).not.toContain("about a customer");
  });

  test("names its key only where it is asked to", async () => {
    for (const names of [false, true]) {
      const { idempotency, stand } = open(otelStand({ names }));
      await idempotency.run("order-of-jane", () => "a result");
      const text = await stand.exported();
      expect(text.includes("order-of-jane")).toBe(names);
      expect(text).not.toContain("a result");
    }
  });
});

test("a request has the span of its run; refusals and unguarded requests are counted", async () => {
  const { redlock, links, stand } = open();
  const { onEvent } = stand;
  const answer = async (key: string | undefined, failOpen = false) => {
    const headers = key === undefined ? {} : { "idempotency-key": key };
    const request = new Request("https://shop.example/pay", { method: "POST", headers });
    const options = { redlock, onEvent, failOpen };
    return (await withIdempotency(request, () => new Response("paid"), options)).status;
  };
  expect([await answer("k"), await answer("k"), await answer(undefined)]).toEqual([200, 200, 400]);
  for (const each of links) each.fate = () => "refused";
  expect([await answer("k"), await answer("k", true)]).toEqual([503, 200]);
  expect(outcomesOf(stand).map(([, outcome]) => outcome)).toEqual([
    "executed",
    "replayed",
    "unavailable",
    "unavailable",
  ]);
  expect(await stand.series("idempotency.http.answers")).toEqual([
    [{ "redlock.outcome": "refused", "error.type": "KEY_MISSING" }, 1],
    [{ "redlock.outcome": "refused", "error.type": "NO_QUORUM" }, 1],
    [{ "redlock.outcome": "unguarded" }, 1],
  ]);
});

test("a tracer or a meter that throws changes nothing", async () => {
  const { tracer } = otelStand();
  const broken: OtelOptions["tracer"] = {
    startSpan() {
      throw new Error("the tracer's own");
    },
    startActiveSpan: tracer.startActiveSpan.bind(tracer),
  };
  const redlock = new Redlock({ endpoints: [memoryEndpoint()], onEvent: otel({ tracer: broken }) });
  const lock = await redlock.acquire("r");
  expect(await lock.release()).toBe(true);
});

test("without an SDK it does nothing, and needs no options", async () => {
  const onEvent = otel();
  const redlock = new Redlock({ endpoints: [memoryEndpoint()], onEvent });
  const idempotency = new Idempotency(redlock, { onEvent });
  expect(await redlock.using("r", () => idempotency.run("k", () => 1))).toEqual({
    status: "executed",
    value: 1,
  });
});

const wrong = (options: unknown) => options as OtelOptions;
test.each([
  [wrong({ name: true }), TypeError, 'otel has no option "name"; did you mean names?'],
  [wrong({ names: "yes" }), TypeError, "names must be a boolean"],
  [wrong({ tracer: {} }), TypeError, "tracer.startSpan is missing"],
  [wrong({ meter: "m" }), TypeError, "meter.createCounter is missing"],
  [wrong({ attributes: null }), TypeError, "attributes must be"],
  [wrong("names"), TypeError, "options must be"],
])("%j is refused", (options, type, message) => {
  expect(() => otel(options)).toThrow(type);
  expect(() => otel(options)).toThrow(message);
});
