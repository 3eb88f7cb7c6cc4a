import { once } from "node:events";
import { get } from "node:http";
import process from "node:process";
import { describe, expect, onTestFinished, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { FairLock, Mailbox, ReadWriteLock, ReentrantLock, Semaphore } from "../../../src/sync/index.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { gate } from "../../../test/support/link.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import { start } from "../../src/index.ts";
import { openPage } from "../../src/page/server.ts";
import type { PageState } from "../../src/page/state.ts";

async function open(engine: "redis" | "embedded", count = 3) {
  const local = await start({ engine, count });
  onTestFinished(() => local.close());
  const script = async () => "script();\n//# sourceMappingURL=page.js.map\n";
  const page = await openPage(local, { script });
  onTestFinished(() => page.close());
  const [first] = local.endpoints;
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, page.url), { headers: { authorization: `Bearer ${first.token}` }, ...init });
  /** Asks for states until one fulfils a condition. */
  const find = (condition: (state: PageState) => boolean) =>
    until(async () => {
      const state = (await (await ask("/api/state")).json()) as PageState;
      return condition(state) ? state : undefined;
    }, "a state of the page");
  const redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) });
  return { local, first, page, redlock, ask, find };
}

describe.each(engines)("the page of endpoints on %s", (engine) => {
  test("shows what is held as inspect does, without a request, and how it ends", async () => {
    const { local, redlock, find } = await open(engine);
    const lock = await redlock.acquire("invoice:{42}", { ttl: 30_000, fencing: true });
    const counts = () => local.endpoints.map(({ log }) => [log.requests, log.billed]);
    await find(({ locks }) => locks[0]?.shares.join() === "same,same,same");
    const before = counts();
    const { now } = await find(() => true);
    // Several looks, each of which reads the keys once more.
    const held = await find((state) => state.now - now > 200);
    expect(counts()).toEqual(before);
    expect(held.endpoints.map(({ requests, billed }) => [requests, billed])).toEqual(before);
    const { holder } = await inspect(redlock, "invoice:{42}");
    const [row] = held.locks;
    const shown = { kind: "lock", held: true, resource: "invoice:{42}", holder, fence: lock.fence };
    expect(row).toMatchObject(shown);
    expect(row!.until - held.now).toBeGreaterThan(20_000);
    expect(row!.until - held.now).toBeLessThanOrEqual(30_000);
    await find(({ locks }) => locks[0]?.client === `node ${process.pid}`);
    await lock.release();
    const state = await find(({ locks }) => locks.length === 0);
    await find(({ requests }) => {
      const rows = requests.map(({ operation, endpoints }) => `${operation} ${endpoints.length}`);
      return rows.join() === "release 3,peek 3,acquire 3";
    });
    expect(JSON.stringify(state)).not.toContain(lock.token);
  });

  test("finds what others have stored, and shows idempotency records, also one that may be dead", async () => {
    const { redlock, first, find } = await open(engine, 1);
    // Not over HTTP, and among many keys: only a walk finds it.
    for (let index = 0; index < 300; index++) await first.execute(["SET", `other:${index}`, "x"]);
    await first.execute(["SET", "my:lock:{quiet}", "somebody", "PX", 60_000]);
    const state = await find(({ locks }) => locks.length === 1);
    expect(state.locks[0]).toMatchObject({ resource: "quiet", held: true });
    expect(state.requests).toEqual([]);
    await first.execute(["DEL", "my:lock:{quiet}"]);
    await find(({ locks }) => locks.length === 0);
    const idempotency = new Idempotency(redlock, { maxAttempts: 2, maxHold: 0 });
    const end = gate();
    const run = idempotency.run("evt", () => end.passed);
    const isPending = ({ records: [record] }: PageState) =>
      record?.state === "pending" && record.attempts === 1;
    const { records } = await find(isPending);
    expect(records).toMatchObject([{ key: expect.stringMatching(/^key [0-9a-f]{12}$/) }]);
    end.open();
    await run;
    await find((found) => found.records[0]?.state === "complete");
    await first.execute(["FLUSHALL"]);
    await find((found) => found.records.length === 0);
    void idempotency.run("evt", () => new Promise<never>(() => undefined)).catch(() => undefined);
    await find(isPending);
    await first.execute(["DEL", ...((await first.execute(["KEYS", "redlock:idem:*"])) as string[])]);
    const dead = await find((found) => found.records[0]?.state === "unfinished");
    expect(dead.records).toMatchObject([{ attempts: 1, key: records[0]!.key }]);
    expect(dead.requests.map(({ operation }) => operation)).toContain("count");
  });

  test("shows who holds many locks that one client acquires at once", async () => {
    const { redlock, find } = await open(engine);
    const names = Array.from({ length: 12 }, (_, index) => `job:${index}`);
    await Promise.all(names.map((name) => redlock.acquire(name, { ttl: 60_000 })));
    const client = `node ${process.pid}`;
    await find(({ locks }) => locks.filter((lock) => lock.held && lock.client === client).length === 12);
  });

  test("stops and starts an endpoint, with its data and without", async () => {
    const { redlock, ask, first, find } = await open(engine);
    await redlock.acquire("a", { ttl: 60_000 });
    await find(({ locks }) => locks[0]?.shares.join() === "same,same,same");
    const post = async (action: string) =>
      (await ask(`/api/endpoints/1/${action}`, { method: "POST" })).json();
    expect(await post("stop")).toEqual({ result: false });
    const stopped = await find(({ locks }) => locks[0]?.shares.join() === "unknown,same,same");
    expect(stopped.endpoints[0]).toMatchObject({ status: "stopped", canForget: true });
    expect(stopped.locks[0]?.held).toBe(true);
    expect(first.running).toBe(false);
    expect(await post("start")).toEqual({ result: true });
    await find(({ locks }) => locks[0]?.shares.join() === "same,same,same");
    await post("stop");
    await post("start-empty");
    const empty = await find(({ locks }) => locks[0]?.shares.join() === "free,same,same");
    expect(empty.endpoints[0]?.status).toBe("up");
    expect((await ask("/api/endpoints/1/explode", { method: "POST" })).status).toBe(404);
  });
});

