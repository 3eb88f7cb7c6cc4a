import { describe, expect, test } from "vitest";
import type { Call } from "../../../src/endpoints/call.ts";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError } from "../../../src/errors.ts";
import { type LockOptions, resolveSettings } from "../../../src/lock/options.ts";
import { rollback } from "../../../src/quorum/rollback.ts";
import { runRound, unlessAborted } from "../../../src/quorum/round.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import { type Gate, gate } from "../../support/link.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

type Reply = Answer["outcome"] | EndpointError;

const network = new EndpointError("x", "network", "reset");

/** A round of takes on three endpoints whose answers the test gives, and what is sent afterwards. */
function rig(options: LockOptions = {}, { obeys = false, cutsShort = false } = {}) {
  const runtime = steppingRuntime();
  const names = ["a", "b", "c"];
  const endpoints: Endpoint[] = names.map((name) => ({
    name,
    dialect: "redis",
    send: () => Promise.reject(new Error("not used")),
  }));
  const settings = resolveSettings({ endpoints, runtime }, { timeout: 100, ...options });
  const replies = new Map<string, Gate<Reply>>(names.map((name) => [name, gate<Reply>()]));
  const perform = async ({ endpoint, signal }: Call): Promise<Answer> => {
    // Without an answer a request ends with its signal.
    const ended = new Promise<Reply>((resolve) => {
      signal.addEventListener("abort", () => obeys && resolve(network));
    });
    const reply = await Promise.race([replies.get(endpoint.name)!.passed, ended]);
    if (reply instanceof EndpointError) throw reply;
    return { outcome: reply };
  };
  const taken = runRound(settings, perform, { cutsShort });
  const drops: string[] = [];
  const drop = async ({ endpoint }: { endpoint: Endpoint }): Promise<Answer> => {
    drops.push(endpoint.name);
    return { outcome: "granted" };
  };
  const answer = (name: string, reply: Reply) => replies.get(name)!.open(reply);
  return { runtime, settings, taken, drops, drop, answer };
}

