import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { isRedlockError, type LockOptions, QuorumError, Redlock } from "../../src/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { patient } from "../../test/support/beyond-tests.ts";
import { check, failureOf, same } from "./check.ts";
import { webhookCases } from "./webhooks.ts";

// The same cases for every runtime: plain functions that import no test framework and no runtime's module.

/** Address of an endpoint, as in the client's `endpoints` option. */
export interface Address {
  readonly url: string;
  readonly token: string;
}

/** The endpoints and the context of a case. */
export interface Stage {
  /** Three endpoints that work. */
  readonly healthy: readonly Address[];
  /** Answers every request with an HTML page and status 502. */
  readonly broken: Address;
  /** Never answers. */
  readonly silent: Address;
  /** The platform's context, or a replacement. */
  readonly context: { waitUntil(promise: Promise<unknown>): void };
}

let resources = 0;

function fresh(): string {
  resources += 1;
  return `resource-${crypto.randomUUID()}-${resources}`;
}

function client(endpoints: readonly Address[], options: LockOptions = {}): Redlock {
  return new Redlock({ ...patient, wait: Infinity, backoff: { min: 5, max: 50 }, ...options, endpoints });
}

/** How many streams wait for these resources at an endpoint. */
export async function streamsOf({ url, token }: Address, resources: readonly string[]): Promise<number> {
  const channels = resources.map((resource) => `redlock:wake-lock:{${resource}}`);
  const headers = { authorization: `Bearer ${token}` };
  const body = JSON.stringify(["PUBSUB", "NUMSUB", ...channels]);
  const response = await fetch(url, { method: "POST", headers, body });
  const counts = ((await response.json()) as { result: unknown[] }).result;
  return counts.reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
}

const isWorker = globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Workers, and platforms made like them. */
const isEdge = isWorker || "EdgeRuntime" in globalThis;

/**
 * Lets requests wait for six connections, as Cloudflare does, and workerd alone does not.
 *
 * @returns gives back what there was
 */
function limitConnections(): () => void {
  const send = globalThis.fetch;
  const queue: (() => void)[] = [];
  let open = 0;
  const close = () => {
    open -= 1;
    queue.shift()?.();
  };
  globalThis.fetch = async (...request: Parameters<typeof fetch>) => {
    if (open === 6) await new Promise<void>((resolve) => queue.push(resolve));
    open += 1;
    const response = await send(...request).catch((error: unknown) => {
      close();
      throw error;
    });
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    // Whether it is read, given up or aborted.
    void response.body!.pipeTo(writable).then(close, close);
    return new Response(readable, response);
  };
  return () => {
    globalThis.fetch = send;
  };
}

