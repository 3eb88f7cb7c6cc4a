import { inspect as inspectValue } from "node:util";
import { Redis as UpstashRedis } from "@upstash/redis";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { Redis as Ioredis } from "ioredis";
import { createClient, createCluster } from "redis";
import { expect, test, vi } from "vitest";
import { Faults, start } from "../../local/src/index.ts";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { handoff, resume } from "../../src/handoff/index.ts";
import { idempotent, lock as lockRoute } from "../../src/hono/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { deliveryKey, onceInPostgres, onceInTransaction, pruneInbox } from "../../src/inbox/index.ts";
import { endpointsFromEnv, httpEndpoint, Redlock, upstashEndpoint } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { idempotentExpress, idempotentFastify, type NodeResponse } from "../../src/node/index.ts";
import { otel } from "../../src/otel/index.ts";
import { ioredisEndpoint } from "../../src/sockets/index.ts";
import { Mailbox, type MailboxHandler, once } from "../../src/sync/index.ts";
import { signedDelivery } from "../../src/testing/index.ts";
import { stripe } from "../../src/webhooks/index.ts";
import { listen } from "../http/node-stand.ts";
import { freshKey } from "../support/fresh-key.ts";

// Typical mistakes, and what a person reads then, besides those of test/contract/arguments.test.ts, of URLs, tokens and
// variables in test/unit/endpoints, and of senders in test/unit/webhooks.

/** Parts of values that no message may contain. */
const secrets = ["SecretToken", "default:secret", "sk_live", "51Habc", "not base64"];

const any = (value: unknown): never => value as never;
const untyped = (value: object) => value as Record<string, (...given: unknown[]) => unknown>;
const endpoint = memoryEndpoint();
const redlock = new Redlock({ endpoints: [endpoint] });
const none = () => undefined;
const ioredis = new Ioredis({ lazyConnect: true });
const ok = () => new Response("ok");
const env = (vars: Record<string, unknown>) => () => new Redlock({ endpoints: endpointsFromEnv(vars) });
const url = "https://eu1-fond-owl-12345.upstash.io";
const token = "AXd2ASQgSecretToken";
/** With a variable in `process.env`. */
const inProcess = (name: string, make: () => unknown) => () => {
  vi.stubEnv(name, url);
  try {
    return make();
  } finally {
    vi.unstubAllEnvs();
  }
};
const at = (given: unknown) => () => new Redlock({ endpoints: any(given) });
const post = () =>
  new Request("https://a.example/pay", {
    method: "POST",
    body: "{}",
    headers: { "idempotency-key": freshKey() },
  });
const handedOver = async () => handoff(await redlock.acquire(freshKey()));
/** A handler that reads the request around it. */
const readsOuter = (read: (outer: Request) => unknown) => () => {
  const outer = post();
  return withIdempotency(outer, async () => Response.json(await read(outer)), { redlock });
};

// Each of these throws what a framework reports of middleware.

const inHono = (middleware: unknown) => () => {
  const rethrow = (error: unknown) => {
    throw error;
  };
  return new Hono().use(any(middleware)).post("/pay", ok).onError(rethrow).fetch(post());
};
const inExpress = (middleware: unknown) => async () => {
  let said: unknown;
  const app = express().use(any(middleware));
  app.use((error: unknown, _req: unknown, res: NodeResponse, _next: unknown) => {
    said = error;
    res.end();
  });
  const stand = await listen(app);
  await stand.send(post()).finally(() => stand.close());
  if (said) throw said;
};
const inFastify = (plugin: unknown) => () => fastify().register(any(plugin)).ready();

/** What may be mounted, and the only place for it. */
const middleware: Record<string, [mounted: unknown, place?: string]> = {
  idempotent: [idempotent],
  lock: [lockRoute],
  idempotentExpress: [idempotentExpress],
  idempotentFastify: [idempotentFastify],
  "idempotent()": [idempotent({ redlock }), "Hono"],
  "lock()": [lockRoute({ redlock, resource: "a" }), "Hono"],
  "idempotentExpress()": [idempotentExpress({ redlock }), "Express"],
  "idempotentFastify()": [idempotentFastify({ redlock }), "Fastify"],
};
const places: Record<string, (middleware: unknown) => () => unknown> = {
  Hono: inHono,
  Express: inExpress,
  Fastify: inFastify,
};
const mounted = Object.entries(places).flatMap(([place, mountIn]) =>
  Object.entries(middleware)
    .filter(([, [, own = "none"]]) => !place.startsWith(own))
    .map(([name, [given]]) => [`${name} in ${place}`, mountIn(given)]),
);

