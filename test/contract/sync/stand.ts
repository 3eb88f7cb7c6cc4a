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
import { allArrived, type OpenStore, type Store, storesOf } from "../../support/stores.ts";

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

/** The embedded engine and real servers, and `@upstash/redis` clients in front of an engine. */
export function stores(
  counts: readonly number[],
  real: readonly number[],
): (Pick<Store, "title" | "open" | "count"> & { readonly engine?: Store["engine"] })[] {
  const sdk = atLength<[number, Dialect]>([[3, "upstash"]], [[1, "redis"]]);
  return [
    ...storesOf(counts, real),
    ...sdk.map(([count, dialect]) => ({
      title: `@upstash/redis, ${count} × ${dialect}`,
      count,
      open: () => openSdk(count, dialect),
    })),
  ];
}

async function openSdk(count: number, dialect: Dialect): Promise<OpenStore> {
  const local = await start({ count, engine: "embedded", dialect });
  return {
    endpoints: local.endpoints.map(({ url, token, name }) =>
      upstashEndpoint(sdkClient({ url, token }), { name, dialect }),
    ),
    execute: (index, command) => local.endpoints[index]!.execute(command),
    cost(index) {
      const { requests, billed } = local.endpoints[index]!.log;
      return { requests, billed };
    },
    close: local.close,
  };
}

/** Sends one command about a key to every endpoint. */
export function onEach(store: OpenStore, ...command: [string, string, ...string[]]): Promise<unknown[]> {
  return Promise.all(store.endpoints.map((_, index) => store.execute(index, command)));
}

/** Requests and commands billed for what `work` does with one client, by endpoint. */
export async function costOf(
  store: OpenStore,
  { links }: Pick<Visitor, "links">,
  work: () => Promise<unknown>,
): Promise<number[]> {
  const total = () => {
    const costs = store.endpoints.map((_, index) => store.cost(index));
    const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);
    return [sumOf(costs.map(({ requests }) => requests)), sumOf(costs.map(({ billed }) => billed))];
  };
  await allArrived(links);
  const before = total();
  await work();
  await allArrived(links);
  return total().map((sum, index) => (sum - before[index]!) / store.endpoints.length);
}
