import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { start } from "../../../local/src/index.ts";
import { httpEndpoint } from "../../../src/endpoints/http.ts";
import { EndpointError, QuorumError } from "../../../src/errors.ts";
import { Idempotency, InProgressError } from "../../../src/idempotency/index.ts";
import { parseRecord } from "../../../src/idempotency/record.ts";
import { Redlock } from "../../../src/redlock.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { gate, type Link } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../support/stores.ts";
import { until } from "../../support/until.ts";

const backoff = { min: 5, max: 60 };

/** Faults that hit the first command of each link after this. */
function once(links: readonly Link[], fate: ReturnType<Link["fate"]>): void {
  for (const link of links) {
    link.fate = () => {
      link.fate = () => "delivered";
      return fate;
    };
  }
}

eachEngine(storesOf([1, 2, 3], [1, 3]), describe.concurrent)(
  "idempotency under faults on $title",
  ({ open, count }) => {
    const quorum = Math.floor(count / 2) + 1;
    let store: OpenStore;
    let healthy: Client;
    beforeAll(async () => {
      store = await open();
      healthy = clientOf(store, { backoff });
    });
    afterAll(() => store.close());

    const states = async (key: string) =>
      (await recordsOf(store, key)).map((text) => parseRecord(text)?.state);

    test("a begin whose replies are lost runs once, in the next round", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store, { wait: 10_000, backoff });
      once(links, "reply lost");
      let runs = 0;
      expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 1 });
      expect(await healthy.idempotency.run(key, () => ++runs)).toEqual({ status: "replayed", value: 1 });
    });

    test("a begin whose replies are lost leaves the key free where nobody waits", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      once(links, "reply lost");
      const { error } = await outcomeOf(idempotency.run(key, () => expect.unreachable("nothing may run")));
      expect(error).toBeInstanceOf(QuorumError);
      expect(await recordsOf(store, key)).toEqual(new Array(count).fill(null));
      expect((await healthy.idempotency.run(key, () => 1)).status).toBe("executed");
    });

    test("a failed begin is rolled back before the call ends, when there is no waitUntil", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      let rolledBack = 0;
      for (const link of links) {
        // Executed, but a failing gateway answers; the rollback is slow.
        link.fate = () => {
          link.fate = () => ({
            before: () => new Promise((resolve) => setImmediate(resolve)),
            after() {
              rolledBack += 1;
            },
          });
          return { after: () => Promise.reject(new EndpointError(link.name, "http", "HTTP 502")) };
        };
      }
      const { error } = await outcomeOf(idempotency.run(key, () => expect.unreachable("nothing may run")));
      expect(error).toBeInstanceOf(QuorumError);
      expect(rolledBack).toBeGreaterThanOrEqual(count);
      expect(await recordsOf(store, key)).toEqual(new Array(count).fill(null));
    });

    test("a store that is down runs nothing, and says why", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      for (const link of links.slice(0, count - quorum + 1)) link.fate = () => "refused";
      const { error } = await outcomeOf(idempotency.run(key, () => expect.unreachable("nothing may run")));
      expect(error).toBeInstanceOf(QuorumError);
      const { votes, message, cause } = error as QuorumError;
      expect(votes.map(({ endpoint }) => endpoint)).toEqual(links.map(({ name }) => name));
      expect(votes[0]).toMatchObject({ outcome: "error", cause: { kind: "network" } });
      expect(cause).toBeInstanceOf(EndpointError);
      expect(message).toContain(key);
      expect(message).toContain("endpoint-1");
      expect(await recordsOf(store, key)).toEqual(new Array(count).fill(null));
    });

    test("a store that comes back while somebody waits runs it", async () => {
      const { idempotency, links } = clientOf(store, { wait: 10_000, backoff });
      let attempts = 0;
      for (const link of links) {
        link.fate = () => {
          attempts += 1;
          return attempts <= 4 * count ? "refused" : "delivered";
        };
      }
      expect(await idempotency.run(freshKey(), () => "at last")).toEqual({
        status: "executed",
        value: "at last",
      });
    });

    test("as many endpoints may be down as leave a quorum", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      for (const link of links.slice(quorum)) link.fate = () => "refused";
      expect(await idempotency.run(key, () => 1)).toEqual({ status: "executed", value: 1 });
      expect(await idempotency.run(key, () => 2)).toEqual({ status: "replayed", value: 1 });
      expect(await states(key)).toEqual(links.map((_, index) => (index < quorum ? "complete" : undefined)));
    });

    test("a complete whose replies are lost is stored all the same", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store, { backoff });
      let runs = 0;
      const outcome = await idempotency.run(key, () => {
        once(links, "reply lost");
        return ++runs;
      });
      expect(outcome).toEqual({ status: "executed", value: 1 });
      await until(async () => (await states(key)).every((state) => state === "complete"));
      expect(await healthy.idempotency.run(key, () => ++runs)).toEqual({ status: "replayed", value: 1 });
    });

    test("a result that cannot be stored is returned, its key stays taken, and storing goes on", async () => {
      const key = freshKey();
      const events: string[] = [];
      const { idempotency, links } = clientOf(store, {
        timeout: 1_000, // the caller waits no longer than two of them
        lease: 60_000,
        backoff,
        onEvent: ({ type }) => type !== "called" && events.push(type),
      });
      const outcome = await idempotency.run(key, async () => {
        await allArrived(links);
        for (const link of links) link.fate = () => "refused";
        return "the effect";
      });
      expect(outcome).toEqual({ status: "executed", value: "the effect", unstored: "no-quorum" });
      expect(events).toEqual(["unstored"]);
      expect(await states(key)).toEqual(new Array(count).fill("pending"));
      const busy = await outcomeOf(healthy.idempotency.run(key, () => expect.unreachable("busy")));
      expect(busy.error).toBeInstanceOf(InProgressError);
      for (const link of links) link.fate = () => "delivered";
      await until(async () => (await states(key)).every((state) => state === "complete"));
      expect((await healthy.idempotency.run(key, () => "again")).value).toBe("the effect");
    });

    test("a failed run whose key could not be freed is free when its lease ends", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store, {
        lease: paced(500),
        wait: 10_000,
        timeout: paced(500),
      });
      const failure = new Error("declined");
      const { error } = await outcomeOf(
        idempotency.run(key, () => {
          for (const link of links) link.fate = () => "refused";
          throw failure;
        }),
      );
      expect(error).toBe(failure);
      const outcome = await healthy.idempotency.run(key, { wait: 10_000 }, () => "second try");
      expect(outcome).toEqual({ status: "executed", value: "second try" });
    });

    test("a begin that arrives after its rollback leaves nothing beyond its lease", async () => {
      const key = freshKey();
      const lease = paced(700);
      const { idempotency, links } = clientOf(store, { lease, timeout: paced(250) });
      const held = gate();
      const arrived = links.map(() => gate());
      for (const [index, link] of links.entries()) {
        link.fate = () => {
          link.fate = () => "delivered";
          return { before: () => held.passed, after: () => arrived[index]!.open() };
        };
      }
      const { error } = await outcomeOf(idempotency.run(key, () => expect.unreachable("it timed out")));
      expect(error).toBeInstanceOf(QuorumError);
      held.open();
      await Promise.all(arrived.map(({ passed }) => passed));
      for (const ttl of await ttlsOf(store, key)) expect(ttl <= lease && ttl !== -1).toBe(true);
      const outcome = await healthy.idempotency.run(key, { wait: 10_000 }, () => "next");
      expect(outcome).toEqual({ status: "executed", value: "next" });
    });

    test("a begin that arrives after its result does not undo it", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store, { backoff });
      const held = gate();
      const arrived = gate();
      const late = links.at(-1)!;
      if (count > quorum) {
        once([late], { before: () => held.passed, after: () => arrived.open() });
      } else {
        arrived.open();
      }
      await idempotency.run(key, () => "done");
      held.open();
      await arrived.passed;
      await until(async () => (await states(key)).every((state) => state === "complete"));
    });

    test("a begin that arrives between the two halves of completing is completed", async () => {
      const key = freshKey();
      const { idempotency, links } = clientOf(store);
      const name = await recordName(key);
      const outcome = await idempotency.run(key, async () => {
        await allArrived(links);
        const own = await recordsOf(store, key);
        for (const [index, link] of links.entries()) {
          // Gone when it is compared, there again when its absence is relied on.
          await store.execute(index, ["DEL", name]);
          link.fate = () => {
            link.fate = () => "delivered";
            return { after: () => store.execute(index, ["SET", name, own[index]!, "PX", 30_000]) };
          };
        }
        return "done";
      });
      expect(outcome).toEqual({ status: "executed", value: "done" });
      expect(await states(key)).toEqual(new Array(count).fill("complete"));
    });
  },
);

