import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { TimelineEvent } from "../../picture/timeline.ts";
import { type Preset, presets } from "../../playground/presets.ts";
import { Stage } from "../../playground/stage.ts";

// The playground's scenes, without its page: what they are to show happens.

async function play(preset: Preset, fencing = preset.fencing) {
  const events: TimelineEvent[] = [];
  const network = { latency: 40, loss: 0 };
  const stage = new Stage(
    { ...preset, fencing },
    { network, seed: 3, onEvent: (event) => events.push(event) },
  );
  const end = preset.play(stage).then(() => "over");
  const { time } = stage.world;
  // The platform checks signatures in its own time.
  const settle = preset.kind === "webhook" ? 5 : 0;
  while (time.elapsed < preset.lasts) {
    await time.advance(50);
    if (settle > 0) await sleep(settle);
  }
  expect(await Promise.race([end, "under way"])).toBe("over");
  return { stage, events, sentence: preset.outcome(stage) };
}

const of = (events: readonly TimelineEvent[], phase: string) =>
  events.filter((event) => event.phase === phase);
const [evenSplit, expired, lateWriter, webhook] = presets as [Preset, Preset, Preset, Preset];

test("an even split: each gets one endpoint, none a lock, and one gets it later", async () => {
  const { stage, events } = await play(evenSplit);
  const first = of(events, "executed").slice(0, 9);
  for (const { name } of stage.world.clients) {
    const granted = first.filter(({ client, outcome }) => client === name && outcome === "granted");
    expect(granted).toHaveLength(1);
  }
  expect(stage.holds).toBe(1);
  expect(of(events, "valid")).toHaveLength(1);
});

test("expired on arrival: all endpoints grant it, and it is not acquired", async () => {
  const { stage, events, sentence } = await play(expired);
  const granted = of(events, "executed").filter(
    ({ operation, outcome }) => operation === "acquire" && outcome === "granted",
  );
  expect(granted).toHaveLength(3);
  expect(stage.holds).toBe(0);
  expect(sentence).toMatch(/^Three endpoints granted it/);
  for (const endpoint of stage.world.endpoints) expect(stage.world.stored(endpoint).size).toBe(0);
});

test("a late writer is refused for its fence", async () => {
  const { stage, events, sentence } = await play(lateWriter);
  expect(stage.ledger.entries.map(({ by }) => by)).toEqual(["Bob"]);
  expect(of(events, "violated")).toEqual([]);
  expect(sentence).toMatch(/was refused/);
});

test("without a fence nothing stops it, and the picture says so", async () => {
  const { stage, events, sentence } = await play(lateWriter, false);
  expect(stage.ledger.entries.map(({ by }) => by)).toEqual(["Bob", "Ann"]);
  expect(of(events, "violated").map(({ name }) => name)).toEqual(["late write"]);
  expect(sentence).toMatch(/overwrote/);
});

test("a webhook that is delivered six times charges once", async () => {
  const { stage, sentence } = await play(webhook);
  expect(sentence).toBe("6 deliveries, 1 charge.");
  expect(stage.shop.deliveries.map(({ status }) => status)).toEqual(Array(6).fill(200));
  expect(stage.shop.deliveries.filter(({ isReplayed }) => isReplayed)).toHaveLength(5);
});

test("a forged delivery acts never", async () => {
  const network = { latency: 40, loss: 0 };
  const stage = new Stage(webhook, { network, seed: 1, onEvent: () => undefined });
  const { status } = await stage.shop.deliver(stage.shop.newId(), stage.world.clients[0]!, {
    isForged: true,
  });
  expect([status, stage.shop.charges.size]).toEqual([401, 0]);
});
