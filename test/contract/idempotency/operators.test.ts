import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { fingerprintOf } from "../../../src/idempotency/digest.ts";
import { forgetKey, InProgressError, inspectKey } from "../../../src/idempotency/index.ts";
import { type Runtime, systemRuntime } from "../../../src/runtime.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { type Gate, gate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import {
  allArrived,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../support/stores.ts";

const never = () => expect.unreachable("nothing may run");

eachEngine(storesOf([1, 2, 3], [1, 3]))("an operator on $title", ({ open, count }) => {
  const nothing = new Array(count).fill(null);
  const quorum = Math.floor(count / 2) + 1;
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  /** A client of which the first `reached` endpoints are all that it reaches. */
  function reaching(reached: number) {
    const client = clientOf(store, { lease: 20_000, retention: 600_000 });
    for (const link of client.links.slice(reached)) link.fate = () => "refused";
    return client;
  }

  /** A run that goes on until the test gives it a result. */
  async function underWay(key: string): Promise<{ run: Promise<unknown>; finish: Gate<unknown> }> {
    const { idempotency, links } = reaching(count);
    const started = gate();
    const finish = gate<unknown>();
    const run = idempotency.run(key, { fingerprint: "body" }, () => {
      started.open();
      return finish.passed;
    });
    await Promise.race([started.passed, run]);
    await allArrived(links);
    return { run, finish };
  }

  /** Puts a text in the record's place on the endpoints of these indices, and removes it from the others. */
  async function place(key: string, text: string, indices: readonly number[]): Promise<void> {
    const name = await recordName(key);
    for (let index = 0; index < count; index += 1) {
      const put = ["SET", name, text, "PX", 60_000] as const;
      await store.execute(index, indices.includes(index) ? put : ["DEL", name]);
    }
  }

  describe("who inspects a key", () => {
    test("finds no record where there is none", async () => {
      const key = freshKey();
      const client = reaching(count);
      expect(await inspectKey(client.idempotency, key)).toEqual({
        state: "none",
        remaining: 0,
        attempts: 0,
        votes: client.links.map(({ name }) => ({
          endpoint: name,
          state: "none",
          remaining: 0,
          attempts: 0,
        })),
      });
      expect(await recordsOf(store, key)).toEqual(nothing);
    });

    test("sees a run under way, and its result after it", async () => {
      const key = freshKey();
      const { run, finish } = await underWay(key);
      const runtime: Runtime = { ...systemRuntime, now: () => systemRuntime.now() + 5_000 };
      const later = clientOf(store, {}, { runtime });
      const records = await recordsOf(store, key);
      const ttls = await ttlsOf(store, key);
      const pending = await inspectKey(later.idempotency, key);
      expect(pending).toMatchObject({ state: "pending", fingerprint: await fingerprintOf("body") });
      expect(pending.age).toBeGreaterThanOrEqual(5_000);
      expect(pending.age).toBeLessThan(20_000);
      expect(pending.remaining > 0 && pending.remaining <= Math.max(...ttls)).toBe(true);
      expect(pending.votes.map(({ state }) => state)).toEqual(new Array(count).fill("pending"));
      // It has taken, renewed and changed nothing.
      expect(await recordsOf(store, key)).toEqual(records);
      const after = await ttlsOf(store, key);
      for (const [index, ttl] of after.entries()) expect(ttl > 0 && ttl <= ttls[index]!).toBe(true);
      const names = new Set(later.links.flatMap(({ sent }) => sent.map(([name]) => name)));
      names.delete("EVAL"); // where the script was not known yet
      expect([...names]).toEqual(["EVALSHA"]);

      finish.open("the result");
      await run;
      const complete = await inspectKey(later.idempotency, key);
      expect(complete).toMatchObject({ state: "complete", fingerprint: await fingerprintOf("body") });
      expect(complete.remaining > 500_000 && complete.remaining <= 600_000).toBe(true);
      expect(JSON.stringify(complete)).not.toMatch(/the result|body/);
    });

    test("sees the key of a scope only", async () => {
      const key = freshKey();
      const client = reaching(count);
      await client.idempotency.run(key, { scope: ["a", "b"] }, () => 1);
      expect((await inspectKey(client.idempotency, key, { scope: ["a", "b"] })).state).toBe("complete");
      expect((await inspectKey(client.idempotency, key, { scope: "a" })).state).toBe("none");
      expect((await inspectKey(client.idempotency, key)).state).toBe("none");
    });

    test.each([
      ["complete", "C1 t0 1 - {}"],
      ["pending", "P1 t0 1 -"],
      ["corrupt", "something else"],
      ["corrupt", ""],
    ])("takes as %s what so many endpoints have that it is: %j", async (state, text) => {
      const key = freshKey();
      const client = reaching(count);
      // What is not a record stands as soon as no quorum can be without it.
      const enough = state === "corrupt" ? count - quorum + 1 : quorum;
      for (let reached = 1; reached <= count; reached += 1) {
        await place(
          key,
          text,
          Array.from({ length: reached }, (_, index) => index),
        );
        const seen = await inspectKey(client.idempotency, key);
        expect(seen.state).toBe(reached >= enough ? state : "undecided");
        expect(seen.votes.filter((vote) => vote.state === state)).toHaveLength(reached);
        if (seen.state === "undecided") expect(seen).toMatchObject({ remaining: 0, attempts: 0 });
      }
    });

    test("learns which endpoints did not answer", async () => {
      const key = freshKey();
      await reaching(count).idempotency.run(key, () => 1);
      for (let reached = 0; reached < count; reached += 1) {
        const { value, error } = await outcomeOf(inspectKey(reaching(reached).idempotency, key));
        if (reached < quorum) {
          expect(error).toBeInstanceOf(QuorumError);
          expect((error as QuorumError).message).toContain(`inspect "${key}"`);
        } else {
          expect(value!.state).toBe("complete");
          expect(value!.votes.at(-1)).toMatchObject({ state: "error", cause: { kind: "network" } });
        }
      }
    });
  });

  describe("who forgets a key", () => {
    test("lets it run again", async () => {
      const key = freshKey();
      const { idempotency } = reaching(count);
      await idempotency.run(key, { scope: "a" }, () => "first");
      await idempotency.run(key, () => "another scope's");
      expect(await forgetKey(idempotency, key, { scope: "a" })).toBe(true);
      expect(await recordsOf(store, key, "a")).toEqual(nothing);
      const again = await idempotency.run(key, { scope: "a" }, () => "second");
      expect(again).toEqual({ status: "executed", value: "second" });
      const other = await idempotency.run(key, never);
      expect(other).toEqual({ status: "replayed", value: "another scope's" });
    });

    test("gets false when there was nothing", async () => {
      expect(await forgetKey(reaching(count).idempotency, freshKey())).toBe(false);
    });

    test("does not disturb a run under way", async () => {
      const key = freshKey();
      const { run, finish } = await underWay(key);
      const { idempotency, links } = reaching(count);
      const records = await recordsOf(store, key);
      const { error } = await outcomeOf(forgetKey(idempotency, key));
      expect(error).toBeInstanceOf(InProgressError);
      expect(error).toMatchObject({ code: "IN_PROGRESS", key });
      const { retryAfter } = error as InProgressError;
      expect(retryAfter > 10_000 && retryAfter <= 20_000).toBe(true);
      expect(await recordsOf(store, key)).toEqual(records);
      expect(links[0]!.sent.filter(([name]) => name !== "EVALSHA" && name !== "EVAL")).toEqual([]);
      finish.open("undisturbed");
      expect(await run).toEqual({ status: "executed", value: "undisturbed" });
      expect(await forgetKey(idempotency, key)).toBe(true);
    });

    test.runIf(count > quorum)(
      "does not disturb one that may be under way where nobody answers",
      async () => {
        const key = freshKey();
        await place(key, "P1 t0 1 -", [0]);
        const name = await recordName(key);
        for (let reached = quorum; reached < count; reached += 1) {
          await store.execute(1, ["SET", name, "C1 t1 1 - {}"]);
          const { error } = await outcomeOf(forgetKey(reaching(reached).idempotency, key));
          expect(error).toBeInstanceOf(QuorumError);
          expect((await recordsOf(store, key)).slice(0, 2)).toEqual(["P1 t0 1 -", "C1 t1 1 - {}"]);
        }
      },
    );

    test("removes also what only one endpoint has", async () => {
      for (let index = 0; index < count; index += 1) {
        const key = freshKey();
        await place(key, "C1 t0 1 - {}", [index]);
        expect(await forgetKey(reaching(count).idempotency, key)).toBe(true);
        expect(await recordsOf(store, key)).toEqual(nothing);
      }
    });

    test("removes a value that is not a record, too", async () => {
      const key = freshKey();
      const { idempotency } = reaching(count);
      for (const text of ["something else", ""]) {
        await place(key, text, [...store.endpoints.keys()]);
        expect(await forgetKey(idempotency, key)).toBe(true);
        expect(await recordsOf(store, key)).toEqual(nothing);
      }
    });

    test("gets an error while an endpoint may keep a copy that would be found again", async () => {
      const key = freshKey();
      const { idempotency } = reaching(count);
      await idempotency.run(key, () => "kept");
      const { error } = await outcomeOf(forgetKey(reaching(count - 1).idempotency, key));
      expect(error).toBeInstanceOf(QuorumError);
      expect((error as QuorumError).message).toContain(`forget "${key}"`);
      // What was reached is gone, where that was enough to know that no run is under way.
      const kept = (await recordsOf(store, key)).filter((text) => text !== null);
      expect(kept).toHaveLength(count - 1 >= quorum ? 1 : count);
      expect(await forgetKey(idempotency, key)).toBe(true);
      expect((await idempotency.run(key, () => "new")).value).toBe("new");
    });

    test("gets an error when a copy comes back meanwhile", async () => {
      const key = freshKey();
      const { idempotency, links } = reaching(count);
      await idempotency.run(key, () => "stubborn");
      await allArrived(links);
      const record = (await recordsOf(store, key))[0]!;
      const name = await recordName(key);
      links[0]!.fate = (command) => ({
        async after() {
          if (!command.includes("look")) await store.execute(0, ["SET", name, record, "PX", 60_000]);
        },
      });
      expect((await outcomeOf(forgetKey(idempotency, key))).error).toBeInstanceOf(QuorumError);
      links[0]!.fate = () => "delivered";
      expect(await forgetKey(idempotency, key)).toBe(true);
    });

    test("leaves alone a run that begins meanwhile", async () => {
      const key = freshKey();
      const { idempotency, links } = reaching(count);
      await idempotency.run(key, () => "old");
      await allArrived(links);
      let looks = 0;
      for (const [index, link] of links.entries()) {
        link.fate = (command) => ({
          async after() {
            if (!command.includes("look")) return;
            looks += 1;
            // Behind the first look at each endpoint: there, a new run has taken the place of what was seen.
            const name = await recordName(key);
            if (looks <= count) await store.execute(index, ["SET", name, "P1 t9 9 -", "PX", 60_000]);
          },
        });
      }
      expect(await forgetKey(idempotency, key)).toBe(true);
      expect(await recordsOf(store, key)).toEqual(new Array(count).fill("P1 t9 9 -"));
    });

    test("makes a dead key live, and counts from the beginning", async () => {
      const key = freshKey();
      const name = await recordName(key);
      const counted = reaching(count);
      const die = async () => {
        const started = gate();
        const { idempotency, links } = clientOf(store);
        void idempotency.run(key, { maxAttempts: 1 }, () => {
          started.open();
          return new Promise(() => undefined);
        });
        await started.passed;
        await allArrived(links);
        for (const link of links) link.fate = () => "lost";
        for (let index = 0; index < count; index += 1) await store.execute(index, ["DEL", name]);
      };
      for (let time = 0; time < 2; time += 1) {
        await die();
        const { error } = await outcomeOf(counted.idempotency.run(key, { maxAttempts: 1 }, never));
        expect(error).toMatchObject({ code: "DEAD_KEY", attempts: 1 });
        expect(await inspectKey(counted.idempotency, key)).toMatchObject({ state: "none", attempts: 1 });
        expect(await forgetKey(counted.idempotency, key)).toBe(true);
        expect(await inspectKey(counted.idempotency, key)).toMatchObject({ state: "none", attempts: 0 });
      }
      expect((await counted.idempotency.run(key, { maxAttempts: 1 }, () => 1)).status).toBe("executed");
    });
  });
});

describe("arguments of operators", async () => {
  const store = await storesOf([1])[0]!.open();
  const { idempotency, links } = clientOf(store);
  const wrong = (value: unknown) => value as never;
  test.each([
    ["", {}, RangeError, /key/],
    [wrong(7), {}, TypeError, /key.*number/],
    ["k", { scope: wrong(null) }, TypeError, /scope.*null/],
    ["k", { scope: wrong(["a", undefined]) }, TypeError, /scope.*missing/],
    ["k", { timeout: 0 }, RangeError, /timeout.*0/],
  ])("%j, %j is refused before anything is sent", async (key, options, type, message) => {
    for (const call of [inspectKey, forgetKey]) {
      const { error } = await outcomeOf<unknown>(call(idempotency, key, options));
      expect(error).toBeInstanceOf(type);
      expect(String(error)).toMatch(message);
    }
    expect(links[0]!.sent).toEqual([]);
  });
});
