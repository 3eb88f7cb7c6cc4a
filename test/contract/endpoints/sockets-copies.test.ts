import type { EventEmitter } from "node:events";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Endpoint, Redlock } from "../../../src/index.ts";
import type * as Sockets from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { copiesOf } from "../../support/copies.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { redisServer, startServer } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

// A dev server loads a module again whenever it changes, and an application may have two copies of this package. All of them
// are given the same client, which outlives the modules.

const ignore = () => undefined;

/** A client, and how a copy of the package makes an endpoint over it. */
interface Shared {
  readonly client: EventEmitter;
  readonly endpoint: (copy: typeof Sockets) => Endpoint;
}

describe.skipIf(!redisServer)("a client that many copies of the package use", () => {
  forbidUnhandledRejections();
  let url: string;
  beforeAll(async () => {
    url = await startServer();
  });

  // Both packages have listeners of their own until they are connected.
  async function ioredis(): Promise<Shared> {
    const client = new Redis(url);
    client.on("error", ignore);
    onTestFinished(() => client.disconnect());
    await client.ping();
    return { client, endpoint: (copy) => copy.ioredisEndpoint(client) };
  }
  async function nodeRedis(): Promise<Shared> {
    const client = createClient({ url });
    client.on("error", ignore);
    onTestFinished(() => client.destroy());
    await client.connect();
    return { client, endpoint: (copy) => copy.nodeRedisEndpoint(client) };
  }
  const listeners = (client: EventEmitter) =>
    client.eventNames().map((event) => [event, client.listenerCount(event)]);

  test.each([
    ["ioredis", ioredis],
    ["node-redis", nodeRedis],
  ])("%s has the listeners of the first copy after 20 reloads", async (_, open) => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const copies = await copiesOf<typeof Sockets>("sockets/index.ts");
    const { client, endpoint } = await open();
    const copy = await copies.reload();
    const keys = Object.keys(client);
    endpoint(copy);
    expect(Object.keys(client)).toEqual(keys);
    const first = listeners(client);
    for (let time = 0; time < 20; time += 1) {
      const redlock = new Redlock({ ...patient, endpoints: [endpoint(await copies.reload())] });
      await (await redlock.acquire(newResource())).release();
    }
    endpoint(copies.required());
    // Warnings are emitted in a later turn.
    await setImmediate();
    expect(listeners(client)).toEqual(first);
    expect(warnings).toEqual([]);
  });
});
