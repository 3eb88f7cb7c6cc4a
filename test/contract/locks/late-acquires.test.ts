import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import type { Redlock } from "../../../src/index.ts";
import { Semaphore } from "../../../src/sync/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { gated } from "../../support/gated.ts";
import { type Gateway, latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { engines } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

/** An operation that begins with acquire requests. */
type Operation = (redlock: Redlock, name: string, options?: { signal: AbortSignal }) => Promise<unknown>;

const permit = (redlock: Redlock, name: string, options?: { signal: AbortSignal }) =>
  new Semaphore(redlock, name, { limit: 1 }).acquire(options);

const operations: readonly (readonly [string, Operation])[] = [
  ["a lock", (redlock, name, options) => redlock.acquire(name, options)],
  ["a fenced lock", (redlock, name, options) => redlock.acquire(name, { ...options, fencing: true })],
  ["a permit", permit],
  ["a key", (redlock, name, options) => runOf(redlock, name, options, 1_000)],
  ["a counted key", (redlock, name, options) => runOf(redlock, name, options, 1)],
];

function runOf(redlock: Redlock, name: string, options: object | undefined, maxAttempts: number) {
  const idempotency = new Idempotency(redlock, { lease: 60_000, wait: 4_000, maxAttempts });
  return idempotency.run(name, options ?? {}, () => "done");
}

/** Delays the execution of each request by so many ms after its arrival. */
function delay(gateway: Gateway, ms: (command: readonly string[]) => number): void {
  gateway.before = (command) => {
    const late = ms(command);
    return late > 0 ? sleep(late) : undefined;
  };
}

// A key that is not rolled back would live for a minute, far longer than any client here waits.
const options = { ttl: 60_000, wait: 4_000, timeout: 1_000 };

eachEngine(engines)("acquire requests that are executed late, on %s", (engine) => {
  for (const count of [1, 3]) {
    const at = gated(engine, count, "redis");

    test.each(operations)(`an abort leaves nothing of %s, ${count} endpoints`, async (_, operation) => {
      const name = newResource();
      const aborted = at.client(options);
      // From here on the endpoints know the script.
      if (operation === permit) await (await permit(at.client().redlock, newResource())).release();
      const before = at.gateways.map(({ requests }) => requests.length);
      const late = latch();
      let toDelay = count;
      for (const gateway of at.gateways) gateway.before = () => (toDelay-- > 0 ? late.opened : undefined);
      const controller = new AbortController();
      const call = operation(aborted.redlock, name, { signal: controller.signal });
      await until(() => toDelay <= 0, "the acquire requests");
      controller.abort();
      expect(await rejection(call)).toBe(controller.signal.reason);
      // Enough time for a rollback that does not wait to overtake them.
      await sleep(50);
      const areExecuted = () =>
        at.gateways.map(({ executed, requests }, index) =>
          executed.includes(requests[before[index]!]!.command),
        );
      expect(areExecuted()).not.toContain(true);
      late.open();
      await until(() => !areExecuted().includes(false), "the executions");
      await operation(at.client(options).redlock, name);
      const seen = aborted.events.filter(({ type }) => type !== "acquiring" && type !== "aborted");
      expect(seen).toEqual([]);
    });
  }

  const three = gated(engine, 3, "redis");

  test("an abort while a run is counted leaves no count", async () => {
    const isCount = ([name, ...words]: readonly string[]) =>
      name === "SET" && words.some((word) => word.startsWith("A1 "));
    const name = newResource();
    const controller = new AbortController();
    for (const gateway of three.gateways) {
      let late = true;
      delay(gateway, (command) => {
        if (!late || !isCount(command)) return 0;
        late = false;
        setTimeout(() => controller.abort(), 10);
        return 60;
      });
    }
    const { redlock } = three.client(options);
    const call = runOf(redlock, name, { signal: controller.signal }, 1);
    expect(await rejection(call)).toBe(controller.signal.reason);
    await until(() => three.gateways.every(({ executed }) => executed.some(isCount)), "the counts");
    expect(await runOf(three.client(options).redlock, name, {}, 1)).toMatchObject({ value: "done" });
  });

  test("a round that is cut short does not block the next one", async () => {
    const name = newResource();
    await three.local.put(name, [0], "somebody-else", 60_000);
    delay(three.gateways[1]!, ([command]) => (command === "SET" ? 60 : 0));
    const { redlock } = three.client(options);
    const lock = await redlock.acquire(name);
    expect(await lock.release()).toBe(true);
  });
});