describe("withdraw", () => {
  test("drops at once where it was granted, and nothing where it was refused", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "granted");
    answer("b", "held");
    answer("c", "lost");
    await taken.done;
    const round = rollback(settings, taken, drop);
    await runtime.advance(0);
    expect(drops).toEqual(["a"]);
    await round.done;
    expect(round.votes().map(({ outcome }) => outcome)).toEqual(["granted", "lost", "lost"]);
    await runtime.advance(1_000);
    expect(drops).toEqual(["a"]);
  });

  test("drops everywhere for a holder, who gives back all it may have", async () => {
    const { settings, taken, drops, drop, answer } = rig();
    answer("a", "granted");
    answer("b", "held");
    answer("c", "held");
    await taken.done;
    await rollback(settings, taken, drop, true).done;
    expect(drops.sort()).toEqual(["a", "b", "c"]);
  });

  test("drops everywhere without a round, as after a hand-over", async () => {
    const { settings, drops, drop } = rig();
    await rollback(settings, undefined, drop).done;
    expect(drops).toEqual(["a", "b", "c"]);
  });

  test("drops after the answer where that comes soon, so that it is not overtaken", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "granted");
    answer("b", "granted");
    await taken.result;
    rollback(settings, taken, drop);
    await runtime.advance(20);
    expect(drops).toEqual(["a", "b"]);
    answer("c", "granted");
    await runtime.advance(0);
    expect(drops).toEqual(["a", "b", "c"]);
    await runtime.advance(1_000);
    expect(drops).toEqual(["a", "b", "c"]);
  });

  test("needs no drop where the answer that comes soon is a refusal", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "granted");
    answer("b", "granted");
    await taken.result;
    rollback(settings, taken, drop);
    answer("c", "held");
    await runtime.advance(1_000);
    expect(drops).toEqual(["a", "b"]);
  });

  test("drops where no answer comes, and once more when it comes at last", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "held");
    answer("b", "held");
    await taken.result;
    rollback(settings, taken, drop);
    await runtime.advance(25); // a quarter of the timeout
    expect(drops).toEqual(["c"]);
    await runtime.advance(500); // by now it has timed out
    expect(drops).toEqual(["c"]);
    answer("c", "granted"); // it was executed after its withdrawal
    await runtime.advance(0);
    expect(drops).toEqual(["c", "c"]);
    await runtime.advance(5_000);
    expect(drops).toEqual(["c", "c"]);
    expect(runtime.pending).toBe(0);
  });

  test.each([
    ["a refusal", "held" as const, 1],
    ["a loss", "lost" as const, 1],
    // Unanswered when the first withdrawal was sent: it may have been executed in between.
    ["a failure", network, 2],
  ])("a late answer that is %s", async (_what, reply, times) => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "held");
    answer("b", "held");
    await taken.result;
    rollback(settings, taken, drop);
    await runtime.advance(30);
    answer("c", reply);
    await runtime.advance(1_000);
    expect(drops).toEqual(new Array(times).fill("c"));
  });

  test("after an abort it waits for the answers, as for any round", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    const controller = new AbortController();
    const verdict = unlessAborted(taken, controller.signal);
    controller.abort();
    expect(await verdict).toBe(undefined);
    rollback(settings, taken, drop);
    await runtime.advance(20);
    expect(drops).toEqual([]);
    answer("a", "granted");
    await runtime.advance(0);
    expect(drops).toEqual(["a"]);
    answer("b", "held");
    await runtime.advance(5); // a quarter of the timeout
    expect(drops).toEqual(["a", "c"]);
    answer("c", "granted");
    await runtime.advance(0);
    expect(drops).toEqual(["a", "c", "c"]);
    expect(runtime.pending).toBe(0);
  });

  test("drops once more when a request that overtook nothing yet ends by its timeout", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig({}, { obeys: true, cutsShort: true });
    answer("a", "held");
    answer("b", "granted");
    await runtime.advance(50);
    expect(await taken.result).toBe("unavailable"); // cut short
    rollback(settings, taken, drop);
    await runtime.advance(0);
    expect(drops).toEqual(["b"]);
    await runtime.advance(25);
    expect(drops).toEqual(["b", "c"]);
    await runtime.advance(24);
    expect(drops).toEqual(["b", "c"]);
    await runtime.advance(1);
    expect(drops).toEqual(["b", "c", "c"]);
    await runtime.advance(5_000);
    expect(drops).toEqual(["b", "c", "c"]);
  });

  test("while its caller goes on it drops once, when the request ends", async () => {
    const handed: Promise<unknown>[] = [];
    const { runtime, settings, taken, drops, drop, answer } = rig(
      { waitUntil: (work) => handed.push(work) },
      { obeys: true },
    );
    answer("a", "held");
    answer("b", "held");
    await taken.result;
    const { done } = rollback({ ...settings, goesOn: () => true }, taken, drop);
    await runtime.advance(25);
    await done;
    await runtime.advance(74);
    expect(drops).toEqual([]);
    expect(handed).toHaveLength(1);
    await runtime.advance(1);
    await Promise.all(handed);
    expect(drops).toEqual(["c"]);
  });

  test("and once more where the endpoint does not heed its timeout, and answers later", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "held");
    answer("b", "held");
    await taken.result;
    rollback({ ...settings, goesOn: () => true }, taken, drop);
    await runtime.advance(99);
    expect(drops).toEqual([]);
    await runtime.advance(100);
    expect(drops).toEqual(["c"]);
    answer("c", "granted");
    await runtime.advance(0);
    expect(drops).toEqual(["c", "c"]);
  });

  test("no longer once its caller has given up", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    answer("a", "held");
    answer("b", "held");
    await taken.result;
    let goesOn = true;
    rollback({ ...settings, goesOn: () => goesOn }, taken, drop);
    await runtime.advance(24);
    goesOn = false;
    await runtime.advance(1);
    expect(drops).toEqual(["c"]);
  });

  test("a timed-out take is dropped at once, and again if it is granted in the end", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    await runtime.advance(100);
    await taken.done;
    rollback(settings, taken, drop);
    await runtime.advance(0);
    expect(drops).toEqual(["a", "b", "c"]);
    answer("a", "granted");
    answer("b", "held");
    answer("c", network);
    await runtime.advance(1_000);
    expect(drops).toEqual(["a", "b", "c", "a"]);
  });

  test("a failed take may have been executed: it is dropped, once", async () => {
    const { runtime, settings, taken, drops, drop, answer } = rig();
    for (const name of ["a", "b", "c"]) answer(name, network);
    await taken.done;
    rollback(settings, taken, drop);
    await runtime.advance(1_000);
    expect(drops).toEqual(["a", "b", "c"]);
  });

  test("hands what comes late over", async () => {
    const handed: Promise<unknown>[] = [];
    const { runtime, settings, taken, drops, drop, answer } = rig({ waitUntil: (work) => handed.push(work) });
    await runtime.advance(100);
    rollback(settings, taken, drop);
    await runtime.advance(0);
    expect(handed).toHaveLength(3);
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await Promise.all(handed);
    expect(drops).toHaveLength(6);
  });

  test("reports a failure to release, but none to take back", async () => {
    const failing: string[] = [];
    const { settings, taken, answer } = rig({
      onEvent: (event) => event.type === "endpointError" && failing.push(event.endpoint),
    });
    for (const name of ["a", "b", "c"]) answer(name, "granted");
    await taken.done;
    await rollback(settings, taken, () => Promise.reject(network)).done;
    expect(failing).toEqual([]);
    await rollback(settings, taken, () => Promise.reject(network), true).done;
    expect(failing).toHaveLength(3);
  });
});
