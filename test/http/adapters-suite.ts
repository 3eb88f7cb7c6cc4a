import { beforeAll, describe, expect, test } from "vitest";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { combinationsOf, frameworks, observe, seen } from "./adapters-run.ts";
import { opened } from "./stand.ts";

/** Of one connection or message, or added for a replay. docs/frameworks.md says what is not replayed. */
const notReplayed = /^(connection|content-length|transfer-encoding|set-cookie|idempotent-.*)$/;
const replayed = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !notReplayed.test(name)));

/** Runs the combinations whose number is among those to run. */
export function testAdapters(isRun: (index: number) => boolean): void {
  const at = opened();
  beforeAll(forgetUndefinedModules);

  describe.each(Object.entries(frameworks))("%s", (_, framework) => {
    const combinations = combinationsOf(framework).filter((_, index) => isRun(index));
    test.each(combinations)("%s; %s; the client leaves: %s", async (...combination) => {
      const { outcome, differs, plain, guarded, retried, runs } = await observe(
        at.client,
        framework,
        combination,
      );
      const [before, after] = runs;
      const fails = outcome === "again" || outcome === "cut";
      if (guarded !== undefined && !differs) expect(guarded).toBe(outcome === "cut" ? "" : plain);
      expect(after).toBe(fails ? before + 1 : 1);
      // The client had left before its body was parsed.
      if (before === 0) return;
      const isReplayed = retried.headers["idempotent-replayed"] === "true";
      expect(isReplayed).toBe(!fails);
      if (fails) return expect(retried.body).toContain("second");
      const first = differs ? guarded : plain;
      // How much of a stream that breaks off has arrived is open.
      if (first === undefined || (differs && outcome === "omitted")) return;
      const { status, body, headers } = seen(first);
      expect([retried.status, retried.body]).toEqual([status, outcome === "omitted" ? "" : body]);
      if (outcome === "answer") expect(replayed(retried.headers)).toEqual(replayed(headers));
    });
  });
}
