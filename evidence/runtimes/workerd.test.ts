import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../test/support/until.ts";
import { cases, streamsOf } from "./cases.ts";
import { type OpenStage, openStage } from "./stage.ts";

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("worker.ts", import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    platform: "neutral",
  });
  return outputFiles[0]!.text;
}

const script = await bundle();

// The library imports no module that the flag adds: what it changes in globals is tried by night.
const flags = process.env.FULL === "true" ? [[], ["nodejs_compat"]] : [[]];

describe.each(flags.map((each) => [each] as const))("workerd with the flags %j", (compatibilityFlags) => {
  let open: OpenStage;
  let worker: Miniflare;
  beforeAll(async () => {
    open = await openStage();
    worker = new Miniflare({
      modules: true,
      script,
      compatibilityDate: "2026-04-01",
      compatibilityFlags,
    });
    await worker.ready;
  });
  afterAll(async () => {
    await worker.dispose();
    await open.close();
  });

  test("is where this runs", async () => {
    const response = await worker.dispatchFetch("http://worker/");
    expect(await response.json()).toEqual({
      userAgent: "Cloudflare-Workers",
      hasProcess: compatibilityFlags.length > 0,
      titles: Object.keys(cases),
    });
  });

  test("needs no module of the platform's", () => {
    expect(script).not.toMatch(/\bfrom\s*["'](node|cloudflare):|\bimport\(["'](node|cloudflare):/);
  });

  /** What becomes of a case. */
  const ask = async (title: string, stage: OpenStage["stage"] = open.stage) => {
    const body = JSON.stringify({ title, stage });
    return (await worker.dispatchFetch("http://worker/", { method: "POST", body })).text();
  };

  test.each(Object.keys(cases))("%s", async (title) => expect(await ask(title)).toBe("passed"));

  test("50 requests at once use one client", async () => {
    const stage = { ...open.stage, healthy: open.stage.healthy.slice(0, 1) };
    const asked = () => ask("locks of requests that come at the same time", stage);
    expect(await Promise.all(Array.from({ length: 50 }, asked))).toEqual(Array(50).fill("passed"));
  });

  test("requests that wait with one client have a stream each", async () => {
    const answers = Array.from({ length: 4 }, () => ask("a client that several requests have"));
    const streams = () => streamsOf(open.stage.healthy[0]!, ["common"]);
    await until(async () => (await streams()) === 3, "three streams");
    expect(await Promise.all(answers)).toEqual(Array(4).fill("passed"));
    expect(await streams()).toBe(0);
  });
});
