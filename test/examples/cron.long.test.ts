import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { keyOf } from "../../src/redis/keys.ts";
import { latch, startGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { bundleForNode, importInNode } from "./bundle.ts";
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

  it("runs on one of three replicas that acquired one endpoint each", async () => {
    const printed = vi.spyOn(console, "log").mockReturnValue();
    onTestFinished(() => printed.mockRestore());
    const service = await openService();
    onTestFinished(() => service.close());
    const split = latch();
    const replicas: Promise<unknown>[] = [];
    for (const near of [0, 1, 2]) {
      const gateways = await Promise.all(stage.local.endpoints.map(startGateway));
      onTestFinished(async () => void (await Promise.all(gateways.map((gateway) => gateway.close()))));
      // Requests to the other two endpoints arrive only after each replica has acquired the one near it.
      for (const far of gateways.filter((_, index) => index !== near)) far.before = () => split.opened;
      const env = gateways.flatMap(({ url }, index) => [
        [`UPSTASH_REDIS_REST_URL_${index + 1}`, url],
        [`UPSTASH_REDIS_REST_TOKEN_${index + 1}`, stage.local.endpoints[index]!.token],
      ]);
      replicas.push(
        importInNode("cron/interval.mjs", { ...Object.fromEntries(env), REPORTS_URL: service.url }),
      );
      await until(() => gateways[near]!.executed.length > 0, "the first part");
    }
    split.open();
    await Promise.all(replicas);
    const lines = printed.mock.calls.map(([line]) => String(line));
    expect(lines).toHaveLength(3);
    expect(lines.filter((line) => line.includes("the job ran here"))).toHaveLength(1);
    expect(service.calls).toHaveLength(1);
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

  it("is free a ttl after a crash, and the next fence is larger", async () => {
    const { service, start } = await open();
    const crashed = start();
    const first = await service.next();
    crashed.kill("SIGKILL");
    expect(await crashed.ended).toBe("SIGKILL");
    const ttls = (await stage.each("PTTL", name)) as number[];
    expect(Math.max(...ttls)).toBeLessThanOrEqual(10_000);
    // The others may start slowly.
    await stage.each("PEXPIRE", name, 600_000);
    const early = start();
    await early.ended;
    expect(early.output()).toContain("leaves it to another");
    expect(await stage.each("PEXPIRE", name, 1)).toContain(1);
    const next = start();
    const again = await service.next();
    expect(Number(again.headers["x-fence"])).toBeGreaterThan(Number(first.headers["x-fence"]));
    next.kill("SIGKILL");
  });
});