/** The request as Next.js hands it over: a proxy, behind which no constructor finds what a Request has inside. */
function proxied(request: Request): Request {
  return new Proxy(request, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A client that lives as long as the process. */
let common: Redlock | undefined;

/** The client of all requests that come at the same time. */
let busy: Redlock | undefined;

/** Waits for a condition. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Every case by its title. */
export const cases: Record<string, (stage: Stage) => Promise<void>> = {
  "a lock is acquired, verified, extended and released": async ({ healthy }) => {
    const lock = await client(healthy).acquire(fresh());
    check(lock.remaining() > 300_000 && lock.remaining() < patient.ttl, "validity below the ttl");
    check(!lock.signal.aborted, "a signal that has not aborted");
    same(await lock.verify(), true, "verify");
    check((await lock.extend(900_000)) > patient.ttl, "a longer validity");
    same(lock.ttl, 900_000, "ttl");
    same(await lock.release(), true, "release");
    same(await lock.release(), false, "second release");
    same(await lock.verify(), false, "verify after the release");
  },

  "a waiter reads a stream, and is woken up by a release": async ({ healthy }) => {
    const redlock = client(healthy, { wakeUp: pubSub });
    const resource = fresh();
    const held = await redlock.acquire(resource);
    let attempts = 0;
    const waiting = redlock.acquire(resource, {
      onEvent: (event) => {
        if (event.type === "acquired") attempts = event.rounds;
      },
    });
    const streams = () => streamsOf(healthy[0]!, [resource]);
    await until(async () => (await streams()) === 1);
    await held.release();
    await (await waiting).release();
    // The first round, the look when the stream stands, and the one that is granted: it has not polled.
    check(attempts <= 4, `few rounds, not ${attempts}`);
    await until(async () => (await streams()) === 0);
  },

  "eight that wait in one request share a stream, and are served in turn": async ({ healthy }) => {
    const redlock = client(healthy, { wakeUp: pubSub });
    const resource = fresh();
    const giveBack = limitConnections();
    const held = await redlock.acquire(resource);
    let inside = 0;
    let most = 0;
    const waiting = Array.from({ length: 8 }, async () => {
      const lock = await redlock.acquire(resource);
      inside += 1;
      most = Math.max(most, inside);
      await lock.verify();
      inside -= 1;
      await lock.release();
    });
    const streams = () => streamsOf(healthy[0]!, [resource]);
    await until(async () => (await streams()) === 1);
    await held.release();
    await Promise.all(waiting);
    same(most, 1, "most at once");
    await until(async () => (await streams()) === 0);
    giveBack();
  },

  "a request that waits for more than a Worker has connections for": async ({ healthy }) => {
    const redlock = client(healthy, { wakeUp: pubSub });
    const resources = Array.from({ length: 8 }, fresh);
    const giveBack = isWorker ? limitConnections() : () => undefined;
    const held = await Promise.all(resources.map((each) => redlock.acquire(each)));
    const waiting = resources.map((each) => redlock.acquire(each));
    await until(async () => (await streamsOf(healthy[0]!, resources)) === (isEdge ? 3 : 8));
    await Promise.all(held.map((lock) => lock.release()));
    for (const lock of await Promise.all(waiting)) await lock.release();
    giveBack();
  },

  "a client that several requests have": async ({ healthy }) => {
    common ??= client(healthy, { wakeUp: pubSub });
    const lock = await common.acquire("common");
    await new Promise((resolve) => setTimeout(resolve, 300));
    same(await lock.release(), true, "release");
  },

  "20 locks at once on three endpoints are six requests, to acquire and release them": async ({
    healthy,
  }) => {
    const redlock = client(healthy);
    await (await redlock.acquire(fresh())).release(); // the endpoints know the scripts from here on
    const original = globalThis.fetch;
    let sent = 0;
    globalThis.fetch = (...parameters: Parameters<typeof fetch>) => {
      sent += 1;
      return original(...parameters);
    };
    try {
      const locks = await Promise.all(Array.from({ length: 20 }, () => redlock.acquire(fresh())));
      const released = await Promise.all(locks.map((lock) => lock.release()));
      same(released, Array(20).fill(true), "releases");
    } finally {
      globalThis.fetch = original;
    }
    same(sent, 6, "requests");
  },

  "locks of requests that come at the same time": async ({ healthy }) => {
    busy ??= client(healthy);
    const locks = await Promise.all([fresh(), fresh()].map((each) => busy!.acquire(each)));
    same(await Promise.all(locks.map((lock) => lock.release())), [true, true], "releases");
  },

  "a held lock is LOCK_HELD, an outage is NO_QUORUM": async ({ healthy, broken, silent }) => {
    const resource = fresh();
    const lock = await client(healthy).acquire(resource);
    const held = await failureOf(client(healthy).acquire(resource, { wait: 0 }));
    same([isRedlockError(held), held.code], [true, "LOCK_HELD"], "held");
    await lock.release();
    const out = await failureOf(
      client([healthy[0]!, broken, silent], { timeout: 3_000 }).acquire(resource, { wait: 0 }),
    );
    check(out instanceof QuorumError, "a QuorumError");
    same(
      out.votes.map(({ cause }) => cause?.kind ?? null).sort(),
      [null, "http", "timeout"].sort(),
      "kinds of failure",
    );
  },

  "one endpoint may be silent": async ({ healthy, silent, context }) => {
    const redlock = client([healthy[0]!, healthy[1]!, silent], { timeout: 2_000, waitUntil: context });
    const lock = await redlock.acquire(fresh());
    check(lock.remaining() > 0, "validity");
    same(await lock.release(), true, "release");
  },

  "an abort ends a request without an answer": async ({ silent }) => {
    const controller = new AbortController();
    const attempt = failureOf(client([silent]).acquire(fresh(), { signal: controller.signal }));
    controller.abort(new Error("enough"));
    same(((await attempt) as Error).message, "enough", "the reason");
  },

  "a lock that is not extended aborts its signal": async ({ healthy }) => {
    const lock = await client(healthy).acquire(fresh(), { ttl: 300 });
    const { signal } = lock;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve());
    });
    same((signal.reason as { code: string }).code, "LOCK_LOST", "reason");
    check(lock.remaining() <= 0, "no validity");
    same((await failureOf(lock.extend())).code, "LOCK_LOST", "extend");
  },

  "a run is executed once and replayed": async ({ healthy, context }) => {
    const idempotency = new Idempotency(client(healthy), { waitUntil: context, wait: Infinity });
    const key = fresh();
    let runs = 0;
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () =>
        idempotency.run(key, { scope: ["shop", "orders"], fingerprint: "body" }, async ({ remaining }) => {
          runs += 1;
          check(remaining() > 0, "a lease");
          return { total: 12, text: "ü" };
        }),
      ),
    );
    same(runs, 1, "runs");
    same(
      outcomes.map(({ status }) => status).sort(),
      ["executed", ...new Array(4).fill("replayed")],
      "statuses",
    );
    for (const { value } of outcomes) same(value, { total: 12, text: "ü" }, "value");
    const mismatch = await failureOf(
      idempotency.run(key, { scope: ["shop", "orders"], fingerprint: "another" }, () => null),
    );
    same(mismatch.code, "FINGERPRINT_MISMATCH", "mismatch");
  },

  "a request that is a proxy is handled once": async ({ healthy, context }) => {
    const headers = { "idempotency-key": fresh(), "content-type": "text/plain" };
    let runs = 0;
    const pay = async (request: Request, run: { readonly signal: AbortSignal } | undefined) => {
      runs += 1;
      check(run && !run.signal.aborted && !request.signal.aborted, "a signal that has not aborted");
      same([request.method, request.headers.get("content-type")], ["POST", "text/plain"], "request");
      return new Response(`${new URL(request.url).pathname} ${await request.text()}`);
    };
    for (const replayed of [null, "true"]) {
      const request = new Request("https://shop.example/payments", { method: "POST", headers, body: "ü" });
      const options = { redlock: client(healthy), waitUntil: context };
      const response = await withIdempotency(proxied(request), pay, options);
      same(response.headers.get("idempotent-replayed"), replayed, "replayed");
      const type = response.headers.get("content-type")?.toLowerCase().replace(/\s/g, "");
      same(type, "text/plain;charset=utf-8", "type of a string");
      same(await response.text(), "/payments ü", "answer");
    }
    same(runs, 1, "runs");
  },

  ...webhookCases,

  "the endpoint for tests runs commands, scripts and faults": async () => {
    for (const dialect of ["upstash", "redis"] as const) {
      const endpoints = ["a", "b", "c"].map((name) => memoryEndpoint({ name, dialect }));
      const redlock = new Redlock({ endpoints, fencing: true });
      const lock = await redlock.acquire("invoice");
      check(lock.fence !== undefined && lock.fence > 1_600_000_000_000, "a fence of today");
      same(await lock.release(), true, "release");
      endpoints[0]!.faults.add({ fault: "drop-reply", times: 1, reset: true });
      const again = await redlock.acquire("invoice");
      check(again.fence !== undefined && again.fence > lock.fence, "a larger fence");
      await again.release();
    }
  },

  "100 error replies leave no connection waiting for its body to be read": async ({ healthy, broken }) => {
    const refused = client([{ ...healthy[0]!, token: "not-the-token" }]);
    const failing = client([broken]);
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () =>
        Promise.all([refused, failing].map((each) => failureOf(each.acquire(fresh(), { wait: 0 })))),
      ),
    );
    const kinds = outcomes.flat().map((error) => (error as QuorumError).votes[0]?.cause?.kind);
    same([...new Set(kinds)], ["http"], "kinds of failure");
    const lock = await client(healthy).acquire(fresh());
    await lock.release();
  },

  "waitUntil is called on its context, and receives late requests": async ({ healthy, silent, context }) => {
    const background: Promise<unknown>[] = [];
    const kept = {
      waitUntil(promise: Promise<unknown>) {
        check(this === kept, "its context");
        background.push(promise);
        context.waitUntil(promise);
      },
    };
    const endpoints = [healthy[0]!, healthy[1]!, silent];
    for (const waitUntil of [context, kept]) {
      const lock = await client(endpoints, { timeout: 2_000, waitUntil }).acquire(fresh());
      same(await lock.release(), true, "release");
    }
    check(background.length > 0, "a promise passed to waitUntil");
    await Promise.all(background);
  },
};
