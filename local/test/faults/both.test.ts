import { describe, expect, test } from "vitest";
import { EndpointError } from "../../../src/errors/errors.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { isSettled } from "../../../test/support/outcomes.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import type { FaultRule } from "../../src/faults/faults.ts";
import { start } from "../../src/index.ts";
import { memoryEndpoint, VirtualTime } from "../../src/memory/index.ts";

// Each fault and crash, at an endpoint in memory and at endpoints over HTTP: what is executed, and what the client gets.

type Word = string | number;

/** An endpoint with its client. */
interface Stand {
  readonly faults: { add(rule: FaultRule): unknown; clear(): void; list(): readonly FaultRule[] };
  /** The reply; or `broken`, `http 503`, `aborted`, or the error of Redis. */
  send(...command: Word[]): Promise<unknown>;
  /** Nobody waits for an answer any more. */
  abort(): void;
  /** Past all faults. */
  look(...command: Word[]): Promise<unknown>;
  pass(ms: number): Promise<void>;
  stop(): unknown;
  start(options?: { memory: "kept" | "lost" }): unknown;
  close(): Promise<void>;
}

async function inMemory(): Promise<Stand> {
  const runtime = new VirtualTime();
  const endpoint = memoryEndpoint({ runtime });
  const controller = new AbortController();
  return {
    faults: endpoint.faults,
    send: (...command) =>
      endpoint.send(command, controller.signal).catch((error: unknown) => {
        if (!(error instanceof EndpointError)) throw error;
        const { kind, status, message } = error;
        return { network: "broken", http: `http ${status}`, timeout: "aborted" }[kind as string] ?? message;
      }),
    abort: () => controller.abort(),
    look: async (...command) => endpoint.engine.execute(command),
    pass: (ms) => runtime.advance(ms),
    stop: () => endpoint.stop(),
    start: (options) => endpoint.start(options),
    close: async () => undefined,
  };
}

async function overHttp(engine: "redis" | "embedded"): Promise<Stand> {
  const local = await start({ count: 1, engine });
  const [endpoint] = local.endpoints;
  const controller = new AbortController();
  return {
    faults: endpoint.faults,
    async send(...command) {
      const headers = { authorization: `Bearer ${endpoint.token}` };
      const init = { method: "POST", headers, body: JSON.stringify(command), signal: controller.signal };
      try {
        const response = await fetch(endpoint.url, init);
        if (response.status > 400) return `http ${response.status}`;
        const { result, error } = (await response.json()) as { result?: unknown; error?: string };
        return error ?? result;
      } catch {
        return controller.signal.aborted ? "aborted" : "broken";
      }
    },
    abort: () => controller.abort(),
    look: (...command) => endpoint.execute(command),
    pass: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    stop: () => endpoint.stop(),
    start: (options) => endpoint.start(options),
    close: () => local.close(),
  };
}

/** Runs a test with an endpoint. */
const standOf =
  (open: () => Promise<Stand>) =>
  async (rules: readonly FaultRule[], run: (stand: Stand) => Promise<void>): Promise<void> => {
    const stand = await open();
    try {
      for (const rule of rules) stand.faults.add(rule);
      await run(stand);
    } finally {
      await stand.close();
    }
  };

