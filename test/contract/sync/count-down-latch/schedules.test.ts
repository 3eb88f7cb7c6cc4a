import { expect, test } from "vitest";
import { CountDownLatch } from "../../../../src/sync/index.ts";
import { eachSeed, type Schedule, schedule, type Way } from "../schedule.ts";

const count = 3;

const open: readonly Way[] = ["open", "open", "open"];

/** All ways are open but one. */
function without(index: number, way: Way): Way[] {
  return open.map((other, position) => (position === index ? way : other));
}

function latchOf({ client }: Schedule, ways: readonly Way[], wait = 60_000): CountDownLatch {
  return new CountDownLatch(client({ timeout: 300, wait, backoff: { min: 10, max: 100 } }, ways), "n", {
    count,
  });
}

/** Three clients, each cut off from another endpoint, arrive at the same moment. Returns how many found it open. */
async function openings(seed: number): Promise<number> {
  const stage = schedule(seed, 3);
  const { random, run } = stage;
  const arrivals = open.map(async (_, index) => {
    const ways = without(index, random() < 0.8 ? "cut" : "deaf");
    return (await latchOf(stage, ways).arrive(`part-${index}`)).open;
  });
  const found = await run(Promise.all(arrivals));
  await run(latchOf(stage, open).wait());
  return found.filter(Boolean).length;
}

/**
 * One of three arrives at a single endpoint only, and nobody repeats it; others ask, each cut off from some endpoint.
 * Returns what they found, in the order of the calls.
 */
async function statesOf(seed: number): Promise<boolean[]> {
  const stage = schedule(seed, 3);
  const { random, run } = stage;
  const any = () => without(Math.floor(random() * 3), random() < 0.5 ? "cut" : "deaf");
  const lone: Way[] = ["open", "cut", "cut"];
  await run(Promise.all(["a", "b"].map((id) => latchOf(stage, any()).arrive(id))));
  await run(
    latchOf(stage, lone, 0)
      .arrive("c")
      .catch(() => undefined),
  );
  const found: boolean[] = [];
  for (let calls = 0; calls < 6; calls += 1) found.push((await run(latchOf(stage, any()).inspect())).open);
  return found;
}

test("the last arrival returns that it is open", async () => {
  const seen = new Map<number, number>();
  const check = async (seed: number) => {
    const found = await openings(seed);
    expect(found, "calls that found it open").toBeGreaterThan(0);
    seen.set(found, (seen.get(found) ?? 0) + 1);
  };
  await eachSeed(40, check, () => seen.has(1) && seen.has(2));
  console.info(
    `schedules by the number of calls that found it open: ${JSON.stringify(Object.fromEntries(seen))}`,
  );
}, 120_000);

test("once open for one call it is open for all", async () => {
  const seen = new Set<number>();
  const check = async (seed: number) => {
    const found = await statesOf(seed);
    const since = found.indexOf(true);
    seen.add(since);
    if (since >= 0) expect(found.slice(since)).not.toContain(false);
  };
  // Open for the first call, and for a later one.
  await eachSeed(40, check, () => seen.has(0) && seen.has(1));
}, 120_000);
