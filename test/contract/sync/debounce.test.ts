import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LockLostError, QuorumError, Redlock, systemRuntime } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import { announceScript } from "../../../src/sync/debounce.ts";
import { debounce } from "../../../src/sync/index.ts";
import { memoryEndpoint } from "../../../src/testing/index.ts";
import { gate, link } from "../../support/link.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, standing, stores, type Visitor, visitor } from "./stand.ts";

const unreachable = () => expect.unreachable("it must not run");

test("announceScript has the hash of the text that each dialect sends", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const { source } = announceScript;
  expect(announceScript.sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});

// Concurrent, because they mostly wait for windows that are long enough for a busy machine.
describe.each(stores([1, 2, 3, 5], [1, 3]))("debounce on $title", { concurrent: true }, ({ open, count }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  /** Waits until a call other than those `before` it stands at every endpoint. */
  async function announced(name: string, before: readonly unknown[] = []): Promise<unknown> {
    return until(async () => {
      const texts = new Set(await standing(store, "debounce", name));
      const [text] = texts;
      return texts.size === 1 && text !== null && !before.includes(text) && text;
    }, "an announcement");
  }

  test("a lone call runs when its window is over, and the next one again", async () => {
    const name = newResource("reindex");
    for (const { redlock } of [first, second, first]) {
      const begun = performance.now();
      const outcome = await debounce(redlock, name, { window: 60 }, async () => performance.now() - begun);
      expect(outcome.ran && outcome.value).toBeGreaterThanOrEqual(59);
    }
  });

  test("the last call of a burst runs, independent of clocks", async () => {
    const name = newResource("reindex");
    const texts: unknown[] = [];
    const calls: Promise<unknown>[] = [];
    const window = paced(1_500);
    // Each client's clock is an hour behind the previous client's.
    for (let index = 0; index < 4; index += 1) {
      const runtime = { ...systemRuntime, now: () => Date.now() - index * 3_600_000 };
      const { redlock } = visitor(store, { runtime });
      calls.push(debounce(redlock, name, { window }, () => index));
      texts.push(await announced(name, texts));
    }
    expect(await Promise.all(calls)).toEqual([
      { ran: false },
      { ran: false },
      { ran: false },
      { ran: true, value: 3 },
    ]);
  });

  test("one of several simultaneous calls runs", async () => {
    const name = newResource("reindex");
    let runs = 0;
    const window = paced(1_500);
    const calls = Array.from({ length: 4 }, () =>
      debounce(visitor(store).redlock, name, { window }, () => ++runs),
    );
    const outcomes = await Promise.all(calls);
    expect(runs).toBe(1);
    expect(outcomes.filter(({ ran }) => ran).length).toBe(1);
  });

  test("after an aborted call, the call before it runs", async () => {
    const name = newResource("reindex");
    const before = debounce(first.redlock, name, { window: paced(1_000) }, () => "before");
    const text = await announced(name);
    const controller = new AbortController();
    const { signal } = controller;
    const last = rejection(debounce(second.redlock, name, { window: 60_000, signal }, unreachable));
    await announced(name, [text]);
    controller.abort(new Error("enough"));
    expect(await last).toEqual(new Error("enough"));
    expect(await before).toEqual({ ran: true, value: "before" });
  });

  test("a call whose process died still supersedes the one before it", async () => {
    const name = newResource("reindex");
    const before = debounce(first.redlock, name, { window: paced(1_000) }, unreachable);
    const text = await announced(name);
    const dying = visitor(store, { timeout: 50 });
    const died = rejection(
      debounce(dying.redlock, name, { window: 60_000, signal: AbortSignal.timeout(1_500) }, unreachable),
    );
    await announced(name, [text]);
    for (const link of dying.links) link.fate = () => "lost";
    expect(await before).toEqual({ ran: false });
    await died;
  });

  test("an announcement whose answer was lost is repeated", async () => {
    const name = newResource("reindex");
    const shaky = visitor(store);
    for (const link of shaky.links) {
      let sent = 0;
      link.fate = () => (++sent % 2 === 1 ? "reply lost" : "delivered");
    }
    expect(await debounce(shaky.redlock, name, { window: 30 }, () => "ran")).toEqual({
      ran: true,
      value: "ran",
    });
  });

  test("an outage is a QuorumError, and the announcement is rolled back", async () => {
    const name = newResource("reindex");
    const cut = visitor(store, { wait: 30 });
    const majority = Math.floor((count + 1) / 2);
    cut.links.forEach((link, index) => {
      if (index < majority) link.fate = () => "refused";
    });
    expect(await rejection(debounce(cut.redlock, name, { window: 10 }, unreachable))).toBeInstanceOf(
      QuorumError,
    );
    await allArrived(cut.links);
    // Where its rollback overtook the announcement, another one follows.
    const isGone = async () => (await standing(store, "debounce", name)).every((text) => text === null);
    await until(isGone, "nothing left");
  });

  test("its key lives as long as any call may need it, and expires", async () => {
    const name = newResource("reindex");
    const long = rejection(
      debounce(first.redlock, name, { window: 40_000, signal: AbortSignal.timeout(1_500) }, unreachable),
    );
    const text = await announced(name);
    const short = debounce(second.redlock, name, { window: 20, ttl: 5_000 }, () => 1);
    await announced(name, [text]);
    for (const ms of (await onEach(store, "PTTL", keyOf("redlock", "debounce", name))) as number[]) {
      expect(ms > 40_000 && ms <= 50_000).toBe(true);
    }
    expect(await short).toEqual({ ran: true, value: 1 });
    await long;
  });

  test("costs two requests per endpoint", async () => {
    const name = newResource("reindex");
    const { redlock, links } = visitor(store);
    await debounce(redlock, name, { window: 5 }, () => undefined);
    await allArrived(links);
    const commands = links.flatMap(({ sent }) => sent.map(([operation]) => operation));
    expect(commands.filter((operation) => operation === "EVALSHA").length).toBe(2 * count);
  });

  test("an error of the routine is passed on", async () => {
    const failed = debounce(first.redlock, newResource(), { window: 5 }, () =>
      Promise.reject(new Error("no")),
    );
    expect(await rejection(failed)).toEqual(new Error("no"));
  });
});