describe.each([
  ["in memory", inMemory],
  ["over HTTP", () => overHttp("embedded")],
] as const)("an endpoint %s", (_, open) => {
  const on = standOf(open);
  /** Its rules are used up: the request has arrived. */
  const arrived = ({ faults }: Stand) => until(() => faults.list().length === 0, "the request");

  test.each<[rules: readonly FaultRule[], answer: unknown, executed: number]>([
    [[], 1, 1],
    [[{ fault: "down" }], "broken", 0],
    [[{ fault: "drop-request" }], undefined, 0],
    [[{ fault: "drop-request", reset: true }], "broken", 0],
    [[{ fault: "drop-reply" }], undefined, 1],
    [[{ fault: "drop-reply", reset: true }], "broken", 1],
    [[{ fault: "drop-reply" }, { fault: "duplicate" }], undefined, 2],
    [[{ fault: "duplicate" }], 2, 2],
    [[{ fault: "status" }], "http 500", 0],
    [[{ fault: "status", status: 429 }], "http 429", 0],
    [[{ fault: "status", status: 502, html: true }], "http 502", 0],
    [[{ fault: "down", command: "SET" }], 1, 1],
  ])("with %j answers %j, and has executed it %i times", async (rules, answer, executed) => {
    await on(rules, async (stand) => {
      const sent = stand.send("INCR", "k");
      // Silence is for the client to end.
      if (answer === undefined) {
        await until(async () => Number(await stand.look("GET", "k")) === executed, "the request");
        await stand.pass(20);
        expect(await isSettled(sent)).toBe(false);
        stand.abort();
      }
      expect(await sent).toBe(answer ?? "aborted");
      expect(Number(await stand.look("GET", "k"))).toBe(executed);
    });
  });

  test("a delayed request is executed later, and others meanwhile", async () => {
    await on([{ fault: "delay", ms: 100, times: 1 }], async (stand) => {
      const late = stand.send("INCR", "k");
      await arrived(stand);
      expect(await stand.send("SET", "k", 5)).toBe("OK");
      await stand.pass(100);
      expect(await late).toBe(6);
    });
  });

  test("a delayed reply is that of a request which was executed at once", async () => {
    await on([{ fault: "delay-reply", ms: 100, times: 1 }], async (stand) => {
      const late = stand.send("INCR", "k");
      await until(async () => (await stand.look("GET", "k")) === "1", "the execution");
      expect(await isSettled(late)).toBe(false);
      expect(await stand.send("INCR", "k")).toBe(2);
      await stand.pass(100);
      expect(await late).toBe(1);
    });
  });

  test("a reordered request is executed after the next one, or after a second", async () => {
    await on([{ fault: "reorder", times: 1 }], async (stand) => {
      const first = stand.send("SET", "k", "first");
      await arrived(stand);
      expect(await stand.send("SET", "k", "second")).toBe("OK");
      expect(await first).toBe("OK");
      expect(await stand.look("GET", "k")).toBe("first");
      stand.faults.add({ fault: "reorder", times: 1 });
      const only = stand.send("INCR", "n");
      await arrived(stand);
      expect(await stand.look("GET", "n")).toBeNull();
      await stand.pass(1_000);
      expect(await only).toBe(1);
    });
  });

  test.each<FaultRule>([{ fault: "delay", ms: 200 }, { fault: "reorder" }])(
    "a crash ends a request with %j, which is never executed",
    async (rule) => {
      await on([{ ...rule, times: 1 }], async (stand) => {
        const lost = stand.send("SET", "k", "never");
        await arrived(stand);
        await stand.stop();
        await stand.pass(1_100);
        expect(await lost).toBe("broken");
        await stand.start();
        expect(await stand.send("GET", "k")).toBeNull();
      });
    },
  );
});

test.each([
  ["in memory", inMemory],
  ...engines.map((engine) => [`on ${engine}`, () => overHttp(engine)] as const),
] as const)(
  "an endpoint %s that is stopped refuses connections, and starts with its data, or with nothing",
  async (_, open) => {
    await standOf(open)([], async (stand) => {
      await stand.send("SET", "k", "v", "PX", 600_000);
      const sha = String(await stand.send("SCRIPT", "LOAD", peekScript.source));
      await stand.stop();
      await stand.stop();
      expect(await stand.send("GET", "k")).toBe("broken");
      await stand.start();
      expect(await stand.send("GET", "k")).toBe("v");
      expect(await stand.look("PTTL", "k")).toBeGreaterThan(0);
      await stand.stop();
      await stand.start({ memory: "lost" });
      expect(await stand.send("GET", "k")).toBeNull();
      expect(await stand.send("SCRIPT", "EXISTS", sha)).toEqual([0]);
      // The lost data must not come back.
      await stand.stop();
      await stand.start();
      expect(await stand.send("GET", "k")).toBeNull();
    });
  },
);