const ofEntity = { key: "a", entity: "e" };
/** Entries that the inbox refuses. */
const entries: readonly unknown[] = [
  undefined,
  ...["", [], ["a", undefined], "x".repeat(800)].map((key) => ({ key })),
  { key: "a", fence: 1 },
  { key: "a", version: 1 },
  ofEntity,
  ...["", "\uD83D", "a\0b"].map((entity) => ({ key: "a", entity, fence: 1 })),
  { ...ofEntity, fense: 1 },
  ...[0, 1.5, 2 ** 53, 2n ** 63n].map((fence) => ({ ...ofEntity, fence })),
  ...[-1, 2 ** 53, new Date(Number.NaN), "5", null].map((version) => ({ ...ofEntity, version })),
];
const inPostgres = (pool: unknown, effect: unknown = none) =>
  onceInPostgres(any(pool), { key: "a" }, any(effect));

const mistakes: Record<string, Record<string, () => unknown>> = {
  "the client": {
    "new Redlock()": () => new Redlock(any(undefined)),
    "new Redlock({})": () => new Redlock(any({})),
    "new Redlock([…])": () => new Redlock(any([{ url, token }])),
    "new Redlock(env)": () =>
      new Redlock(any({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token })),
    "prefixed variables of Vercel": env({ STORAGE_KV_REST_API_URL: url, STORAGE_KV_REST_API_TOKEN: token }),
    "a variable of the Redis protocol": env({
      UPSTASH_REDIS_URL: "rediss://default:secret@eu1.upstash.io:6379",
    }),
    "a module that next build loads": env({ NEXT_PHASE: "phase-production-build" }),
    "redlock.lock of other packages": () => untyped(redlock).lock!("a"),
    "lock.unlock of other packages": async () => untyped(await redlock.acquire(freshKey())).unlock!(),
    "lock.expiration of other packages": async () => untyped(await redlock.acquire(freshKey())).expiration,
    "new Redlock([client])": () => new Redlock(any([ioredis])),
    "new Redlock(client)": () => new Redlock(any(ioredis)),
    "new Redlock({ clients })": () => new Redlock(any({ clients: [ioredis] })),
    "endpoints that are a client": at(ioredis),
    "lock.signal.error of redlock 5": async () => Object((await redlock.acquire(freshKey())).signal).error,
    "clients that are mapped to endpoints": () => [ioredis].map(any(ioredisEndpoint)),
    "a URL of Redis": at(["redis://localhost:6379"]),
    "Lambda's time is over when it begins": () =>
      redlock.using("a", { deadline: Date.now() + 1_000 - 1_500 }, none),
    "a routine that expects the signal": () => redlock.using(freshKey(), (signal) => untyped(signal).aborted),
    "a missing variable in a name": () => redlock.acquire(`order:${undefined}`),
    "a missing variable at the end of a name": () =>
      redlock.acquire(["not-null-check", `order-${undefined}`]),
    "an object in a name": () => redlock.acquire(`order:${{}}`),
    "a timeout above the ttl": () => redlock.using("a", { ttl: 1_000, timeout: 1_001 }, none),
    "tryAcquire with wait": () => redlock.tryAcquire("a", { wait: 5_000 }),
    "one endpoint that is no array": () => new Redlock(any({ endpoints: { url, token } })),
    "no endpoint": at([]),
    "an endpoint that is its URL": at([url]),
    "an endpoint of another dialect": at([{ url, token, dialect: "valkey" }]),
    "an endpoint without a URL": at([{ token }]),
    "the same endpoint twice": at([
      { url, token },
      { url: `${url}/`, token: "another" },
    ]),
    "an endpoint's function that is not called": at([memoryEndpoint]),
    "url and token exchanged": at([{ url: token, token: url }]),
    "an ioredis client": at([ioredis]),
    "a node-redis client": at([createClient()]),
    "a Cluster client of node-redis": at([createCluster({ rootNodes: [] })]),
    "an @upstash/redis client": at([new UpstashRedis({ url, token })]),
    "an endpoint without a dialect": at([{ send: none, name: "a" }]),
    "httpEndpoint()": () => httpEndpoint(any(undefined)),
    "upstashEndpoint(undefined)": () => upstashEndpoint(any(undefined)),
    "upstashEndpoint of another client": () => upstashEndpoint(any({ eval: none })),
    "endpointsFromEnv(undefined)": () => endpointsFromEnv(any(undefined)),
    "endpointsFromEnv of a file": () => endpointsFromEnv(any(".dev.vars")),
    "Hono's env on Node": inProcess("UPSTASH_REDIS_REST_URL", env({ incoming: {}, outgoing: {} })),
    "an empty environment": env({}),
    "Deno's env": env({ toObject: () => ({}) }),
    "Hono's context for its env": env({ req: {}, env: { UPSTASH_REDIS_REST_URL: url } }),
    "only REDIS_URL": env({ REDIS_URL: "rediss://default:secret@eu1.upstash.io:6379" }),
    "a misspelt option of an endpoint": at([{ url, token, dialct: "redis" }]),
    "an option of the client at an endpoint": at([{ url, token, ttl: 5_000 }]),
    "an unknown option of httpEndpoint": () => httpEndpoint(any({ url, token, timeout: 5_000 })),
    "another dialect of upstashEndpoint": () =>
      upstashEndpoint(any({ createScript: none }), any({ dialect: "valkey" })),
  },
  requests: {
    "a request that is none": () => withIdempotency(any({ method: "POST" }), ok, { redlock }),
    "a body that was read already": async () => {
      const request = post();
      await request.text();
      return withIdempotency(request, ok, { redlock });
    },
    "a body that was cut on the way": () =>
      withIdempotency(
        new Request(post(), { headers: { "idempotency-key": "k", "content-length": "9" } }),
        ok,
        { redlock },
      ),
    "a scope that returns undefined": () =>
      withIdempotency(post(), ok, any({ redlock, scope: () => undefined })),
    "the request around the handler, as JSON": readsOuter((outer) => outer.json()),
    "the same as a stream": readsOuter((outer) => outer.body?.getReader().read()),
    "idempotent(redlock)": () => idempotent(any(redlock)),
    "lock()": () => lockRoute(any(undefined)),
    "a provider that is not called": () => withIdempotency(post(), ok, any({ redlock, provider: stripe })),
    "a fingerprint of a request that is an object": () =>
      withIdempotency(post(), ok, any({ redlock, fingerprint: () => ({ amount: 5 }) })),
  },
  "what takes a client": {
    "resume without the client": async () => resume(any(await handedOver()), any(undefined)),
    "resume of JSON's text": async () => resume(redlock, any(JSON.stringify(await handedOver()))),
    "handoff with the client": async () =>
      untyped({ handoff }).handoff!(redlock, await redlock.acquire(freshKey())),
    "inspect without the client": () => inspect(any("a"), any(undefined)),
    "forceRelease without the client": () => forceRelease(any("a"), any(undefined)),
    "an interval of other packages": () => once(redlock, "a", any({ interval: 60_000 }), none),
    "otel(redlock)": () => otel(any(redlock)),
    "a misspelt option of otel": () => otel(any({ name: true })),
    "a tracer that is none": () => otel(any({ tracer: {} })),
    "a meter's name": () => otel(any({ meter: "m" })),
  },
  "a mailbox's handler that takes": Object.fromEntries(
    Object.entries<MailboxHandler<string>>({
      "one message": (message) => Object(message).value.trim(),
      "a message's parts": any(({ id }: { id: string }) => id),
      "an array": (messages) => Array.from(any(messages)),
      "an array's methods": (messages) => Object(messages).map(none),
    }).map(([what, handler]) => [
      what,
      () => new Mailbox<string>(redlock, freshKey()).post({ id: "a", value: "text" }, handler),
    ]),
  ),
  "a signed delivery": {
    "a sender that is called": () => signedDelivery(any(stripe({ secret: "whsec_test" })), any({})),
    "a secret for the options": () => signedDelivery(stripe, any("sk_live"), { body: {} }),
    "no options": () => signedDelivery(stripe, any(undefined)),
    "a sender's name": () => signedDelivery(any("stripe"), any({ secret: "s" })),
  },
  "middleware in a wrong place": Object.fromEntries(mounted),
  inbox: {
    "onceInTransaction with a client": () => onceInTransaction(any({ query: none }), { key: "a" }),
    "an unknown database": () => onceInTransaction(none, { key: "a" }, any({ dialect: "mssql" })),
    "a misspelt dialect": () => onceInTransaction(none, { key: "a" }, any({ dialct: "mysql" })),
    "statements without rows": () => onceInTransaction(any(none), { key: "a" }),
    "a number of rows": () => onceInTransaction(() => 1, { key: "a" }),
    "pruning with an unknown database": () => pruneInbox(none, any({ olderThan: 1, dialect: "x" })),
    "pruning without execute": () => pruneInbox(any(undefined), { olderThan: 1 }),
    "the key of no delivery": () => deliveryKey(any(undefined)),
    "the key of a handler without a name": () => deliveryKey({ provider: "stripe", handler: "", id: "a" }),
    "the key of an owner that is missing": () => deliveryKey({ provider: "stripe", id: "a" }, any(undefined)),
    "pruning with a misspelt limit": () => pruneInbox(none, any({ olderThan: 5, limt: 5 })),
  },
  "an entry of the inbox": Object.fromEntries(
    entries.map((entry) => [
      inspectValue(entry, { maxStringLength: 20 }),
      () => onceInPostgres({ connect: () => expect.unreachable() }, any(entry), none),
    ]),
  ),
  "a pool of Postgres": {
    "its URL": () => inPostgres("postgres://localhost"),
    "a client that is connected": () => inPostgres({ query: none }),
    "one without clients": () => inPostgres({ connect: none }),
    "no effect": () => inPostgres({ connect: none }, null),
  },
  "local endpoints": {
    "an unknown dialect": () => memoryEndpoint(any({ dialect: "x" })),
    "one rule of faults": () => new Faults(any({ fault: "down" })),
    "an unknown field of a fault": () => memoryEndpoint().faults.add(any({ type: "down" })),
    "an unknown fault to start with": () => memoryEndpoint(any({ faults: [{ fault: "dwn" }] })),
    "a misspelt count": () => start(any({ cuont: 1 })),
    "a misspelt option of a memory endpoint": () => memoryEndpoint(any({ falts: [] })),
  },
};

