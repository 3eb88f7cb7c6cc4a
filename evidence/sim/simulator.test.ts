import { expect, test } from "vitest";
import { garbledReplies } from "./network/http-link.ts";
import { expectAllHold, missingIn, shares } from "./reports.ts";
import { simulate } from "./simulate.ts";
import { invariants } from "./world/invariants.ts";
import { faultKinds } from "./world/scenario.ts";
import { checkedName } from "./world/world.ts";

// A fixed set of seeds of `node evidence/sim.mjs`. simulator.long.test.ts and simulator.full.test.ts simulate more.

const last = 40;

test(`seeds 1 to ${last}: every invariant holds, and what is expected occurs`, {
  timeout: 120_000,
}, async () => {
  const all = await expectAllHold(1, last);
  expect(missingIn(all)).toEqual([]);
});

// The others hardly show how long a call takes that some servers do not answer.
test("seeds of slow and silent servers: every invariant holds", { timeout: 60_000 }, async () => {
  await expectAllHold(1, 8, "servers");
});

test("every fault must occur, and every invariant must be checked", () => {
  const checks = (Object.keys(invariants) as (keyof typeof invariants)[]).map(checkedName);
  expect(Object.keys(shares)).toEqual(expect.arrayContaining([...faultKinds, ...garbledReplies, ...checks]));
});

test("the same seed gives the same simulation, byte for byte", { timeout: 60_000 }, async () => {
  for (const seed of [1, 17, 26]) {
    const options = { seed, traced: true };
    const [one, two] = [await simulate(options), await simulate(options)].map(({ lines }) =>
      lines.join("\n"),
    );
    expect(one!.length).toBeGreaterThan(1_000);
    expect(two, `node evidence/sim.mjs --seed ${seed} --trace`).toBe(one);
  }
});
