import { beforeAll, describe, test } from "vitest";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { combinationsOf, frameworks, observe, verify } from "./adapters-run.ts";
import { opened } from "./stand.ts";

/** Runs the combinations whose number is among those to run. */
export function testAdapters(isRun: (index: number) => boolean): void {
  const at = opened();
  beforeAll(forgetUndefinedModules);

  describe.each(Object.entries(frameworks))("%s", (_, framework) => {
    const combinations = combinationsOf(framework).filter((_, index) => isRun(index));
    test.each(combinations)("%s; %s; the client leaves: %s", async (...combination) =>
      verify(await observe(at.client, framework, combination)),
    );
  });
}