eachEngine(storesOf([2, 3]), describe.concurrent)(
  "a result that only some endpoints have on $title",
  ({ open, count }) => {
    let store: OpenStore;
    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store.close());

    /** A complete record on the last endpoint only. */
    async function minority(key: string, fingerprint?: string): Promise<string> {
      const { idempotency, links } = clientOf(store, { retention: 400_000 });
      await idempotency.run(key, { fingerprint }, async () => {
        // A begin that came later would take the place of what is deleted below.
        await allArrived(links);
        return "the effect";
      });
      expect(await recordsOf(store, key)).toEqual(new Array(count).fill(expect.stringMatching(/^C1 /)));
      const name = await recordName(key);
      for (let index = 0; index < count - 1; index += 1) await store.execute(index, ["DEL", name]);
      return (await recordsOf(store, key)).at(-1)!;
    }

    /** A client that gets the answer of the last endpoint before the others. */
    function patient(): Client {
      const client = clientOf(store, { backoff, retention: 400_000, lease: 20_000 });
      const heard = gate();
      once(client.links.slice(0, -1), { after: () => heard.passed });
      once(client.links.slice(-1), { after: () => void setImmediate(heard.open) });
      return client;
    }

    test("is replayed, and written to the others for the rest of its retention", async () => {
      const key = freshKey();
      const record = await minority(key);
      const outcome = await patient().idempotency.run(key, () =>
        expect.unreachable("the effect has happened"),
      );
      expect(outcome).toEqual({ status: "replayed", value: "the effect" });
      await until(async () => (await recordsOf(store, key)).every((text) => text === record));
      for (const ttl of await ttlsOf(store, key)) expect(ttl > 100_000 && ttl <= 400_000).toBe(true);
    });

    test("with another fingerprint is a mismatch, and leaves nothing pending", async () => {
      const key = freshKey();
      const record = await minority(key, "amount=10");
      const { error } = await outcomeOf(
        patient().idempotency.run(key, { fingerprint: "amount=99" }, () => expect.unreachable("mismatch")),
      );
      expect(error).toMatchObject({ code: "FINGERPRINT_MISMATCH" });
      const others = new Array<string | null>(count - 1).fill(null);
      expect(await recordsOf(store, key)).toEqual([...others, record]);
    });
  },
);

