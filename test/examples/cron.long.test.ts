import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { keyOf } from "../../src/redis/keys.ts";
import { until } from "../support/until.ts";
import { bundleForNode } from "./bundle.ts";
import { startNode } from "./node-process.ts";
import { openService, openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.local.close());
beforeEach(() => stage.each("FLUSHALL"));

describe("examples/cron/interval", () => {
  it("runs on one of three replicas that start at once, and on none that starts later", async () => {
    const service = await openService();
    onTestFinished(() => service.close());
    const example = await bundleForNode("cron/interval.mjs");
    const start = () => startNode([example], { ...stage.local.env(), REPORTS_URL: service.url });
    const replicas = [start(), start(), start()];
    expect(await Promise.all(replicas.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    const late = start();
    expect(await late.ended).toBe(0);
    const lines = [...replicas, late].map(({ output }) => output());
    expect(lines.filter((line) => line.includes("the job ran here"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("on another replica"))).toHaveLength(3);
    expect(service.calls).toHaveLength(1);
    expect(service.calls[0]!.path).toMatch(/^\/daily\?fence=\d+$/);
  });

  it("fails when it cannot know whether another replica runs it", async () => {
    const end = stage.outage();
    onTestFinished(end);
    const replica = startNode([await bundleForNode("cron/interval.mjs")], stage.local.env());
    expect(await replica.ended).toBe(1);
    expect(replica.output()).toContain("QuorumError");
  });
});

describe("examples/cron/long-job", () => {
  const name = keyOf("redlock", "lock", "reindex");

  async function open() {
    const service = await openService();
    onTestFinished(() => service.close());
    service.rule = ({ path }) => (path === "/pages/3" ? 404 : undefined);
    const example = await bundleForNode("cron/long-job.mjs");
    const start = () => startNode([example], { ...stage.local.env(), INDEX_URL: service.url });
    return { service, start };
  }

  it("runs on one replica at a time, and is free afterwards", async () => {
    const { service, start } = await open();
    const first = start();
    const page = await service.next();
    expect(Number(page.headers["x-fence"])).toBeGreaterThan(0);
    const others = [start(), start()];
    for (const other of others) {
      expect(await other.ended).toBe(0);
      expect(other.output()).toContain("leaves it to another");
    }
    page.answer(204, "");
    (await service.next()).answer(204, "");
    expect(await first.ended).toBe(0);
    expect(first.output()).toContain("indexed 2 pages");
    expect(service.calls.map(({ path }) => path)).toEqual(["/pages/1", "/pages/2", "/pages/3"]);
    expect(await stage.each("EXISTS", name)).toEqual([0, 0, 0]);
  });

  it("extends its lock beyond the ttl, and stops when the lock is lost", async () => {
    const { service, start } = await open();
    const replica = start();
    const page = await service.next();
    const ttls = async () => (await stage.each("PTTL", name)) as number[];
    // Half of the ttl passes. Then an extension restores it.
    await until(async () => Math.max(...(await ttls())) < 6_000, "the middle of the ttl");
    await until(async () => Math.min(...(await ttls())) > 6_000, "the extension");
    page.answer(204, "");
    const second = await service.next();
    await stage.each("DEL", name);
    expect(await replica.ended).toBe(1);
    expect(replica.output()).toContain("LockLostError");
    await until(() => second.aborted, "the request to be aborted");
    expect(service.calls).toHaveLength(2);
  });
});
