import { inspect as inspectValue } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { handoff, resume } from "../../../src/handoff/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { type Endpoint, httpEndpoint, Redlock, upstashEndpoint } from "../../../src/index.ts";
import { forceRelease, inspect } from "../../../src/inspect/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  FairLock,
  Mailbox,
  type MailboxHandler,
  once,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
} from "../../../src/sync/index.ts";
import { sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import {
  type RawReply,
  type RawRequest,
  type RawServer,
  result,
  startRawServer,
} from "../../support/raw-server.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { holders } from "../sync/holders.ts";

const restToken = "rest-token-0123456789abcdef";

/** Answers that reveal secrets of the request. */
const indiscretions: Record<string, (request: RawRequest) => RawReply> = {
  "a refusal that quotes the body": ({ body }) => ({
    status: 400,
    body: JSON.stringify({ error: `ERR cannot run ${body}` }),
  }),
  "Redis's own refusal": ({ command }) => ({
    status: 400,
    body: JSON.stringify({
      error: `ERR unknown command '${command[0]}', with args beginning with: ${command
        .slice(1)
        .map((word) => `'${word}'`)
        .join(" ")}`,
    }),
  }),
  "an error object that holds the command": ({ command }) => ({
    body: JSON.stringify({ error: { command, nested: [command] } }),
  }),
  "a gateway that quotes the headers": ({ headers }) => ({
    status: 401,
    body: JSON.stringify({ error: `WRONGPASS ${headers.authorization} is not valid` }),
  }),
  "a page that quotes everything": ({ headers, body }) => ({
    status: 502,
    body: `<html><pre>${headers.authorization} ${body}</pre></html>`,
  }),
  "a page that quotes the end of the body first": ({ headers, body }) => ({
    body: `${body.slice(-150)}${headers.authorization}`,
  }),
  "a result that quotes the body": ({ body, headers }) => result([body, headers.authorization]),
  "a result that is the body": ({ body }) => ({ body }),
  "a header that quotes everything": ({ headers, body }) => ({
    status: 500,
    headers: { "x-authorization": String(headers.authorization), "x-request": encodeURIComponent(body) },
  }),
  "a redirect to a place that names the token": ({ headers, body }) => ({
    status: 302,
    headers: { location: `/?_token=${headers.authorization?.slice(7)}&body=${encodeURIComponent(body)}` },
  }),
  "a body that breaks off": ({ body }) => ({
    body,
    headers: { "content-length": String(body.length + 999) },
  }),
  silence: () => "hang",
};

/** Everything that a program could print of a value: all properties, hidden ones included, and the chain of causes. */
function everythingOf(value: unknown): string {
  const seen: string[] = [];
  for (let each = value; each; each = (each as { cause?: unknown }).cause) {
    const { message, stack } = each as Error;
    seen.push(
      String(each),
      message,
      stack ?? "",
      inspectValue(each, { depth: 12, showHidden: true, getters: true }),
    );
    seen.push(JSON.stringify(each) ?? "");
  }
  return seen.join("\n");
}

const transports: Record<string, (url: string) => Endpoint> = {
  fetch: (url) => httpEndpoint({ url, token: restToken }),
  "@upstash/redis": (url) => upstashEndpoint(sdkClient({ url, token: restToken })),
  "@upstash/redis without pipelines": (url) =>
    upstashEndpoint(sdkClient({ url, token: restToken }, { enableAutoPipelining: false })),
};

describe.each(Object.keys(transports))("no secret is revealed over %s", (transport) => {
  forbidUnhandledRejections();
  let server: RawServer;
  beforeAll(async () => {
    server = await startRawServer(() => "reset");
  });
  afterAll(() => server.close());

  test.each(Object.entries(indiscretions))("by %s", async (name, indiscretion) => {
    server.answer = indiscretion;
    const quick = name === "silence" || name === "a body that breaks off";
    const seen: unknown[] = [];
    const odd = transports[transport]!(server.url);
    const memory = memoryEndpoint({ dialect: odd.dialect });
    let isOdd = false;
    const send: Endpoint["send"] = (command, signal) => (isOdd ? odd : memory).send(command, signal);
    const redlock = new Redlock({
      endpoints: [{ ...odd, send }],
      timeout: quick ? 20 : 5_000,
      ttl: 20_000,
      wait: 0,
      onEvent: (event) => seen.push(event),
    });
    const lock = await redlock.acquire("resource");
    const json = await handoff(await redlock.acquire("another"));
    isOdd = true;
    seen.push(await rejection(lock.extend()), await rejection(lock.verify()));
    seen.push(await lock.release(), await rejection(resume(redlock, json)));
    seen.push(await rejection(redlock.acquire("resource")), await rejection(redlock.acquire(["a", "b"])));
    seen.push(await rejection(redlock.acquire("resource", { fencing: true })));
    seen.push(
      await rejection(inspect(redlock, "resource")),
      await rejection(forceRelease(redlock, "resource")),
    );

    const nonces = server.requests.flatMap(({ body }) => body.match(/t[0-9a-f]{32}/g) ?? []);
    expect(nonces.length).toBeGreaterThan(0);
    // Of long ones a part: a truncated message has no more, and every other one has it, too.
    const secrets = new Set([
      ...[restToken, lock.token, json.value, ...nonces].map((secret) => secret.slice(0, 16)),
    ]);
    const text = seen.map(everythingOf).join("\n");
    expect([...secrets].filter((secret) => text.includes(secret))).toEqual([]);
  });
});

test("no secret is revealed by a client that is inspected", () => {
  const redlock = new Redlock({ endpoints: [{ url: "https://host.upstash.io", token: restToken }] });
  expect(everythingOf(redlock)).not.toContain(restToken);
  // Nor its endpoints, hooks and defaults, which are internal.
  expect([inspectValue(redlock), JSON.stringify(redlock), Object.keys(redlock)]).toEqual([
    "Redlock {}",
    "{}",
    [],
  ]);
});

test("what a program logs shows no token of a holder: locks, permits, other handles, and what contains them", async () => {
  const seen: unknown[] = [];
  const memory = memoryEndpoint();
  const tokens = new Set<string>();
  const endpoint: Endpoint = {
    ...memory,
    send: (command, signal) => {
      for (const [token] of command.join(" ").matchAll(/t[0-9a-f]{32}/g)) tokens.add(token);
      return memory.send(command, signal);
    },
  };
  const redlock = new Redlock({ endpoints: [endpoint], onEvent: (event) => seen.push(event) });
  const lock = await redlock.acquire("a", { fencing: true });
  expect(tokens).toContain(lock.token);
  const reentrant = new ReentrantLock(redlock, "r");
  const resumed = resume(redlock, await handoff(await redlock.acquire("h")));
  const holds = await Promise.all(holders.map(({ acquire, title }) => acquire(redlock, title)));
  holds.push(await reentrant.acquire());
  expect(tokens).toContain(reentrant.owner);
  const barrier = new CyclicBarrier(redlock, "c", { parties: 1 });
  const latch = new CountDownLatch(redlock, "l", { count: 1 });
  seen.push(await latch.arrive("id"), await barrier.arriveAndWait("id"));
  seen.push(await once(redlock, "o", { every: 60_000 }, (context) => seen.push(context)));
  const mailbox = new Mailbox(redlock, "m");
  const read: MailboxHandler<unknown> = async (messages, turn) => {
    for await (const message of messages) seen.push(message, turn);
  };
  seen.push(mailbox, await mailbox.post({ id: "id", value: 1 }, read), await mailbox.inspect());
  const idempotency = new Idempotency(redlock);
  seen.push(await idempotency.run("k", { lock: "k" }, (context) => void seen.push(context)));
  seen.push(reentrant, new Semaphore(redlock, "s", { limit: 2 }), new FairLock(redlock, "f"));
  seen.push(new ReadWriteLock(redlock, "w"), barrier, latch, idempotency, redlock);
  const handles = [lock, resumed, ...holds];
  seen.push(...handles, { handles }, new Error("it failed", { cause: { lock } }));
  const printed = seen
    .map((each) => `${inspectValue(each, { depth: 12 })}\n${JSON.stringify(each)}`)
    .join("\n");
  expect(printed).toContain("resources: [ 'a' ]");
  expect([...tokens].filter((token) => printed.includes(token))).toEqual([]);
});
