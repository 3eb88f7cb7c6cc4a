import { forgetKey, Idempotency, inspectKey, type KeyInspection } from "../../../src/idempotency/index.ts";
import { recordKeyOf } from "../checks/runs.ts";
import type { Actor } from "./actor.ts";
import { isOperator } from "./probers.ts";
import type { Workload } from "./workload.ts";

// What operators do with the keys of others: inspect them, and forget them.

/** A key, and ms for each request. */
interface Target {
  readonly key: string;
  readonly timeout: number;
}

/** Keys of others that are inspected and forgotten. */
export class ForgetWorkload implements Workload {
  async perform(actor: Actor): Promise<void> {
    const { draw, scenario, process } = actor;
    const timeout = Math.max(5, draw.pick([0.3, 1]) * Math.min(1_000, scenario.ttl));
    process.timeout = timeout;
    const counted = scenario.work.includes("attempts");
    const target = { key: draw.pick(counted ? ["d1", "d2"] : ["k1", "k2"]), timeout };
    if (draw.chance(0.5)) await forget(actor, target);
    else await look(actor, target);
  }

  /** A key that is forgotten runs again. If an endpoint is silent, forgetting fails, because that endpoint may keep a copy. */
  async probe(actor: Actor, bound: number): Promise<void> {
    if (!isOperator(actor)) return;
    const { world, process, calls, redlock, scenario } = actor;
    const target = { key: "forgotten", timeout: 1_000 };
    const idempotency = new Idempotency(redlock, { lease: 5_000, wait: bound });
    const run = async (value: string) => {
      const outcome = await calls.make(process, {
        what: `probe: run ${target.key}`,
        bound,
        run: () => idempotency.run(target.key, { scope: "sim" }, () => value),
      });
      return "value" in outcome ? outcome.value : undefined;
    };
    const first = await run("first");
    const state = (await look(actor, target))?.state;
    const isForgotten = await forget(actor, target);
    const second = await run("second");
    const said = `${first?.value}, ${state}, ${isForgotten}, ${second?.value}`;
    const expected = `first, complete, ${scenario.silentMinority ? undefined : true}, second`;
    world.check("what is forgotten is gone", said === expected, () => `${process.name}: ${said}`);
  }
}

/** Forgets a key. Undefined: an endpoint did not answer, or a run is under way. */
async function forget(actor: Actor, { key, timeout }: Target): Promise<boolean | undefined> {
  const { world, wire, process, calls, redlock } = actor;
  const asked = world.now;
  const outcome = await calls.make(process, {
    counted: "forget",
    what: `forget ${key}`,
    // It reads and removes, at most three times, and reads once more.
    bound: 8 * timeout,
    codes: ["IN_PROGRESS", "NO_QUORUM"],
    run: () => forgetKey(new Idempotency(redlock), key, { scope: "sim", timeout }),
  });
  if ("error" in outcome) return undefined;
  world.count(outcome.value ? "forgotten" : "forget: nothing there");
  // Each endpoint has shown a key without result and count; a run that began after the removal ends it as well.
  const looks = wire.looksSince(process, recordKeyOf(key), asked);
  const clean = looks.filter(({ text = "P1 ", counter }) => text.startsWith("P1 ") && counter === "");
  const isBusy = outcome.value && looks.some(({ text }) => text?.startsWith("P1 "));
  const at = new Set(clean.map(({ server }) => server)).size;
  const detail = () =>
    `${process.name}: ${key} is forgotten, ${at} endpoints have shown neither result nor count`;
  world.check("what is forgotten is gone", at === world.servers.length || isBusy, detail);
  return outcome.value;
}

/** Inspects a key. Undefined: too few endpoints answered. */
async function look(actor: Actor, { key, timeout }: Target): Promise<KeyInspection | undefined> {
  const { world, process, calls, redlock } = actor;
  const outcome = await calls.make(process, {
    counted: "inspect",
    what: `inspect ${key}`,
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => inspectKey(new Idempotency(redlock), key, { scope: "sim", timeout }),
  });
  if ("error" in outcome) return undefined;
  world.count(`inspected: ${outcome.value.state}`);
  return outcome.value;
}
