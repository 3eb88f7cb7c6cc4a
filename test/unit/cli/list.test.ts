import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { FairLock, Mailbox, once, ReadWriteLock, ReentrantLock, Semaphore } from "../../../src/sync/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { openRealEndpoints, redisServer } from "../../support/redis-servers.ts";
import { run } from "./terminal.ts";

// What `list` finds. How it says that is in golden/list.txt.

let local: LocalEndpoints;
let redlock: Redlock;
beforeAll(async () => {
  local = await start({ engine: "embedded", count: 3 });
  redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) });
});
afterEach(() => Promise.all(local.endpoints.map((endpoint) => endpoint.execute(["FLUSHALL"]))));
afterAll(() => local.close());

async function listed(line = "", at: LocalEndpoints = local) {
  const { code, lines } = await run(at, `list --json ${line}`);
  return { code, ...JSON.parse(lines[0]!) };
}

test("shows each holder of each synchronizer once, with the time that it has", async () => {
  const held = { ttl: 60_000 };
  const semaphore = new Semaphore(redlock, "permits", { limit: 3, ...held });
  await semaphore.acquire({ note: "one" });
  await semaphore.acquire();
  await new FairLock(redlock, "fair", held).acquire();
  const readers = new ReadWriteLock(redlock, "read", held);
  await readers.acquireRead();
  await readers.acquireRead({ ttl: 30_000 });
  await new ReadWriteLock(redlock, "written", held).acquireWrite();
  await new ReentrantLock(redlock, "again", held).acquire();
  await once(redlock, "daily", { every: 60_000 }, () => 1);
  await new Promise<void>((begun) => {
    void new Mailbox(redlock, "thread", held).post({ id: "m", value: 1 }, () => {
      begun();
      return new Promise(() => undefined);
    });
  });
  const found = await listed();
  expect(found).toMatchObject({ code: 0, quorum: 2, endpoints: 3, failures: [], complete: true });
  const rows: { kind: string; name: string; note?: string; remaining: number; endpoints: number }[] =
    found.held;
  const names =
    "fair fair, once daily, permit permits, permit permits, reader read, reader read, reentrant again, turn thread, writer written";
  expect(rows.map(({ kind, name }) => `${kind} ${name}`).join(", ")).toBe(names);
  expect(rows.flatMap(({ note }) => note ?? [])).toEqual(["one"]);
  for (const { endpoints, remaining } of rows) {
    expect([endpoints, remaining]).toEqual([3, expect.toSatisfy((ms: number) => ms > 0 && ms <= 60_000)]);
  }
  const [one, other] = rows.filter(({ kind }) => kind === "reader").map(({ remaining }) => remaining);
  expect(Math.abs(one! - other!)).toBeGreaterThan(25_000);
});

test("names a holder as inspect does", async () => {
  await redlock.acquire("door", { note: "n" });
  const { holder } = await inspect(redlock, "door");
  expect(await listed()).toMatchObject({ held: [{ kind: "lock", name: "door", holder, note: "n" }] });
});

test("leaves out other prefixes, foreign data, and what nobody holds", async () => {
  await new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()), prefix: "redlock:eu" }).acquire(
    "a",
  );
  const lock = await redlock.acquire("gone", { fencing: true });
  await lock.release();
  for (const endpoint of local.endpoints) {
    await endpoint.execute(["HSET", "redlock:lock:{hash}", "f", "v"]);
    await endpoint.execute(["SET", "redlock:other", "v"]);
  }
  expect(await listed()).toMatchObject({ code: 3, held: [] });
  expect(await listed("--prefix redlock:eu")).toMatchObject({ held: [{ name: "a" }] });
  // In a pattern, * stands for anything.
  expect(await listed("--prefix redlock*")).toMatchObject({ code: 3, held: [] });
});

// The embedded engine walks over all keys in one step.
test.skipIf(!redisServer)("ends at its limit, and says that there may be more", async () => {
  await using real = await openRealEndpoints(1);
  const [endpoint] = real.endpoints;
  await new Redlock({ ...patient, endpoints: endpointsFromEnv(real.env()) }).acquire("one");
  await endpoint!.execute([
    "MSET",
    ...Array.from({ length: 3_000 }, (_, index) => [`other:${index}`, "v"]).flat(),
  ]);
  const all = await listed("", real);
  expect([all.complete, all.held.length]).toEqual([true, 1]);
  const part = await listed("--limit 2000", real);
  expect(part.complete).toBe(false);
  const { lines } = await run(real, "list --limit 2000");
  expect(lines.join("\n")).toContain("there may be more");
});