test("a rollback that overtakes its announcement is followed by another", async () => {
  const endpoints = ["a", "b", "c"].map((name) => memoryEndpoint({ name }));
  const last = endpoints[2]!.engine;
  last.execute(["SCRIPT", "LOAD", upstashFlag + announceScript.source]);
  const links = endpoints.map(link);
  for (const each of links.slice(0, 2)) each.fate = () => "refused";
  const overtaken = gate();
  links[2]!.fate = ([operation]) => {
    if (operation === "EVALSHA") return { before: () => overtaken.passed };
    overtaken.open();
    return "delivered";
  };
  const redlock = new Redlock({ endpoints: links, timeout: 5_000, wait: 0 });
  expect(await rejection(debounce(redlock, "n", { window: 10 }, unreachable))).toBeInstanceOf(QuorumError);
  await until(() => links[2]!.sent.length === 3 && links[2]!.pending === 0, "a second rollback");
  expect(links[2]!.sent.map(([operation]) => operation)).toEqual(["EVALSHA", "DELEX", "DELEX"]);
  expect(last.execute(["GET", keyOf("redlock", "debounce", "n")])).toBeNull();
});

test("a process that was frozen for longer than its ttl does not run", async () => {
  const runtime = steppingRuntime();
  const redlock = new Redlock({ endpoints: [memoryEndpoint({ runtime })], runtime });
  const call = rejection(debounce(redlock, "n", { window: 100, ttl: 1_000 }, unreachable));
  await runtime.advance(50);
  runtime.wallOffset += 5_000;
  await runtime.advance(60);
  expect(await call).toBeInstanceOf(LockLostError);
  expect(runtime.pending).toBe(0);
});

describe("arguments", () => {
  const endpoint = memoryEndpoint();
  const redlock = new Redlock({ endpoints: [endpoint] });
  const wrong = (value: unknown) => value as never;

  test.each<[string, () => Promise<unknown>, typeof RangeError | typeof TypeError, RegExp]>([
    ["no window", () => debounce(redlock, "n", wrong({}), unreachable), TypeError, /window.*missing/],
    ["window 0", () => debounce(redlock, "n", { window: 0 }, unreachable), RangeError, /window.*0/],
    ["window 1.5", () => debounce(redlock, "n", { window: 1.5 }, unreachable), RangeError, /1\.5/],
    ["window 2³⁰", () => debounce(redlock, "n", { window: 2 ** 30 }, unreachable), RangeError, /window/],
    ["ttl 9", () => debounce(redlock, "n", { window: 5, ttl: 9 }, unreachable), RangeError, /ttl.*9/],
    ["no name", () => debounce(redlock, "", { window: 5 }, unreachable), RangeError, /0/],
    ["no routine", () => debounce(redlock, "n", { window: 5 }, wrong(7)), TypeError, /routine.*number/],
    [
      "signal {}",
      () => debounce(redlock, "n", { window: 5, signal: wrong({}) }, unreachable),
      TypeError,
      /signal/,
    ],
  ])("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(endpoint.log).toEqual([]);
  });
});
