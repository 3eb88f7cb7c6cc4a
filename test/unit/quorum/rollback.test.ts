import { describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import type { EndpointCall } from "../../../src/endpoints/endpoint-call.ts";
import { EndpointError } from "../../../src/errors.ts";
import { type LockOptions, resolveSettings } from "../../../src/lock/options.ts";
import { rollback } from "../../../src/quorum/rollback.ts";
import { runRound } from "../../../src/quorum/round.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import { type Gate, gate } from "../../support/link.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

type Reply = Answer["outcome"] | EndpointError;

const network = new EndpointError("x", "network", "reset");

/** An acquire round on three endpoints whose answers the test gives, and the releases sent afterwards. */
function rig(options: LockOptions = {}, { heedsSignal = false, cutsShort = false } = {}) {
  const runtime = steppingRuntime();
  const names = ["a", "b", "c"];
  const endpoints: Endpoint[] = names.map((name) => ({
    name,
    dialect: "redis",
    send: () => Promise.reject(new Error("not used")),
  }));
  const settings = resolveSettings({ endpoints, runtime }, { timeout: 100, ...options });
  const replies = new Map<string, Gate<Reply>>(names.map((name) => [name, gate<Reply>()]));
  const perform = async ({ endpoint, signal }: EndpointCall): Promise<Answer> => {
    // Without an answer a request ends with its signal.
    const ended = new Promise<Reply>((resolve) => {
      signal.onAbort(() => heedsSignal && resolve(network));
    });
    const reply = await Promise.race([replies.get(endpoint.name)!.passed, ended]);
    if (reply instanceof EndpointError) throw reply;
    return { outcome: reply };
  };
  const acquiring = runRound(settings, perform, { cutsShort });
  const released: string[] = [];
  const release = async ({ endpoint }: { endpoint: Endpoint }): Promise<Answer> => {
    released.push(endpoint.name);
    return { outcome: "granted" };
  };
  const answer = (name: string, reply: Reply) => replies.get(name)!.open(reply);
  return { runtime, settings, acquiring, released, release, answer };
}

describe("rollback", () => {
  type Answers = Readonly<Record<string, readonly [ms: number, reply: Reply]>>;

  /** To whom releases are sent and when, after requests that are answered at these times; the result begins it. */
  async function releasesOf(
    answers: Answers,
    options: Parameters<typeof rig>[1] & { goesOnUntil?: number } = {},
  ) {
    const { goesOnUntil = 0, ...link } = options;
    const { runtime, settings, acquiring, released, release, answer } = rig({}, link);
    const caller = { isWaiting: () => runtime.elapsed < goesOnUntil, keep: () => undefined };
    void acquiring.result.then(() => rollback({ ...settings, caller }, acquiring, release));
    const sent: Record<number, string> = {};
    for (let ms = 0; ms <= 1_000; ms += 1) {
      for (const [name, [at, reply]] of Object.entries(answers)) if (at === ms) answer(name, reply);
      await runtime.advance(0);
      if (released.length > 0) sent[ms] = released.splice(0).sort().join("");
      await runtime.advance(1);
    }
    expect(runtime.pending).toBe(0);
    return sent;
  }
  const [granted, held] = ["granted", "held"] as const;
  const refused: Answers = { a: [0, held], b: [0, held] };
  const partial: Answers = { a: [0, granted], b: [0, granted] };

  test.each<[what: string, Answers, object, options?: Parameters<typeof releasesOf>[1]]>([
    [
      "at once where granted, not where refused",
      { a: [0, granted], b: [0, held], c: [0, "lost"] },
      { 0: "a" },
    ],
    // So that it does not overtake the request.
    ["after an answer that comes soon", { ...partial, c: [20, granted] }, { 0: "ab", 20: "c" }],
    ["not where that is a refusal", { ...partial, c: [20, held] }, { 0: "ab" }],
    [
      "at a quarter of the timeout, and after a late grant",
      { ...refused, c: [525, granted] },
      { 25: "c", 525: "c" },
    ],
    ["not again after a late refusal", { ...refused, c: [30, held] }, { 25: "c" }],
    ["not again after a late loss", { ...refused, c: [30, "lost"] }, { 25: "c" }],
    // Unanswered when the first rollback was sent: it may have been executed after it.
    ["again after a late failure", { ...refused, c: [30, network] }, { 25: "c", 30: "c" }],
    [
      "again when an unanswered request ends with its timeout",
      { a: [0, held], b: [0, granted] },
      { 50: "b", 75: "c", 100: "c" },
      { heedsSignal: true, cutsShort: true },
    ],
    [
      "later where the endpoint ignores its timeout while the caller goes on, and again after its answer",
      { ...refused, c: [199, granted] },
      { 125: "c", 199: "c" },
      { goesOnUntil: 1_000 },
    ],
    ["at a quarter where its caller goes on no longer", refused, { 25: "c" }, { goesOnUntil: 24 }],
    [
      "at the timeout, and again where a request is granted later",
      { a: [110, granted], b: [110, held], c: [110, network] },
      { 100: "abc", 110: "a" },
    ],
    ["once where requests have failed", { a: [0, network], b: [0, network], c: [0, network] }, { 0: "abc" }],
  ])("is sent %s", async (_, answers, expected, options) => {
    expect(await releasesOf(answers, options)).toEqual(expected);
  });

  test("releases again only after the first release has ended, whose answer counts", async () => {
    const { runtime, settings, acquiring, answer } = rig();
    answer("a", "granted");
    answer("b", "granted");
    await acquiring.result;
    let isHeld = false;
    const ends = [gate(), gate()];
    let started = 0;
    // On c: executed when the request for it is delivered, and that may be in any order.
    const release = async ({ endpoint }: EndpointCall): Promise<Answer> => {
      if (endpoint.name !== "c") return { outcome: "lost" };
      await ends[started++]!.passed;
      const outcome = isHeld ? "granted" : "lost";
      isHeld = false;
      return { outcome };
    };
    const round = rollback(settings, acquiring, release, { everywhere: true });
    await runtime.advance(30);
    isHeld = true;
    answer("c", "granted");
    await runtime.advance(0);
    // A second one, if there is any, would overtake the first.
    ends[1]!.open();
    await runtime.advance(0);
    ends[0]!.open();
    await round.done;
    expect(round.votes().map(({ outcome }) => outcome)).toEqual(["lost", "lost", "granted"]);
    await runtime.advance(1_000);
    expect(started).toBe(2);
  });

  test.each([false, true])(
    "sends nothing for what was never sent, unless its holder releases it: %s",
    async (everywhere) => {
      const { settings, released, release, runtime } = rig();
      const acquiring = runRound(settings, queued());
      await runtime.advance(100);
      const round = rollback(settings, acquiring, release, { everywhere });
      await round.done;
      expect(released).toEqual(everywhere ? ["a", "b", "c"] : []);
      const outcome = everywhere ? "granted" : "lost";
      expect(round.votes().map((vote) => vote.outcome)).toEqual([outcome, outcome, outcome]);
    },
  );

  test("is sent later where it had no room within the timeout", async () => {
    const { runtime, settings, acquiring, answer } = rig();
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await acquiring.done;
    const [first, second] = [gate<undefined>(), gate<undefined>()];
    const rooms = [first, second];
    const asked: string[] = [];
    const done = rollback(settings, acquiring, async (call) => {
      asked.push(call.endpoint.name);
      const room = call.endpoint.name === "a" ? rooms.shift() : undefined;
      if (room) await queued(room.passed)(call);
      return { outcome: "granted" };
    }).done;
    for (const room of [first, second]) {
      await runtime.advance(100);
      room.open(undefined);
      await runtime.advance(0);
    }
    await done;
    expect(asked).toEqual(["a", "b", "c", "a", "a"]);
  });

  test("is sent again where its late answer shows that nothing was executed, and what failed otherwise once", async () => {
    const { runtime, settings, acquiring, answer } = rig();
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await acquiring.done;
    const late = gate<undefined>();
    const asked: string[] = [];
    const done = rollback(settings, acquiring, async (call) => {
      const { name } = call.endpoint;
      asked.push(name);
      call.mayBeExecuted = 1;
      if (asked.length <= 3) await late.passed;
      if (name === "a") call.mayBeExecuted = 0;
      if (name !== "a" || asked.length <= 3) throw network;
      return { outcome: "granted" };
    }).done;
    await runtime.advance(100);
    await done;
    expect(asked).toEqual(["a", "b", "c"]);
    late.open(undefined);
    await runtime.advance(0);
    expect(asked.slice(3).sort()).toEqual(["a", "b", "c"]);
    await runtime.advance(5_000);
    expect(asked).toHaveLength(6);
  });

  test("that fails fast before anything was sent is not sent on and on", async () => {
    const { runtime, settings, acquiring } = rig();
    await runtime.advance(100);
    let asked = 0;
    const offline = async (call: EndpointCall) => {
      asked += 1;
      call.mayBeExecuted = 0;
      throw network;
    };
    await rollback(settings, acquiring, offline).done;
    await runtime.advance(5_000);
    expect(asked).toBe(3);
  });

  test("that fails fast follows once more when its timeout is over", async () => {
    const { runtime, settings, acquiring, answer } = rig();
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await acquiring.done;
    let asked = 0;
    const refuse = async () => {
      asked += 1;
      throw network;
    };
    await rollback(settings, acquiring, refuse).done;
    await runtime.advance(99);
    expect(asked).toBe(3);
    await runtime.advance(1);
    expect(asked).toBe(6);
    await runtime.advance(5_000);
    expect(asked).toBe(6);
  });

  test("is sent once more as a whole where a part of it had no room", async () => {
    const { runtime, settings, acquiring, answer } = rig();
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await acquiring.done;
    const room = gate<undefined>();
    const asked: string[] = [];
    rollback(settings, acquiring, async (call) => {
      asked.push(call.endpoint.name);
      if (asked.length > 1) return { outcome: "granted" };
      // Of two commands, one was sent.
      call.mayBeExecuted = 1;
      call.waiting = 1;
      await room.passed;
      throw new EndpointError("a", "timeout", "not sent in time");
    });
    await runtime.advance(100);
    room.open(undefined);
    await runtime.advance(0);
    expect(asked).toEqual(["a", "b", "c", "a"]);
  });
});

/** A request that waits to be sent, and fails once there is room: its caller waits no longer. */
function queued(room: Promise<unknown> = new Promise(() => undefined)) {
  return async (call: EndpointCall): Promise<never> => {
    call.mayBeExecuted = 0;
    call.waiting = 1;
    await room;
    throw new EndpointError(call.endpoint.name, "timeout", "not sent in time");
  };
}
