import { describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/index.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { proxiedServer, type SocketClient } from "../../support/sockets.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";

// The connection by which those that wait are told, from its first byte to its last, as the server sees it.

describe.skipIf(!redisServer)("streams over sockets", () => {
  forbidUnhandledRejections();
  const at = proxiedServer();

  async function open(via: SocketClient): Promise<Endpoint> {
    const endpoint = at.open(via);
    await endpoint.send(["PING"], new AbortController().signal);
    return endpoint;
  }
  /** How many connections the server has. Two are the test's and the client's own. */
  const connections = async () =>
    String(await at.direct.call("CLIENT", "LIST"))
      .trim()
      .split("\n").length;
  const isSubscribed = async () => String(await at.direct.call("CLIENT", "LIST", "TYPE", "pubsub")) !== "";

  describe.each<SocketClient>(["ioredis", "node-redis"])("%s", (via) => {
    test.each<[string, () => Promise<unknown>]>([
      ["before it is connected", async () => undefined],
      ["while nothing answers", () => until(async () => (await connections()) === 3, "a connection")],
      ["once it is subscribed", () => until(isSubscribed, "a subscription")],
    ])("one that is given up %s is closed", async (phase, reached) => {
      const endpoint = await open(via);
      if (phase === "while nothing answers") at.proxy.loses = "replies";
      const controller = new AbortController();
      const stream = endpoint.subscribe!("news", controller.signal).catch(() => undefined);
      await reached();
      controller.abort();
      await stream;
      at.proxy.loses = undefined;
      // Its connection was begun later, so the server knows the first one by now.
      const later = new AbortController();
      await endpoint.subscribe!("news", later.signal);
      later.abort();
      await until(async () => (await connections()) === 2, "no connection to be left");
    });

    test("a channel that is left and subscribed again at once gets its messages", async () => {
      const endpoint = await open(via);
      const other = new AbortController();
      await endpoint.subscribe!("other", other.signal);
      const first = new AbortController();
      await endpoint.subscribe!("news", first.signal);
      first.abort();
      const second = new AbortController();
      const reader = (await endpoint.subscribe!("news", second.signal)).getReader();
      await reader.read();
      await until(
        async () => (await at.direct.info("commandstats")).includes("cmdstat_unsubscribe"),
        "the leave",
      );
      await at.direct.publish("news", "3");
      expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: message,news,3\n\n");
      other.abort();
      second.abort();
      await until(async () => (await connections()) === 2, "no connection to be left");
    });
  });
});
