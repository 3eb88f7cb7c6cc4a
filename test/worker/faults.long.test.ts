import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
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
