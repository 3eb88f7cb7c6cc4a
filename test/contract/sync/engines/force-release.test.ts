import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command, Redlock } from "../../../../src/index.ts";
import {
  type ArrivalsMissingError,
  CountDownLatch,
  CyclicBarrier,
  forceRelease,
  once,
  type SynchronizerKind,
} from "../../../../src/sync/index.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { rejection } from "../../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../../support/stores.ts";
import { stores, type Visitor, visitor } from "../stand.ts";

type Use = (redlock: Redlock, name: string) => Promise<unknown>;

/** Uses that no later request of theirs may repeat once they are freed: all, or those of one operation. */
const uses: readonly [SynchronizerKind, Use, operation?: string][] = [
  ["CountDownLatch", (redlock, name) => new CountDownLatch(redlock, name, { count: 2 }).arrive("a")],
  [
    "CyclicBarrier",
    async (redlock, name) => {
      const barrier = new CyclicBarrier(redlock, name, { parties: 2 });
      const { arrived } = (await rejection(barrier.arriveAndWait("a", { wait: 0 }))) as ArrivalsMissingError;
      return arrived;
    },
  ],
  ["once", (redlock, name) => once(redlock, name, { every: 600_000 }, () => 1), "extend"],
];

describe.each(stores([1, 3], [1, 3]))("forceRelease on $title", ({ open }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  /** Executes again, as late requests, what a visitor has sent about a name to every endpoint. */
  async function repeat({ links }: Visitor, name: string, operation = ""): Promise<void> {
    const isLate = (command: Command) =>
      command.some((word) => String(word).includes(name)) && (!operation || command.includes(operation));
    for (const [index, { sent }] of links.entries()) {
      for (const command of sent.filter(isLate)) {
        await store.endpoints[index]!.send(command, new AbortController().signal).catch(() => undefined);
      }
    }
  }

  test.each(uses)("%s: is free, also after late requests, and can be used again", async (kind, use, late) => {
    const name = newResource("free");
    expect(await forceRelease(second.redlock, kind, name)).toBe(false);
    const outcome = await use(first.redlock, name);
    await allArrived(first.links);
    expect(await forceRelease(second.redlock, kind, name)).toBe(true);
    await repeat(first, name, late);
    expect(await forceRelease(second.redlock, kind, name)).toBe(false);
    expect(await use(second.redlock, name)).toEqual(outcome);
  });
});
