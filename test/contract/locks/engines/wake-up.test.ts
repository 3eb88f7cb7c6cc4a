import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../../../../src/index.ts";
import { newResource, openLocal } from "../../../support/local-endpoints.ts";
import { rejection } from "../../../support/outcomes.ts";
import { until } from "../../../support/until.ts";
import { startWatchedEndpoint, type WatchedEndpoint } from "../../../support/watched-endpoint.ts";
import { Contenders } from "./contenders.ts";

// Streams over real HTTP. What waiters do is shown in virtual time; here connections are real. The `.long` file has many
// waiters, and cuts that are as far apart as a proxy's.

test("waiters whose streams are cut again and again are served all the same", async () => {
  const local = await openLocal();
  try {
    for (const { faults } of local.endpoints) faults.add({ fault: "cut-stream", ms: [5, 40] });
    const contenders = new Contenders(newResource(), { backoff: { min: 20, max: 40 } });
    const cuts = () => local.commands().filter((name) => name === "UNSUBSCRIBE").length;
    const held = await contenders.client(local.connect()).acquire(contenders.resource);
    const calls = Array.from({ length: 4 }, () => contenders.contend(local.connect()));
    // Each has lost its stream at one endpoint after the other.
    await until(() => cuts() >= 4 * local.endpoints.length, "the cuts");
    await held.release();
    await Promise.all(calls);
    expect(contenders.result).toMatchObject({ served: 4, most: 1 });
  } finally {
    await local.close();
  }
});

describe("a stream's connection", () => {
  let watched: WatchedEndpoint;
  beforeAll(async () => {
    watched = await startWatchedEndpoint();
  });
  afterAll(() => watched[Symbol.asyncDispose]());

  /** How many subscribe to what was subscribed to last. */
  const subscribers = async () => {
    const { log } = watched.local;
    const last = log.entries.filter(({ command: [name] }) => name === "SUBSCRIBE").at(-1);
    const [, count] = (await watched.local.execute([
      "PUBSUB",
      "NUMSUB",
      last?.command[1] ?? "",
    ])) as unknown[];
    return count;
  };

  /** A lock that is held, and three clients that wait for it by streams that stand. */
  async function threeWaiting(wait = Infinity, runtime?: Runtime) {
    const contenders = new Contenders(newResource(), { wait }, runtime);
    const { resource } = contenders;
    const held = await contenders.client([watched.endpoint()]).acquire(resource, { wait: 0 });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = Array.from({ length: 3 }, () =>
      contenders.client([watched.endpoint()]).acquire(resource, { signal }),
    );
    return { contenders, resource, held, calls, controller };
  }

  test("closes when the caller aborts, and the server ends its subscription", async () => {
    const { held, calls, controller } = await threeWaiting();
    await until(async () => (await subscribers()) === 3, "the streams");
    expect(watched.openStreams()).toBe(3);
    controller.abort(new Error("enough"));
    expect(await Promise.all(calls.map(rejection))).toEqual(calls.map(() => new Error("enough")));
    await until(() => watched.openStreams() === 0, "the end of all connections");
    await until(async () => (await subscribers()) === 0, "the end of all subscriptions");
    await held.release();
  });

  test("closes also while the server has not answered yet", async () => {
    watched.local.faults.add({ fault: "drop-request", command: "SUBSCRIBE" });
    const before = watched.streamsOpened();
    const { held, calls, controller } = await threeWaiting();
    await until(() => watched.streamsOpened() === before + 3, "the requests");
    controller.abort(new Error("enough"));
    expect(await Promise.all(calls.map(rejection))).toEqual(calls.map(() => new Error("enough")));
    await until(() => watched.openStreams() === 0, "the end of all connections");
    watched.local.faults.clear();
    await held.release();
  });
});
