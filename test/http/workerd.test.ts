import { Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { bundle } from "../../tools/bundle.mjs";
import { freshKey } from "../support/fresh-key.ts";

const script = await bundle("test/http/worker.ts");

// evidence/runtimes and test/examples have runs, replays and locks there; here is what workerd has of its own.

describe("in workerd, without nodejs_compat", () => {
  let local: LocalEndpoints;
  let worker: Miniflare;
  beforeAll(async () => {
    local = await start({ count: 3, engine: "embedded" });
    worker = new Miniflare({
      modules: true,
      script,
      compatibilityDate: "2026-04-01",
      compatibilityFlags: ["enable_request_signal"],
      bindings: local.env(),
    });
    await worker.ready;
  });
  afterAll(async () => {
    await worker.dispose();
    await local.close();
  });

  type Init = NonNullable<Parameters<Miniflare["dispatchFetch"]>[1]>;
  const post = (path: string, init: Init) =>
    worker.dispatchFetch(`http://worker${path}`, { method: "POST", ...init });

  test.each(["/hono", "/plain"])("%s: the handler's request has what the platform's has", async (path) => {
    const init = { headers: { "idempotency-key": freshKey() }, body: "x", cf: { colo: "VIE" } };
    expect((await post(path, init as Init)).headers.get("x-request")).toBe("VIE manual");
  });

  test("a client that hangs up: the run goes on, and its result is there for the retry", async () => {
    const headers = { "idempotency-key": freshKey() };
    const connection = new AbortController();
    const url = new URL("/gone", await worker.ready);
    const before = local.endpoints[0]!.log.requests;
    const first = fetch(url, { method: "POST", headers, body: "x", signal: connection.signal });
    // Begun, and with the handler under way.
    await expect.poll(() => local.endpoints[0]!.log.requests).toBeGreaterThan(before);
    connection.abort();
    await expect(first).rejects.toThrow();
    const retry = async () => {
      const response = await fetch(url, { method: "POST", headers, body: "x" });
      return [response.status, response.headers.get("idempotent-replayed"), await response.text()];
    };
    await expect.poll(retry).toEqual([201, "true", "x"]);
  });
});
