import { afterAll, beforeAll, describe } from "vitest";
import { atLength } from "../../support/sets.ts";
import {
  type Client,
  clientOf,
  type OpenStore,
  type Store,
  storeOf,
  storesOf,
} from "../../support/stores.ts";

/** An open store, and two of its clients. */
export interface Opened {
  readonly store: OpenStore;
  readonly first: Client;
  readonly second: Client;
}

/**
 * A suite for the embedded engine, real servers, and `@upstash/redis` clients in front of an engine. They run concurrently,
 * because they mostly wait; the tests of each run one after another.
 */
export function onStores(
  counts: readonly number[],
  real: readonly number[],
  suite: (at: Opened, set: Store) => void,
): void {
  const sdk = { engine: "embedded", via: "sdk" } as const;
  const overSdk = atLength(
    [storeOf({ ...sdk, count: 3, dialect: "upstash" })],
    [storeOf({ ...sdk, count: 1, dialect: "redis" })],
  );
  describe.concurrent.each([...storesOf(counts, real), ...overSdk])("on $title", (set) => {
    describe.sequential("in turn", () => {
      let store: OpenStore;
      const at = {} as { -readonly [Name in keyof Opened]: Opened[Name] };
      beforeAll(async () => {
        store = await set.open();
        Object.assign(at, { store, first: clientOf(store), second: clientOf(store) });
      });
      afterAll(() => store.close());
      suite(at, set);
    });
  });
}