describe("the page's server", () => {
  test("records requests, and replaces faults", async () => {
    const { redlock, ask, first, find } = await open("embedded");
    const faults = async (body: unknown) =>
      (await ask("/api/endpoints/1/faults", { method: "POST", body: JSON.stringify(body) })).status;
    const rule = { fault: "drop-reply", command: "EVAL", reset: true };
    expect([await faults([rule]), first.faults.list()]).toEqual([200, [rule]]);
    await find(({ endpoints }) => endpoints[0]!.faults.length === 1);
    await redlock.acquire("a", { ttl: 60_000 });
    await find(({ requests }) => requests.some(({ result }) => result.endsWith("reply lost")));
    for (const wrong of [[{ fault: "down" }, { fault: "no such" }], { fault: "down" }]) {
      expect([await faults(wrong), first.faults.list()]).toEqual([400, [rule]]);
    }
    expect([await faults([]), first.faults.list()]).toEqual([200, []]);
    await find(({ endpoints }) => endpoints[0]!.faults.length === 0);
  });

  test("shows who holds each kind of lock, and its note, but no token", async () => {
    const { redlock, find } = await open("embedded", 1);
    const lock = await redlock.acquire("a", { note: "nightly\nreport" });
    await new Semaphore(redlock, "a", { limit: 1 }).acquire();
    await new FairLock(redlock, "a").acquire();
    await new ReadWriteLock(redlock, "a").acquireWrite();
    await new ReentrantLock(redlock, "a").acquire();
    void new Mailbox(redlock, "a").post({ id: "m", value: 1 }, () => new Promise(() => undefined));
    const state = await find(({ locks }) => locks.length === 6);
    const { holder } = await inspect(redlock, "a");
    const hash = expect.stringMatching(/^[0-9a-f]{12}$/);
    expect(Object.fromEntries(state.locks.map((row) => [row.kind, row.holder]))).toEqual({
      ...{ lock: holder, "semaphore slot 0": hash, "fair lock": hash, turn: hash },
      ...{ "read-write lock": "1 holder", "reentrant lock": "1 holder" },
    });
    expect(state.locks.map(({ note }) => note)).toContain("nightly\nreport");
    expect(JSON.stringify(state)).not.toContain(lock.token);
  });

  test("gives the files to everybody on this machine, and nothing else without the full token", async () => {
    const { ask, first, page } = await open("embedded", 1);
    const index = await fetch(page.url);
    expect(await index.text()).toContain('<script type="module" src="/page.js">');
    const policy = index.headers.get("content-security-policy");
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src/);
    expect(policy).not.toContain("unsafe");
    expect(await (await ask("/page.js")).text()).toBe("script();\n");
    expect((await ask("/page.css")).headers.get("content-type")).toContain("text/css");
    for (const path of ["/api/state", "/api/endpoints/1/faults", "/api/endpoints/1/stop", "/x"]) {
      const method = path.includes("endpoints") ? "POST" : "GET";
      for (const token of ["", "wrong", first.readOnlyToken]) {
        const response = await ask(path, { method, headers: { authorization: `Bearer ${token}` } });
        expect([path, response.status]).toEqual([path, 401]);
      }
    }
    expect(first.running).toBe(true);
    expect((await ask("/x")).status).toBe(404);
    expect((await ask("/", { method: "POST" })).status).toBe(404);
    expect(page.url).toBe(`${new URL(page.url).origin}/#token=${first.token}`);
  });

  test("refuses a request that names another host", async () => {
    const { first, page } = await open("embedded", 1);
    const { port } = new URL(page.url);
    const authorization = `Bearer ${first.token}`;
    const statusFor = async (host: string, path = "/api/state") => {
      const [response] = await once(get({ port, path, headers: { host, authorization } }), "response");
      return response.resume().statusCode;
    };
    for (const host of [`127.0.0.1:${port}`, "localhost", `[::1]:${port}`])
      expect(await statusFor(host)).toBe(200);
    for (const host of ["evil.example", `evil.example:${port}`, "127.evil.example"]) {
      expect([host, await statusFor(host), await statusFor(host, "/")]).toEqual([host, 403, 403]);
    }
  });
});
