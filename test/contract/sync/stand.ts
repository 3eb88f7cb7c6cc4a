import { afterAll, beforeAll, describe } from "vitest";
import { start } from "../../../local/src/index.ts";
import {
  type Dialect,
  Redlock,
  type RedlockEvent,
  type RedlockOptions,
  upstashEndpoint,
} from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { type Link, link } from "../../support/link.ts";
import { sdkClient } from "../../support/local-endpoints.ts";
import { atLength } from "../../support/sets.ts";
import { type OpenStore, type Store, storesOf } from "../../support/stores.ts";

/** One client of a store, with links of its own. */
export interface Visitor {
  readonly redlock: Redlock;
  readonly links: readonly Link[];
  readonly events: RedlockEvent[];
}

/** A client, {@link patient} unless its options say otherwise. */
export function visitor(store: OpenStore, options: Omit<RedlockOptions, "endpoints"> = {}): Visitor {
  const links = store.endpoints.map(link);
  const events: RedlockEvent[] = [];
  const redlock = new Redlock({
    ...patient,
    backoff: { min: 2, max: 20 },
    onEvent: (event) => event.type !== "request" && events.push(event),
    ...options,
    endpoints: links,
  });
  return { redlock, links, events };
}

/** An open store, and two of its clients. */
export interface Opened {
  readonly store: OpenStore;
  readonly first: Visitor;
  readonly second: Visitor;
}

type Set = Pick<Store, "title" | "open" | "count">;

/**
 * A suite for the embedded engine, real servers, and `@upstash/redis` clients in front of an engine. They run concurrently,
 * because they mostly wait; the tests of each run one after another.
 */
export function onStores(
  counts: readonly number[],
  real: readonly number[],
  suite: (at: Opened, set: Set) => void,
): void {
  const sdk = atLength<[number, Dialect]>([[3, "upstash"]], [[1, "redis"]]);
  const sets: Set[] = [
    ...storesOf(counts, real),
    ...sdk.map(([count, dialect]) => ({
      title: `@upstash/redis, ${count} × ${dialect}`,
      count,
      open: () => openSdk(count, dialect),
    })),
  ];
  describe.concurrent.each(sets)("on $title", (set) => {
    describe.sequential("in turn", () => {
      let store: OpenStore;
      const at = {} as { -readonly [Name in keyof Opened]: Opened[Name] };
      beforeAll(async () => {
        store = await set.open();
        Object.assign(at, { store, first: visitor(store), second: visitor(store) });
      });
      afterAll(() => store.close());
      suite(at, set);
    });
  });
}

async function openSdk(count: number, dialect: Dialect): Promise<OpenStore> {
  const local = await start({ count, engine: "embedded", dialect });
  return {
    endpoints: local.endpoints.map(({ url, token, name }) =>
      upstashEndpoint(sdkClient({ url, token }), { name, dialect }),
    ),
    execute: (index, command) => local.endpoints[index]!.execute(command),
    close: local.close,
  };
}

/** Sends one command about a key to every endpoint. */
export function onEach(store: OpenStore, ...command: [string, string, ...string[]]): Promise<unknown[]> {
  return Promise.all(store.endpoints.map((_, index) => store.execute(index, command)));
}
