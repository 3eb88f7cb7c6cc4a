import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { QuorumError, Redlock, systemRuntime } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import { announceScript } from "../../../src/sync/debounce.ts";
import { debounce } from "../../../src/sync/index.ts";
import { gate, link } from "../../support/link.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { standing, stores, type Visitor, visitor } from "./stand.ts";

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

  test("costs two requests per endpoint", async () => {
    const name = newResource("reindex");
    const { redlock, links } = visitor(store);
    await debounce(redlock, name, { window: 5 }, () => undefined);
    await allArrived(links);
    const commands = links.flatMap(({ sent }) => sent.map(([operation]) => operation));
    expect(commands.filter((operation) => operation === "EVALSHA").length).toBe(2 * count);
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
