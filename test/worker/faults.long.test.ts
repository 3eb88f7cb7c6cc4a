import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Idempotency } from "../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../src/index.ts";
import { patient } from "../support/beyond-tests.ts";
import { until } from "../support/until.ts";
import { type LocalStand, openStand, sendAtOnce, sendUntilSuccess } from "./local-stand.ts";

let stand: LocalStand;
beforeAll(async () => {
  stand = await openStand();
});
afterEach(async () => {
  for (const endpoint of stand.endpoints) {
    endpoint.faults.clear();
    await endpoint.start();
  }
});
afterAll(() => stand?.close());

/** Sends until the answer is this problem. Until then, each answer asks the sender to try again. */
async function sendUntilProblem(title: string, delivery: Parameters<LocalStand["send"]>[0]): Promise<void> {
  await until(async () => {
    const response = await stand.send(delivery);
    const problem = await response.json();
    expect([response.status, Number(response.headers.get("retry-after")) >= 1]).toEqual([503, true]);
    return problem.title === title;
  }, title);
}

describe("a handler that fails", () => {
  it("is never answered with success, and the next attempt succeeds", async () => {
    await stand.query(
      "CREATE TRIGGER broken BEFORE INSERT ON effects BEGIN SELECT RAISE(ABORT, 'the database is broken'); END",
    );
    const delivery = await stand.github("issues");
    const statuses = await sendAtOnce(stand, delivery, 20);
    // The first run fails with 500. A duplicate that waited for it runs itself, or runs out of time (503).
    expect(statuses.filter((status) => status !== 500 && status !== 503)).toEqual([]);
    expect(statuses).toContain(500);
    expect(await stand.effects(delivery)).toEqual([]);
    const failed = await until(async () => {
      const answer = await stand.send(stand.standard("inv_broken"));
      return answer.status === 500 ? answer : undefined;
    }, "the handler's failure");
    expect(failed.headers.get("content-type")).toBe("application/problem+json");
    expect(await failed.text()).not.toContain("is broken");

    await stand.query("DROP TRIGGER broken");
    const tries = await sendUntilSuccess(stand, delivery);
    expect(await stand.effects(delivery)).toHaveLength(1);
    const rows = await stand.journal(delivery, 20 + tries);
    expect(rows.filter(({ outcome }) => outcome === "executed")).toHaveLength(1);
    const reason = "The event could not be handled: send it again";
    expect(rows).toContainEqual(expect.objectContaining({ outcome: "retry", status: 500, reason }));
  });
});

describe("a write under a stale fence", () => {
  it("changes nothing, and the sender is asked to try again", async () => {
    const entity = "standard-webhooks:inv_stale";
    const newest = Number.MAX_SAFE_INTEGER;
    await stand.query("INSERT INTO entities VALUES (?1, 7, ?2)", entity, newest);
    await stand.query("INSERT INTO redlock_fences (entity, fence) VALUES (?1, ?2)", entity, newest);
    const delivery = stand.standard("inv_stale");
    const response = await stand.send(delivery);
    expect(response.status).toBe(503);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await stand.effects(delivery)).toEqual([]);
    const find = "SELECT events, fence FROM entities WHERE entity = ?1";
    expect(await stand.query(find, entity)).toEqual([{ events: 7, fence: newest }]);
    const [row] = await stand.journal(delivery, 1);
    expect(row).toMatchObject({ outcome: "retry", status: 503 });

    await stand.query("UPDATE redlock_fences SET fence = 1 WHERE entity = ?1", entity);
    await sendUntilSuccess(stand, delivery);
    expect(await stand.effects(delivery)).toHaveLength(1);
    expect(await stand.query(find, entity)).toMatchObject([{ events: 8 }]);
  });
});

describe("a delivery whose first run has not finished", () => {
  it("gets 503 after a bounded wait, and runs after the first run has failed", async () => {
    const delivery = stand.standard("inv_busy");
    const idempotency = new Idempotency(new Redlock({ ...patient, endpoints: endpointsFromEnv(stand.env) }));
    let fail = (_reason: Error): void => undefined;
    // The same scope and kind as in the Worker's middleware.
    const ofDelivery = { scope: ["standard-webhooks"], kind: "http" };
    const first = new Promise<void>((begun, notBegun) => {
      const run = () => {
        begun();
        return new Promise<never>((_resolve, reject) => {
          fail = reject;
        });
      };
      idempotency.run(delivery.id, ofDelivery, run).catch(notBegun);
    });
    await first;
    await sendUntilProblem("A request with this key is being handled", delivery);
    expect(await stand.effects(delivery)).toEqual([]);

    fail(new Error("the first run fails"));
    await sendUntilSuccess(stand, delivery);
    expect(await stand.effects(delivery)).toHaveLength(1);
  });
});

describe("an entity that another holder has locked", () => {
  it("gives 503 after a bounded wait, and success once it is free", async () => {
    const delivery = stand.standard("inv_locked");
    const redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(stand.env) });
    const lock = await redlock.acquire("standard-webhooks:inv_locked", { fencing: true });
    await sendUntilProblem("The resource is locked", delivery);
    expect(await stand.effects(delivery)).toEqual([]);

    await lock.release();
    await sendUntilSuccess(stand, delivery);
    const [effect] = await stand.effects(delivery);
    expect(effect?.fence).toBeGreaterThan(lock.fence!);
  });
});

describe("with a fault", () => {
  it.each([
    ["drop-request", 1],
    ["drop-reply", 1],
    ["duplicate", 3],
  ] as const)(
    "(%s on %i of three), a delivery that is sent five times at once acts once",
    async (fault, count) => {
      for (const { faults } of stand.endpoints.slice(0, count)) faults.add({ fault });
      const delivery = await stand.github("check_run");
      const statuses = await sendAtOnce(stand, delivery, 5);
      expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(1);
      expect(statuses.filter((status) => ![200, "replayed", 503].includes(status))).toEqual([]);
      await sendUntilSuccess(stand, delivery);
      expect(await stand.effects(delivery)).toHaveLength(1);
    },
  );
});

describe("with all endpoints down", () => {
  it("nothing takes effect, and the sender is asked to try again", async () => {
    await Promise.all(stand.endpoints.map((endpoint) => endpoint.stop()));
    const delivery = await stand.github("star");
    const response = await stand.send(delivery);
    expect(response.status).toBe(503);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await stand.effects(delivery)).toEqual([]);
    const reason = "The store cannot be reached";
    expect(await stand.journal(delivery, 1)).toMatchObject([{ outcome: "retry", status: 503, reason }]);

    await Promise.all(stand.endpoints.map((endpoint) => endpoint.start()));
    await sendUntilSuccess(stand, delivery);
    expect(await stand.effects(delivery)).toHaveLength(1);
  });
});

describe("where Redis has lost everything", () => {
  it("a delivery that is sent again has no second effect, and gets the first answer", async () => {
    const delivery = stand.standard("inv_forgotten");
    const body = await (await stand.send(delivery)).text();
    for (const endpoint of stand.endpoints) await endpoint.execute(["FLUSHALL"]);
    const again = await stand.send(delivery);
    expect([again.status, await again.text()]).toEqual([200, body]);
    // Redis did not know: the handler ran again, and the table knew.
    expect(again.headers.has("idempotent-replayed")).toBe(false);
    expect(await stand.effects(delivery)).toMatchObject([{ events: 1 }]);
    const rows = await stand.journal(delivery, 2);
    expect(rows.map(({ outcome }) => outcome)).toEqual(["executed", "replayed"]);
  });
});