describe.concurrent("a server that is killed while the handler runs", () => {
  const engine = bestEngine;

  async function servers(count: number) {
    const local = await start({ count, engine });
    const endpoints = local.endpoints.map(({ url, token, name }) => httpEndpoint({ url, token, name }));
    const options = { lease: 60_000, timeout: 5_000, backoff };
    return { local, client: () => new Idempotency(new Redlock({ endpoints }), options) };
  }

  test.each(["kept", "lost"] as const)(
    "is one of three: the result stands, its memory %s",
    async (memory) => {
      const { local, client } = await servers(3);
      await using _ = local;
      const key = freshKey();
      const killed = local.endpoints[1]!;
      const outcome = await client().run(key, async () => {
        await killed.stop();
        return "done";
      });
      expect(outcome).toEqual({ status: "executed", value: "done" });
      const replayed = { status: "replayed", value: "done" };
      const never = () => expect.unreachable("it has been run");
      expect(await client().run(key, never)).toEqual(replayed);
      await killed.start({ memory });
      expect(await client().run(key, never)).toEqual(replayed);
      // Where it knows nothing of the run, the call that replays the result also writes it there.
      const name = await recordName(key);
      const states = async () =>
        parseRecord(await killed.execute(["GET", name]))?.state ?? (await client().run(key, never)).status;
      if (memory === "lost") await until(async () => (await states()) === "complete");
    },
  );

  test("is the only one: the value is returned, and stored when it comes back", async () => {
    const { local, client } = await servers(1);
    await using _ = local;
    const key = freshKey();
    const only = local.endpoints[0]!;
    const outcome = await client().run(key, { timeout: paced(500) }, async () => {
      await only.stop();
      return "done";
    });
    expect(outcome).toEqual({ status: "executed", value: "done", unstored: "no-quorum" });
    const down = await outcomeOf(client().run(key, () => expect.unreachable("the answers do not decide")));
    expect(down.error).toBeInstanceOf(QuorumError);
    await only.start();
    const name = await recordName(key);
    await until(async () => parseRecord(await only.execute(["GET", name]))?.state === "complete");
    expect((await client().run(key, () => "again")).value).toBe("done");
  });
});
