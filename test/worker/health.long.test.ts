import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";

// Imported by a variable, so that the compiler does not follow: it needs workerd's types, which conflict with Node's.
const file = "../../worker/health.ts";
const { checkHealth } = await import(file);

let local: LocalEndpoints;
let names: string[];
let now = Date.now();
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now });
  local = await start({ count: 3, engine: "embedded" });
  names = local.endpoints.map(({ url }) => new URL(url).host);
});
afterEach(async () => {
  // The next test must not get this one's result.
  now = Date.now() + 10_000;
  await local.close();
  vi.useRealTimers();
});

const databaseThat = (run: () => Promise<unknown>) => ({ prepare: () => ({ run }) });
const answers = databaseThat(() => Promise.resolve());
const check = (DB: unknown = answers) => checkHealth({ DB, ...local.env() });

describe("checkHealth", () => {
  it("is ok while a quorum and the database answer, and names the endpoint that does not", async () => {
    await local.endpoints[1]!.stop();
    expect(await check()).toEqual({
      ok: true,
      parts: [
        { name: names[0] },
        { name: names[1], problem: "network" },
        { name: names[2] },
        { name: "database" },
      ],
    });
  });

  it("is not ok without a quorum; an answer to a wrong token, or a late one, does not count", async () => {
    local.endpoints[0]!.faults.add({ fault: "drop-request" });
    local.endpoints[1]!.faults.add({ fault: "status", status: 401 });
    const { ok, parts } = await check();
    expect(ok).toBe(false);
    expect(parts.map(({ problem }: { problem?: string }) => problem)).toEqual([
      "timeout",
      "HTTP 401",
      undefined,
      undefined,
    ]);
  });

  it.each([
    ["no such table: effects", () => Promise.reject(new Error("no such table: effects"))],
    ["timeout", () => new Promise(() => undefined)],
  ])("is not ok when the database does not answer: %s", async (problem, run) => {
    const { ok, parts } = await check(databaseThat(run));
    expect([ok, parts.at(-1)]).toEqual([false, { name: "database", problem }]);
  });

  it("asks once in 10 s, however often it is called", async () => {
    await check();
    const requests = () => local.endpoints.map(({ log }) => log.requests);
    const before = requests();
    await Promise.all(Array.from({ length: 30 }, () => check()));
    vi.setSystemTime(Date.now() + 9_999);
    await check();
    expect(requests()).toEqual(before);
    vi.setSystemTime(Date.now() + 1);
    await Promise.all(Array.from({ length: 30 }, () => check()));
    expect(requests()).toEqual(before.map((count) => count + 1));
  });
});
