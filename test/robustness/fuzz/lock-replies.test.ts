import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forceRelease, handoff, inspect, type Lock, Redlock, resume } from "../../../src/index.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { answers, type Distortion } from "./garbage.ts";
import { type Judged, operations } from "./lock-replies.ts";
import { expectNoSecret, expectTyped } from "./messages.ts";
import { type NetworkOptions, openNetwork } from "./network.ts";
import { seeded } from "./seeded.ts";

const owner = "0wner-5ecret-5ecret";

interface Scenario extends NetworkOptions {
  readonly fencing: boolean;
  readonly token: string | undefined;
  readonly resources: string | readonly string[];
  readonly wait: number;
  /** Whether someone else holds it when it is asked for. */
  readonly rival: boolean;
  readonly how: "acquire" | "tryAcquire" | "using";
  readonly steps: readonly ("extend" | "verify" | "inspect" | "resume" | "forceRelease" | "release")[];
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  dialect: fc.constantFrom("upstash", "redis"),
  transport: fc.constantFrom("http", "http", "sdk"),
  liars: fc.oneof(fc.tuple(answers), fc.tuple(answers, answers, answers)),
  fencing: fc.boolean(),
  token: fc.option(fc.constant(owner), { nil: undefined, freq: 1 }),
  resources: fc.constantFrom<string | string[]>("a", "a", ["a", "b"]),
  wait: fc.constantFrom(0, 1_500),
  rival: fc.boolean(),
  how: fc.constantFrom("acquire", "tryAcquire", "using"),
  steps: fc.array(fc.constantFrom("extend", "verify", "inspect", "resume", "forceRelease", "release"), {
    maxLength: 5,
  }),
});

const seen = { granted: 0, refused: 0, unclear: 0, steps: 0, failures: 0 };

/** Plays a scenario; every call is judged by what the endpoints said to it. */
async function play(given: Scenario): Promise<void> {
  const network = openNetwork(given);
  const { runtime, endpoints, exchanges, secrets } = network;
  if (given.token) secrets.add(given.token);
  const told: unknown[] = [];
  const redlock = new Redlock({
    endpoints,
    runtime,
    fencing: given.fencing,
    onEvent: (event) => told.push(event),
  });
  const { acquire, using, ...of } = operations(network, redlock, given.resources);
  const options = { wait: given.wait, ...(given.token && { token: given.token }) };

  async function judged({ call, judge }: Judged): Promise<unknown> {
    const from = exchanges.length;
    network.lying = true;
    const outcome = await runtime.settle(call);
    network.lying = false;
    if ("error" in outcome) told.push(outcome.error);
    judge(outcome, exchanges.slice(from));
    return outcome;
  }

  if (given.rival) await runtime.settle(() => redlock.acquire(given.resources));
  let lock: Lock | undefined;
  if (given.how === "using") await judged(using(options));
  else {
    const taking = acquire(options, given.how);
    const outcome = (await judged(taking)) as object;
    lock = taking.taken();
    seen[lock ? "granted" : "error" in outcome ? "unclear" : "refused"] += 1;
  }
  // What must hold of a lock is tried with an honest one where there is none.
  if (!lock) {
    for (const engine of network.engines) engine.flush();
    const honest = await runtime.settle(() => redlock.acquire(given.resources, options));
    if (!("value" in honest)) throw honest.error;
    lock = honest.value;
  }
  let held: Lock = lock;
  for (const step of given.steps) {
    if (step === "resume") {
      const handed = await runtime.settle(() => handoff(held));
      // What was lost cannot be handed over.
      if ("error" in handed) {
        expectTyped(handed.error, "LOCK_LOST");
        break;
      }
      held = resume(redlock, JSON.parse(JSON.stringify(handed.value)));
    }
    if (step === "resume" || step === "extend") await judged(of.extend(held));
    else await judged(of[step](held));
    seen.steps += 1;
    if (step === "release") break;
  }
  seen.failures += told.length;
  network.lying = true;
  await runtime.drain(20_000);
  expectNoSecret(told, secrets);
}

const native = globalThis.fetch;
afterAll(() => {
  globalThis.fetch = native;
});

/** A scenario in which one endpoint gives one answer, for a counterexample that shall be kept. */
function told(body: unknown, how: Partial<Scenario> = {}): [Scenario] {
  const answer: Distortion = { execute: true, kind: "body", status: 200, body: JSON.stringify(body) };
  return [
    {
      dialect: "redis",
      transport: "http",
      liars: [[answer]],
      fencing: true,
      token: undefined,
      resources: "a",
      wait: 0,
      rival: false,
      how: "acquire",
      steps: ["inspect"],
      ...how,
    },
  ];
}

describe("a lock of endpoints that answer anything", () => {
  forbidUnhandledRejections();
  beforeAll(() => {
    for (const name of Object.keys(seen)) seen[name as keyof typeof seen] = 0;
  });

  test("is never granted, extended or freed unless a quorum said so, and every failure is a typed one", async () => {
    await fc.assert(fc.asyncProperty(scenario, play), seeded(100, [...regressions]));
    // Otherwise it would have tried nothing.
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });
});

describe.each(["redis", "upstash"] as const)("a lock whose endpoint cuts off every reply (%s)", (dialect) => {
  forbidUnhandledRejections();

  test.each([
    ["plain", {}],
    ["fenced, an owner's", { fencing: true, token: owner }],
  ])("is nobody's, and nothing is known of it: %s", async (_, options) => {
    // By call: its longest reply so far. Cut behind the end of that, it is the same once more.
    const longest: Record<string, number> = {};
    for (let length = 0, more = true; more; length++) {
      const liars: Distortion[][] = [[{ execute: true, kind: "cut", length }]];
      const network = openNetwork({ dialect, transport: "http", liars });
      const { runtime, endpoints, exchanges } = network;
      const redlock = new Redlock({ endpoints, runtime, wait: 0 });
      const honest = await runtime.settle<Lock>(() => redlock.acquire("a", options));
      const { value: lock } = honest as { value: Lock };
      network.lying = true;
      const calls: Record<string, () => Promise<unknown>> = {
        acquire: () => redlock.acquire("b", options),
        tryAcquire: () => redlock.tryAcquire("b", options),
        using: () => redlock.using("b", options, () => 1),
        several: () => redlock.acquire(["b", "c"], options),
        refresh: () => redlock.acquire("a", options),
        extend: () => lock.extend(),
        verify: () => lock.verify(),
        inspect: () => inspect(redlock, "a"),
        forceRelease: () => forceRelease(redlock, "b"),
        release: () => lock.release(),
      };
      more = false;
      for (const [name, call] of Object.entries(calls)) {
        if (length >= (longest[name] ?? 1)) continue;
        more = true;
        const from = exchanges.length;
        const outcome = await runtime.settle(call);
        const bytes = exchanges.slice(from).map((exchange) => exchange.bytes);
        longest[name] = Math.max(longest[name] ?? 0, ...bytes);
        expect(outcome, `${name}, ${length} bytes`).toHaveProperty("error");
        expectTyped((outcome as { error: unknown }).error, "NO_QUORUM");
      }
    }
  });
});

/** Replies that were once taken for more than they say. */
const regressions: [Scenario][] = [];
regressions.push(told({ result: ["<value>", true] }));
regressions.push(told({ result: ["<value>", "0x10"] }));
regressions.push(told({ result: ["<value>", "<value>"] }));
regressions.push(told({ result: [0] }));
regressions.push(told({ result: ["OK", 0, null] }));
regressions.push(told({ result: ["", 0, "x"] }));
