import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type IdempotencyEvent, InProgressError, LeaseLostError } from "../../../src/idempotency/index.ts";
import type { RedlockEvent } from "../../../src/index.ts";
import { type Runtime, systemRuntime } from "../../../src/runtime.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { gate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, clientOf, type OpenStore, recordsOf, storesOf, ttlsOf } from "../../support/stores.ts";
import { until } from "../../support/until.ts";

const backoff = { min: 5, max: 60 };

eachEngine(storesOf([1, 2, 3], [1, 3]))("a run's call on $title", ({ open, count, dialect }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  const nothing = new Array(count).fill(null);

  describe("costs", () => {
    /** Requests and commands billed, by endpoint, for what `work` does. */
    async function costOf(work: () => Promise<unknown>): Promise<{ requests: number; billed: number }[]> {
      const before = store.endpoints.map((_, index) => store.cost(index));
      await work();
      return before.map(({ requests, billed }, index) => {
        const after = store.cost(index);
        return { requests: after.requests - requests, billed: after.billed - billed };
      });
    }

    const complete = dialect === "redis" ? 3 : 1;
    const each = (requests: number, billed: number) => new Array(count).fill({ requests, billed });

    test.each([{}, { fingerprint: "the body" }])(
      "what the budget says, for a first run, a duplicate, a busy one and a failed one, with %j",
      async (options) => {
        const events: IdempotencyEvent[] = [];
        const { idempotency, links } = clientOf(store, { onEvent: (event) => events.push(event) });
        await idempotency.run(freshKey(), () => "scripts are cached from here on");
        events.length = 0;
        const key = freshKey();
        const busy = async () => {
          await allArrived(links);
          const cost = await costOf(() =>
            outcomeOf(idempotency.run(key, options, () => expect.unreachable("busy"))),
          );
          expect(cost).toEqual(each(1, 1));
        };
        expect(
          await costOf(() => idempotency.run(key, options, () => busy().then(() => "x".repeat(1_000)))),
        ).toEqual(
          each(3, 2 + complete), // one request and one command of them are the busy one's
        );
        expect(await costOf(() => idempotency.run(key, options, () => 0))).toEqual(each(1, 1));
        const failed = () =>
          outcomeOf(idempotency.run(freshKey(), options, () => Promise.reject(new Error("no"))));
        const dropped = dialect === "redis" ? 3 : 1;
        expect(await costOf(failed)).toEqual(each(2, 1 + dropped));
        const ends = events.filter(({ type }) => type !== "called");
        expect(ends.map(({ type, requests, commands }) => [type, requests, commands])).toEqual([
          ["busy", count, count],
          ["executed", 2 * count, (1 + complete) * count],
          ["replayed", count, count],
          ["failed", expect.any(Number), expect.any(Number)],
        ]);
      },
    );

    test("what the budget says for a run with a lock", async () => {
      const events: IdempotencyEvent[] = [];
      const { idempotency, links } = clientOf(store, { onEvent: (event) => events.push(event) });
      await idempotency.run(freshKey(), { lock: freshKey() }, () => "scripts are cached from here on");
      events.length = 0;
      const [key, lock] = [freshKey(), freshKey()];
      const refused = async () => {
        await allArrived(links);
        const held = () => outcomeOf(idempotency.run(freshKey(), { lock }, () => expect.unreachable("held")));
        expect(await costOf(held)).toEqual(each(1, 5));
      };
      // The refused one is part of it.
      const end = dialect === "redis" ? 4 : 3;
      expect(await costOf(() => idempotency.run(key, { lock }, refused))).toEqual(each(3, 5 + 5 + end));
      expect(await costOf(() => idempotency.run(key, { lock }, () => 0))).toEqual(each(1, 2));
      const ends = events.filter(({ type }) => type !== "called");
      expect(ends.map(({ type, requests, commands }) => [type, requests, commands])).toEqual([
        ["locked", count, 5 * count],
        ["executed", 2 * count, (5 + end) * count],
        ["replayed", count, 2 * count],
      ]);
    });
  });

  describe("that is aborted", () => {
    const reason = new Error("the client has gone");

    test("before it begins sends nothing", async () => {
      const { idempotency, links } = clientOf(store);
      const signal = AbortSignal.abort(reason);
      const { error } = await outcomeOf(
        idempotency.run(freshKey(), { signal }, () => expect.unreachable("aborted")),
      );
      expect(error).toBe(reason);
      expect(links.flatMap(({ sent }) => sent)).toEqual([]);
    });

    test("while it begins runs nothing, and leaves nothing", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      const controller = new AbortController();
      for (const link of links) {
        link.fate = () => {
          link.fate = () => "delivered";
          // Executed, but not answered by the time of the abort.
          return {
            after: () =>
              new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve())),
          };
        };
      }
      const call = outcomeOf(
        idempotency.run(key, { signal: controller.signal }, () => expect.unreachable("aborted")),
      );
      await until(async () => (await recordsOf(store, key)).every((text) => text !== null));
      controller.abort(reason);
      expect((await call).error).toBe(reason);
      await until(async () => (await recordsOf(store, key)).every((text) => text === null));
    });

    test("while it waits rejects at once and leaves the other run alone", async () => {
      const key = freshKey();
      const finish = gate<string>();
      const began = gate();
      const first = clientOf(store).idempotency.run(key, () => {
        began.open();
        return finish.passed;
      });
      await began.passed;
      const controller = new AbortController();
      const { idempotency, links } = clientOf(store, { wait: 60_000, backoff: { min: 20_000, max: 20_000 } });
      const call = outcomeOf(
        idempotency.run(key, { signal: controller.signal }, () => expect.unreachable("aborted")),
      );
      await until(() => links.every(({ sent }) => sent.length > 0));
      const records = await recordsOf(store, key);
      controller.abort(reason);
      expect((await call).error).toBe(reason);
      expect(await recordsOf(store, key)).toEqual(records);
      finish.open("undisturbed");
      expect(await first).toEqual({ status: "executed", value: "undisturbed" });
    });

    test("while its handler runs goes on: the signal ends only the waiting", async () => {
      const controller = new AbortController();
      const { idempotency } = clientOf(store);
      const outcome = await idempotency.run(freshKey(), { signal: controller.signal }, ({ signal }) => {
        controller.abort(reason);
        return signal.aborted;
      });
      expect(outcome).toEqual({ status: "executed", value: false });
    });
  });

  describe("with a deadline", () => {
    test("that is over runs nothing and leaves nothing", async () => {
      const key = freshKey();
      const { idempotency } = clientOf(store, { wait: 60_000 });
      const { error } = await outcomeOf(
        idempotency.run(key, { deadline: Date.now() - 1 }, () => expect.unreachable("too late")),
      );
      expect(error).toBeInstanceOf(RangeError);
      expect(String(error)).toContain("deadline was");
      expect(await recordsOf(store, key)).toEqual(nothing);
    });

    test("does not wait beyond it", async () => {
      const key = freshKey();
      const finish = gate();
      const began = gate();
      const first = clientOf(store).idempotency.run(key, () => {
        began.open();
        return finish.passed;
      });
      await began.passed;
      const deadline = Date.now() + 200;
      const { error } = await outcomeOf(
        clientOf(store, { wait: 3_600_000, backoff }).idempotency.run(key, { deadline }, () => 0),
      );
      expect(error).toBeInstanceOf(InProgressError);
      finish.open();
      await first;
    });

    test("counts the time that beginning took once", async () => {
      let skipped = 0;
      const runtime: Runtime = {
        ...systemRuntime,
        now: () => systemRuntime.now() + skipped,
        monotonic: () => systemRuntime.monotonic() + skipped,
      };
      const { idempotency, links } = clientOf(store, { lease: 20_000 }, { runtime });
      links[0]!.fate = () => ({
        after() {
          skipped = 5_000;
        },
      });
      const deadline = runtime.now() + 12_000;
      await idempotency.run(freshKey(), { deadline }, ({ remaining }) => {
        // With a quorum of others, the clock may not have moved yet.
        expect(remaining()).toBeGreaterThan(5_000);
        expect(remaining()).toBeLessThanOrEqual(12_000 - skipped);
      });
    });

    test("aborts the handler's signal at the deadline, without a storm of renewals", async () => {
      const { idempotency, links } = clientOf(store, { lease: 30_000 });
      const deadline = Date.now() + paced(600);
      let sent = 0;
      const { error } = await outcomeOf(
        idempotency.run(freshKey(), { deadline }, async ({ signal, remaining }) => {
          // Read first: this process may pause in between.
          const limit = deadline - Date.now() + 5;
          expect(remaining()).toBeGreaterThan(0);
          expect(remaining()).toBeLessThanOrEqual(limit);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          sent = links[0]!.sent.length;
          throw signal.reason;
        }),
      );
      expect(error).toBeInstanceOf(LeaseLostError);
      expect(sent).toBe(1);
    });
  });

  describe("with waitUntil", () => {
    test.each(["function", "object"])("as a %s keeps late requests alive", async (form) => {
      const background: Promise<unknown>[] = [];
      class Context {
        readonly list = background;
        waitUntil(promise: Promise<unknown>): void {
          // Unbound, `this` would be undefined here, as it is for a platform's context.
          this.list.push(promise);
        }
      }
      const context = new Context();
      const waitUntil =
        form === "object" ? context : (promise: Promise<unknown>) => context.waitUntil(promise);
      const { idempotency, links } = clientOf(store, { waitUntil, timeout: 2_000 });
      const held = gate();
      const key = freshKey();
      const outcome = await idempotency.run(key, () => {
        // One endpoint more than needed is slow: nobody waits for it.
        for (const link of links.slice(Math.floor(count / 2) + 1)) {
          link.fate = () => ({ before: () => held.passed });
        }
        return "done";
      });
      expect(outcome.status).toBe("executed");
      expect(background.length).toBeGreaterThan(0);
      held.open();
      await Promise.all(background);
      const records = await recordsOf(store, key);
      expect(new Set(records).size).toBe(1);
      expect(records[0]).toMatch(/^C1 /);
    });

    test("keeps on storing after the answer", async () => {
      const background: Promise<unknown>[] = [];
      const { idempotency, links } = clientOf(store, {
        waitUntil: (promise) => background.push(promise),
        backoff,
      });
      const key = freshKey();
      const outcome = await idempotency.run(key, () => {
        for (const link of links) link.fate = () => "refused";
        return "kept";
      });
      expect(outcome).toEqual({ status: "executed", value: "kept", unstored: "no-quorum" });
      for (const link of links) link.fate = () => "delivered";
      await Promise.all(background);
      for (const record of await recordsOf(store, key)) expect(record).toMatch(/^C1 .*"kept"$/);
    });

    test("frees the key of a failed run in the background", async () => {
      const background: Promise<unknown>[] = [];
      const { idempotency, links } = clientOf(store, { waitUntil: (promise) => background.push(promise) });
      const key = freshKey();
      const held = gate();
      const { error } = await outcomeOf(
        idempotency.run(key, async () => {
          await allArrived(links);
          for (const link of links) link.fate = () => ({ before: () => held.passed });
          throw new Error("declined");
        }),
      );
      expect(error).toEqual(new Error("declined"));
      expect((await recordsOf(store, key)).every((text) => text?.startsWith("P1 "))).toBe(true);
      held.open();
      await Promise.all(background);
      expect(await recordsOf(store, key)).toEqual(nothing);
    });
  });

  describe("with wrong clocks", () => {
    const shifted = (ms: number): Runtime => ({ ...systemRuntime, now: () => systemRuntime.now() + ms });

    test.each([
      [-600_000, 600_000],
      [600_000, -600_000],
      [0, 600_000],
      [0, -600_000],
    ])("%i ms and %i ms comes to the same", async (mine, others) => {
      const key = freshKey();
      const options = { lease: 20_000, retention: 86_400_000, backoff };
      const { idempotency: first, links } = clientOf(store, options, { runtime: shifted(mine) });
      const second = clientOf(store, options, { runtime: shifted(others) }).idempotency;
      const outcome = await first.run(key, async ({ remaining }) => {
        expect(remaining() > 0 && remaining() <= 20_000).toBe(true);
        const { error } = await outcomeOf(second.run(key, () => expect.unreachable("busy")));
        expect(error).toBeInstanceOf(InProgressError);
        const { retryAfter } = error as InProgressError;
        expect(retryAfter >= 1_000 && retryAfter <= 20_000).toBe(true);
        await allArrived(links);
        for (const ttl of await ttlsOf(store, key)) expect(ttl > 10_000 && ttl <= 20_000).toBe(true);
        return "once";
      });
      expect(outcome.status).toBe("executed");
      const again = await second.run(key, () => expect.unreachable("complete"));
      expect(again).toEqual({ status: "replayed", value: "once" });
      for (const ttl of await ttlsOf(store, key)) expect(ttl > 86_000_000 && ttl <= 86_400_000).toBe(true);
    });
  });

  describe("reports", () => {
    test("the beginning and the end of every call", async () => {
      const events: IdempotencyEvent[] = [];
      const { idempotency, links } = clientOf(store, { onEvent: (event) => events.push(event) });
      const [key, failing, corrupt, silent] = [freshKey(), freshKey(), freshKey(), freshKey()];
      await idempotency.run(key, { fingerprint: "a" }, async () => {
        await outcomeOf(idempotency.run(key, { fingerprint: "a" }, () => 0));
      });
      await idempotency.run(key, { fingerprint: "a" }, () => 0);
      await outcomeOf(idempotency.run(key, { fingerprint: "b" }, () => 0));
      await outcomeOf(idempotency.run(failing, () => Promise.reject(new Error("no"))));
      await idempotency.run(corrupt, () => 0);
      const codec = { encode: String, decode: () => expect.unreachable("it is of another version") };
      await outcomeOf(idempotency.run(corrupt, { codec }, () => 0));
      for (const link of links) link.fate = () => "refused";
      await outcomeOf(idempotency.run(silent, () => 0));
      const [begins, ends] = [true, false].map((isBegin) =>
        events.filter(({ type }) => (type === "called") === isBegin),
      ) as [IdempotencyEvent[], IdempotencyEvent[]];
      expect(begins[0]).toMatchObject({ key, requests: 0, commands: 0 });
      const idOf = ({ id }: IdempotencyEvent) => id;
      // The second call began and ended within the first.
      expect(begins.map(idOf)).toEqual([ends[1]!, ends[0]!, ...ends.slice(2)].map(idOf));
      expect(ends.map(({ type, key: of }) => [type, of])).toEqual([
        ["busy", key],
        ["executed", key],
        ["replayed", key],
        ["mismatch", key],
        ["failed", failing],
        ["executed", corrupt],
        ["corrupt", corrupt],
        ["unavailable", silent],
      ]);
      for (const { elapsed } of events) expect(elapsed).toBeGreaterThanOrEqual(0);
    });

    test("the client of endpoints that failed", async () => {
      const events: RedlockEvent[] = [];
      const { idempotency, links } = clientOf(store, {}, { onEvent: (event) => events.push(event) });
      links[0]!.fate = () => "refused";
      await outcomeOf(idempotency.run(freshKey(), () => 0));
      expect(events[0]).toMatchObject({ type: "endpointError", endpoint: "endpoint-1" });
      expect(new Set(events.map(({ type }) => type))).toEqual(new Set(["endpointError"]));
    });

    test("hooks that throw or reject, without effect", async () => {
      const hooks = [
        () => {
          throw new Error("the hook's own");
        },
        () => Promise.reject(new Error("the hook's own")) as never,
      ];
      for (const onEvent of hooks) {
        const { idempotency } = clientOf(store, { onEvent });
        expect((await idempotency.run(freshKey(), () => 1)).status).toBe("executed");
      }
    });
  });
});
