import { afterAll, beforeAll, expect, test } from "vitest";
import { InProgressError } from "../../../src/idempotency/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { gate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { type Client, clientOf, type OpenStore, recordsOf, storesOf } from "../../support/stores.ts";
import { until } from "../../support/until.ts";

const backoff = { min: 5, max: 60 };

eachEngine(storesOf([1, 2, 3]))("many runs of one key on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  test("50 that wait get the result of one", async () => {
    const key = freshKey();
    const clients = Array.from({ length: 5 }, () => clientOf(store, { wait: 20_000, backoff }));
    const others = gate();
    let runs = 0;
    let asked = 0;
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const { idempotency, links } = clients[index % clients.length]!;
      return idempotency.run(key, async () => {
        runs += 1;
        asked = links[0]!.sent.length;
        await others.passed;
        return { by: index };
      });
    });
    // All have asked by now, and most again.
    await until(() => clients.every(({ links }) => links.every(({ sent }) => sent.length > 10 + asked)));
    others.open();
    const outcomes = await Promise.all(calls);
    expect(runs).toBe(1);
    expect(outcomes.filter(({ status }) => status === "executed")).toHaveLength(1);
    expect(outcomes.filter(({ status }) => status === "replayed")).toHaveLength(49);
    expect(new Set(outcomes.map(({ value }) => value.by)).size).toBe(1);
  });

  test("of 50 that do not wait one runs, and the others get InProgressError", async () => {
    const key = freshKey();
    const { idempotency } = clientOf(store, { timeout: 5_000, backoff });
    const others = gate();
    let runs = 0;
    let settled = 0;
    const calls = Array.from({ length: 50 }, async () => {
      const outcome = await outcomeOf(
        idempotency.run(key, async () => {
          runs += 1;
          await others.passed;
          return "done";
        }),
      );
      settled += 1;
      if (settled === 49) others.open();
      return outcome;
    });
    const outcomes = await Promise.all(calls);
    expect(runs).toBe(1);
    const failures = outcomes.flatMap(({ error }) => error ?? []);
    expect(failures).toHaveLength(49);
    for (const failure of failures) expect(failure).toBeInstanceOf(InProgressError);
    const { value } = outcomes.find((outcome) => outcome.error === undefined)!;
    expect(value).toEqual({ status: "executed", value: "done" });
    expect(await idempotency.run(key, () => "again")).toEqual({ status: "replayed", value: "done" });
  });

  test("the next one runs when the first fails; nobody who waits is left out", async () => {
    const key = freshKey();
    const { idempotency } = clientOf(store, { wait: 20_000, backoff });
    let runs = 0;
    const calls = Array.from({ length: 8 }, () =>
      outcomeOf(
        idempotency.run(key, () => {
          runs += 1;
          if (runs < 3) throw new Error(`failure ${runs}`);
          return runs;
        }),
      ),
    );
    const outcomes = await Promise.all(calls);
    expect(runs).toBe(3);
    expect(outcomes.flatMap(({ error }) => error ?? []).map(String)).toEqual(
      expect.arrayContaining(["Error: failure 1", "Error: failure 2"]),
    );
    expect(outcomes.filter(({ value }) => value?.status === "executed")).toHaveLength(1);
    expect(outcomes.filter(({ value }) => value?.status === "replayed")).toHaveLength(5);
    for (const { value } of outcomes) if (value) expect(value.value).toBe(3);
  });

  test("runs of other keys do not wait for it", async () => {
    const { idempotency } = clientOf(store);
    const held = gate();
    const slow = idempotency.run(freshKey(), () => held.passed);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => idempotency.run(freshKey(), () => index)),
    );
    expect(outcomes.map(({ value }) => value)).toEqual(Array.from({ length: 20 }, (_, index) => index));
    held.open();
    await slow;
  });
});

eachEngine(storesOf([2, 3]))("two runs of one key on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  /** Clients each of which is first at one endpoint, and comes to the other ones only after that. */
  function parted(wait: number): Client[] {
    const clients = [0, 1].map(() => clientOf(store, { wait, backoff, timeout: 5_000 }));
    const arrived = clients.map(() => gate());
    for (const [index, { links }] of clients.entries()) {
      for (const [at, link] of links.entries()) {
        link.fate = () => {
          link.fate = () => "delivered";
          if (at === index) return { after: () => arrived[index]!.open() };
          return { before: () => Promise.all(arrived.map(({ passed }) => passed)) };
        };
      }
    }
    return clients;
  }

  test("that each got a part of the first round come to one run", async () => {
    const key = freshKey();
    let runs = 0;
    const outcomes = await Promise.all(
      parted(20_000).map(({ idempotency }) => idempotency.run(key, () => ++runs)),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["executed", "replayed"]);
    expect(runs).toBe(1);
    const records = await recordsOf(store, key);
    expect(new Set(records).size).toBe(1);
  });

  test("come to one run also where neither waits and no endpoint may fail any more", async () => {
    const key = freshKey();
    const clients = parted(0);
    for (const { links } of clients) for (const link of links.slice(2)) link.fate = () => "refused";
    const other = gate();
    let runs = 0;
    const outcomes = await Promise.all(
      clients.map(async ({ idempotency }) => {
        const outcome = await outcomeOf(
          idempotency.run(key, async () => {
            runs += 1;
            await other.passed;
          }),
        );
        other.open();
        return outcome;
      }),
    );
    expect(runs).toBe(1);
    expect(outcomes.filter(({ value }) => value?.status === "executed")).toHaveLength(1);
    expect(outcomes.flatMap(({ error }) => error ?? [])).toEqual([expect.any(InProgressError)]);
  });
});
