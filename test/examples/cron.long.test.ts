import { expect, it } from "vitest";
import { bundleForNode } from "./bundle.ts";
import { startNode } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

it("examples/cron/interval runs on one of three replicas that start at once, and on none that starts later", async () => {
  const example = await bundleForNode("cron/interval.mjs");
  const start = () => startNode([example], { ...at.local.env(), REPORTS_URL: at.service.url });
  const replicas = [start(), start(), start()];
  const codes = await Promise.all(replicas.map(({ ended }) => ended));
  expect(codes, replicas.map(({ output }) => output()).join()).toEqual([0, 0, 0]);
  const late = start();
  expect(await late.ended).toBe(0);
  const lines = [...replicas, late].map(({ output }) => output());
  expect(lines.filter((line) => line.includes("the job ran here"))).toHaveLength(1);
  expect(lines.filter((line) => line.includes("has begun already"))).toHaveLength(3);
  expect(at.service.calls.map(({ path }) => path)).toEqual([expect.stringMatching(/^\/daily\?fence=\d+$/)]);
});

it("examples/cron/long-job runs on one replica at a time", async () => {
  at.service.rule = ({ path }) => (path === "/pages/3" ? 404 : undefined);
  const example = await bundleForNode("cron/long-job.mjs");
  const start = () => startNode([example], { ...at.local.env(), INDEX_URL: at.service.url });
  const first = start();
  const page = await at.service.next();
  expect(Number(page.headers["x-fence"])).toBeGreaterThan(0);
  const other = start();
  expect(await other.ended).toBe(0);
  expect(other.output()).toContain("leaves it to another");
  page.answer(204, "");
  (await at.service.next()).answer(204, "");
  expect(await first.ended).toBe(0);
  expect(first.output()).toContain("indexed 2 pages");
  expect(at.service.calls.map(({ path }) => path)).toEqual(["/pages/1", "/pages/2", "/pages/3"]);
});
