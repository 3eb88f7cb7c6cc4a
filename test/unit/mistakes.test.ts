import { expect, test } from "vitest";
import { Faults, start } from "../../local/src/index.ts";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { idempotent, lock as lockRoute } from "../../src/hono/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import {
  deliveryKey,
  onceInD1,
  onceInPostgres,
  onceInTransaction,
  pruneD1,
  pruneInbox,
  prunePostgres,
} from "../../src/inbox/index.ts";
import { endpointsFromEnv, httpEndpoint, Redlock, upstashEndpoint } from "../../src/index.ts";
import { signatureProvider } from "../../src/webhooks/custom/index.ts";
import {
  discord,
  github,
  linear,
  qstash,
  sendgrid,
  shopify,
  slack,
  square,
  standardWebhooks,
  stripe,
} from "../../src/webhooks/index.ts";

// Typical mistakes, and what a person reads then, besides those of test/contract/*/arguments.test.ts.

/** Parts of values that no message may contain. */
const secrets = ["SecretToken", "default:secret", "sk_live", "51Habc", "not base64"];

const any = (value: unknown): never => value as never;
const endpoint = memoryEndpoint();
const redlock = new Redlock({ endpoints: [endpoint] });
const none = () => undefined;
const ok = () => new Response("ok");
const env = (vars: Record<string, string>) => () => new Redlock({ endpoints: endpointsFromEnv(vars) });
const url = "https://eu1-fond-owl-12345.upstash.io";
const token = "AXd2ASQgSecretToken";
const at = (given: unknown) => () => new Redlock({ endpoints: any(given) });
const post = () =>
  new Request("https://a.example/pay", { method: "POST", body: "{}", headers: { "idempotency-key": "k" } });