/** What a JavaScript engine says by itself: it names no argument and no way out. */
const rawError =
  /^(Cannot|Invalid|Failed)\b|is not (a function|iterable|defined|an object)|\bundefined\b.*\bnull\b/;

async function messageOf(make: () => unknown): Promise<string> {
  try {
    await make();
  } catch (error) {
    const { name, message } = error as Error;
    return `${name}: ${message}`;
  }
  return "it was accepted";
}

test("each typical mistake has an error that names the argument and the way out: mistakes.txt", async () => {
  const lines: string[] = [];
  for (const [where, cases] of Object.entries(mistakes)) {
    lines.push(`# ${where}`, "");
    for (const [mistake, make] of Object.entries(cases)) {
      const message = await messageOf(make);
      expect.soft(message, mistake).toMatch(/^(TypeError|RangeError): /);
      expect.soft(message.replace(/^\w+: /, ""), mistake).not.toMatch(rawError);
      for (const secret of secrets) expect.soft(message, mistake).not.toContain(secret);
      lines.push(mistake, `    ${message}`);
    }
    lines.push("");
  }
  // What platforms say themselves, and times, differ.
  const text = lines
    .join("\n")
    .replace(/(not the outer one) \(.+\)/g, "$1 (…)")
    .replace(/\d+ ms ago/, "500 ms ago");
  await expect(text).toMatchFileSnapshot("mistakes.txt");
});
