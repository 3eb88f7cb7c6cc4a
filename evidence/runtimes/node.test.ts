import process from "node:process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cases } from "./cases.ts";
import { type OpenStage, openStage } from "./stage.ts";

describe("Node", () => {
  let open: OpenStage;
  beforeAll(async () => {
    open = await openStage();
  });
  afterAll(() => open.close());

  test("is where this runs", () => {
    expect(process.versions.node).toMatch(/^\d+\./);
    expect("Deno" in globalThis || "Bun" in globalThis || "WebSocketPair" in globalThis).toBe(false);
  });

  test.each(Object.keys(cases))("%s", async (title) => {
    const work: Promise<unknown>[] = [];
    /** As on a platform: waitUntil throws when it is called unbound. */
    class Context {
      readonly #work = work;
      waitUntil(promise: Promise<unknown>): void {
        this.#work.push(promise);
      }
    }
    await cases[title]!({ ...open.stage, context: new Context() });
    await Promise.all(work);
  });
});