const mistakes: Record<string, Record<string, () => unknown>> = {
  "the client": {
    "new Redlock()": () => new Redlock(any(undefined)),
    "new Redlock({})": () => new Redlock(any({})),
    "a token with a line break": at([{ url, token: `${token}\n` }]),
    "the address of the Redis protocol": at([{ url: "rediss://default:secret@eu1.upstash.io:6379", token }]),
    "url and token exchanged": at([{ url: token, token: url }]),
    "quotes of an env file": at([{ url: `"${url}"`, token }]),
    "a URL with a path": at([{ url: `${url}/set/SecretToken`, token }]),
    "a base path that is a URL": at([{ url, token, basePath: `${url}/redis` }]),
    "http:// to a public host": at([{ url: url.replace("https", "http"), token }]),
    "an ioredis client": at([{ send_command: none, call: none, evalsha: none }]),
    "an endpoint without a dialect": at([{ send: none, name: "a" }]),
    "httpEndpoint()": () => httpEndpoint(any(undefined)),
    "upstashEndpoint(undefined)": () => upstashEndpoint(any(undefined)),
    "upstashEndpoint of another client": () => upstashEndpoint(any({ eval: none })),
    "endpointsFromEnv(undefined)": () => endpointsFromEnv(any(undefined)),
    "an empty environment": env({}),
    "a URL without its token": env({ UPSTASH_REDIS_REST_URL: url }),
    "the second token is missing": env({
      UPSTASH_REDIS_REST_URL_1: url,
      UPSTASH_REDIS_REST_TOKEN_1: token,
      UPSTASH_REDIS_REST_URL_2: "https://b.upstash.io",
    }),
    "unnumbered and numbered variables": env({
      UPSTASH_REDIS_REST_URL: url,
      UPSTASH_REDIS_REST_TOKEN: token,
      UPSTASH_REDIS_REST_URL_2: "https://b.upstash.io",
      UPSTASH_REDIS_REST_TOKEN_2: token,
    }),
    "numbered variables of Vercel": env({
      KV_REST_API_URL: url,
      KV_REST_API_TOKEN: token,
      KV_REST_API_URL_2: "https://b.upstash.io",
      KV_REST_API_TOKEN_2: token,
    }),
    "a misspelt option of an endpoint": at([{ url, token, dialct: "redis" }]),
    "an option of the client at an endpoint": at([{ url, token, ttl: 5_000 }]),
    "an unknown option of httpEndpoint": () => httpEndpoint(any({ url, token, timeout: 5_000 })),
    "an unknown option of upstashEndpoint": () =>
      upstashEndpoint(any({ createScript: none }), any({ nmae: "eu" })),
  },
  requests: {
    "a request that is none": () => withIdempotency(any({ method: "POST" }), ok, { redlock }),
    "a body that was read already": async () => {
      const request = post();
      await request.text();
      return withIdempotency(request, ok, { redlock });
    },
    "idempotent(redlock)": () => idempotent(any(redlock)),
    "lock()": () => lockRoute(any(undefined)),
    "lock without a resource": () => lockRoute(any({ redlock })),
    "idempotent with an empty lock": () => idempotent(any({ redlock, lock: [] })),
    "a provider that is not called": () => withIdempotency(post(), ok, any({ redlock, provider: stripe })),
    "a fingerprint of a request that is an object": () =>
      withIdempotency(post(), ok, any({ redlock, fingerprint: () => ({ amount: 5 }) })),
    "a provider that is a name": () => idempotent(any({ redlock, provider: "stripe" })),
  },
  webhooks: {
    "stripe()": () => stripe(any(undefined)),
    "Stripe's API key": () => stripe({ secret: "sk_live_51Habc" }),
    "github(secret)": () => github(any("sk_live")),
    "a secret without whsec_": () => standardWebhooks({ secret: "not base64!" }),
    "shopify without topics": () => shopify(any({ secret: "s" })),
    "a public key that is none": () => discord({ publicKey: "abc" }),
    "slack's secret as a number": () => slack(any({ signingSecret: 7 })),
    "linear(undefined)": () => linear(any(undefined)),
    "qstash without an id": () => qstash(any({ secret: ["a", "b"] })),
    "square without its URL": () => square(any({ secret: "s" })),
    "sendgrid's API key": () => sendgrid({ publicKey: "SG.abc" }),
    "signatureProvider with a public key as text": () =>
      signatureProvider(any({ name: "a", algorithm: "Ed25519", key: "abc", read: none })),
  },
  inbox: {
    "onceInD1 without a database": () => onceInD1(any(undefined), { key: "a" }, []),
    "onceInD1 with one statement": () => onceInD1(any({ prepare: none, batch: none }), { key: "a" }, any({})),
    "onceInPostgres without an effect": () => onceInPostgres(any(none), { key: "a" }, any(undefined)),
    "onceInTransaction with a client": () => onceInTransaction(any({ query: none }), { key: "a" }),
    "an unknown database": () => onceInTransaction(none, { key: "a" }, any({ dialect: "mssql" })),
    "a property of objects as database": () =>
      onceInTransaction(none, { key: "a" }, any({ dialect: "toString" })),
    "a misspelt dialect": () => onceInTransaction(none, { key: "a" }, any({ dialct: "mysql" })),
    "a dialect as text": () => onceInTransaction(none, { key: "a" }, any("mysql")),
    "statements without rows": () => onceInTransaction(any(none), { key: "a" }),
    "a number of rows": () => onceInTransaction(() => 1, { key: "a" }),
    "pruning with an unknown database": () => pruneInbox(none, any({ olderThan: 1, dialect: "x" })),
    "pruning without execute": () => pruneInbox(any(undefined), { olderThan: 1 }),
    "the key of no delivery": () => deliveryKey(any(undefined)),
    "the key of a delivery without an id": () => deliveryKey(any({ provider: "stripe" })),
    "the key of an owner that is missing": () => deliveryKey({ provider: "stripe", id: "a" }, any(undefined)),
    "a misspelt field of an entry": () => onceInPostgres(any(none), any({ key: "a", entty: "b" }), none),
    "a key instead of an entry": () => onceInD1(any(none), any("a"), []),
    "pruning with a number": () => pruneD1(any(none), any(5)),
    "pruning with a misspelt limit": () => prunePostgres(any(none), any({ olderThan: 5, limt: 5 })),
  },
  "local endpoints": {
    "an unknown dialect": () => memoryEndpoint(any({ dialect: "x" })),
    "one rule of faults": () => new Faults(any({ fault: "down" })),
    "an unknown fault": () => memoryEndpoint().faults.add(any({ fault: "fire" })),
    "an unknown fault to start with": () => memoryEndpoint(any({ faults: [{ fault: "dwn" }] })),
    "faults of all endpoints": () => start(any({ faults: [{ fault: "down" }] })),
    "a misspelt count": () => start(any({ cuont: 1 })),
    "a count instead of options": () => start(any(3)),
    "endpoints of null": () => start(any(null)),
    "a misspelt option of a memory endpoint": () => memoryEndpoint(any({ falts: [] })),
    "a memory endpoint of its name": () => memoryEndpoint(any("x")),
    "a memory endpoint of null": () => memoryEndpoint(any(null)),
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

test("each typical mistake has an error that names the argument and the way out", async () => {
  const all = Object.values(mistakes).flatMap((cases) => Object.entries(cases));
  expect(all.length).toBeGreaterThan(70);
  for (const [mistake, make] of all) {
    const message = await messageOf(make);
    expect(message, mistake).toMatch(/^(TypeError|RangeError): /);
    expect(message.replace(/^\w+: /, ""), mistake).not.toMatch(rawError);
    for (const secret of secrets) expect(message, mistake).not.toContain(secret);
  }
});
