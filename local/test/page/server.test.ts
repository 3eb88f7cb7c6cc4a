import { once } from "node:events";
import { connect } from "node:net";
import process from "node:process";
import { afterEach, describe, expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { gate } from "../../../test/support/link.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../src/index.ts";
import { type DevPage, openPage } from "../../src/page/server.ts";
import type { PageState } from "../../src/page/state.ts";

let closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  closers = [];
});

interface Stand {
  readonly local: LocalEndpoints;
  readonly first: LocalEndpoint;
  readonly page: DevPage;
  readonly redlock: Redlock;
  ask(path: string, init?: RequestInit): Promise<Response>;
  state(): Promise<PageState>;
}

async function open(engine: "redis" | "embedded", count = 3): Promise<Stand> {
  const local = await start({ engine, count });
  closers.push(() => local.close());
  const script = async () => "script();\n//# sourceMappingURL=page.js.map\n";
  const page = await openPage(local, { script });
  closers.push(() => page.close());
  const [first] = local.endpoints as [LocalEndpoint];
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, page.url), { headers: { authorization: `Bearer ${first.token}` }, ...init });
  return {
    local,
    first,
    page,
    redlock: new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) }),
    ask,
    state: async () => (await ask("/api/state")).json() as Promise<PageState>,
  };
}

/** Asks for states until one fulfils a condition. */
const finder = (stand: Stand) => (condition: (state: PageState) => boolean) =>
  until(async () => {
    const state = await stand.state();
    return condition(state) ? state : undefined;
  }, "a state of the page");

describe.each(engines)("the page of endpoints on %s", (engine) => {
  test("shows what is held as inspect does, without a request, and how it ends", async () => {
    const stand = await open(engine);
    const { local, redlock } = stand;
    const find = finder(stand);
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
    expect(row).toMatchObject({
      kind: "lock",
      held: true,
      resource: "invoice:{42}",
      holder,
      fence: lock.fence,
    });
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

  test("shows idempotency records, and finds what others have stored", async () => {
    const stand = await open(engine, 1);
    const { redlock, first } = stand;
    // Not over HTTP, and among many keys: only a walk finds it.
    for (let index = 0; index < 300; index++) await first.execute(["SET", `other:${index}`, "x"]);
    await first.execute(["SET", "my:lock:{quiet}", "somebody", "PX", 60_000]);
    const find = finder(stand);
    const state = await find(({ locks }) => locks.length === 1);
    expect(state.locks[0]).toMatchObject({ resource: "quiet", held: true });
    expect(state.requests).toEqual([]);
    // The page may see the record before the handler begins.
    const end = gate();
    const run = new Idempotency(redlock).run("evt", () => end.passed);
    const pending = await find(({ records }) => records[0]?.state === "pending");
    expect(pending.records[0]?.key).toMatch(/^key [0-9a-f]{12}$/);
    end.open();
    await run;
    const done = await find(({ records }) => records[0]?.state === "complete");
    expect(done.records).toHaveLength(1);
    await first.execute(["DEL", "my:lock:{quiet}"]);
    await find(({ locks }) => locks.length === 0);
    await stand.ask("/", { method: "GET" });
    await fetch(first.url, {
      method: "POST",
      headers: { authorization: `Bearer ${first.token}` },
      body: JSON.stringify(["FLUSHALL"]),
    });
    await find(({ records }) => records.length === 0);
  });

  test("shows who holds many locks that one client acquires at once, and a key that may be dead", async () => {
    const stand = await open(engine);
    const find = finder(stand);
    const names = Array.from({ length: 12 }, (_, index) => `job:${index}`);
    await Promise.all(names.map((name) => stand.redlock.acquire(name, { ttl: 60_000 })));
    const client = `node ${process.pid}`;
    await find(({ locks }) => locks.filter((lock) => lock.held && lock.client === client).length === 12);
    const idempotency = new Idempotency(stand.redlock, { maxAttempts: 2, maxHold: 0 });
    void idempotency.run("evt", () => new Promise<never>(() => undefined)).catch(() => undefined);
    const begun = await find(({ records }) => records[0]?.attempts === 1);
    expect(begun.records).toMatchObject([{ state: "pending" }]);
    for (const endpoint of stand.local.endpoints) {
      const records = (await endpoint.execute(["KEYS", "redlock:idem:*"])) as string[];
      for (const name of records) await endpoint.execute(["DEL", name]);
    }
    const ended = await find(({ records }) => records[0]?.state === "unfinished");
    expect(ended.records).toMatchObject([{ attempts: 1, key: begun.records[0]!.key }]);
    expect(ended.requests.map(({ operation }) => operation)).toContain("count");
  });

  test("stops and starts an endpoint, with its data and without", async () => {
    const stand = await open(engine);
    const { redlock, ask, first } = stand;
    const find = finder(stand);
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
    const stand = await open("embedded");
    const { redlock, ask, first } = stand;
    const find = finder(stand);
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

  test("gives the files to everybody on this machine, and nothing else without the full token", async () => {
    const { ask, first, page } = await open("embedded", 1);
    const index = await fetch(page.url);
    expect(await index.text()).toContain('<script type="module" src="/page.js">');
    expect(index.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; script-src 'self'; style-src/,
    );
    expect(index.headers.get("content-security-policy")).not.toContain("unsafe");
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
    const port = Number(new URL(page.url).port);
    const statusFor = async (host: string, target = "/api/state") => {
      const socket = connect(port, "127.0.0.1");
      socket.write(
        `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${first.token}\r\nconnection: close\r\n\r\n`,
      );
      const [data] = (await once(socket, "data")) as [Buffer];
      socket.destroy();
      return Number(data.toString().split(" ")[1]);
    };
    for (const host of [`127.0.0.1:${port}`, "localhost", `[::1]:${port}`])
      expect(await statusFor(host)).toBe(200);
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "127.evil.example",
      "localhost.evil.example",
    ]) {
      expect([host, await statusFor(host), await statusFor(host, "/")]).toEqual([host, 403, 403]);
    }
  });
});
