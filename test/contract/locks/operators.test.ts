import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { oneClient, virtualWorld, watch } from "../../support/virtual-client.ts";

// What operators see and do while endpoints are silent, slow or divided, in virtual time.

/** How an inspection names a holder. */
const digestOf = (token: string) => createHash("sha256").update(token).digest("hex").slice(0, 12);

describe("inspect", () => {
  type Answer = "free" | "silent" | { readonly holder: string; readonly ttl?: number };
  const [x, y] = [{ holder: "holder-x" }, { holder: "holder-y" }];

  /** Inspects a resource that each endpoint reports as given. */
  async function inspecting(answers: readonly Answer[]) {
    const { runtime, put, redlock, links } = oneClient({}, { count: answers.length });
    for (const [index, answer] of answers.entries()) {
      if (answer === "silent") links[index]!.fate = () => "lost";
      else if (answer !== "free") put("r", [index], answer.holder, answer.ttl);
    }
    const call = watch(inspect(redlock, "r"));
    await runtime.advance(100);
    // The platform computes hashes in real time.
    await expect.poll(() => call.settled).toBe(true);
    return call;
  }

  test.each<[held: boolean, answers: Answer[]]>([
    [true, [x, x, x]],
    [true, [x, x, "free"]],
    [true, [x, x, y]],
    [true, [x, x, "silent"]],
    [false, [x, "free", "free"]],
    [false, [x, y, "free"]],
    [false, ["free", "free", "silent"]],
    [true, [x, x, x, "free"]],
    [false, [x, x, "free", "free"]],
    [false, [x, x, y, y]],
    [false, [x, "free", "free", "silent"]],
    [true, [y, x, x, x, y]],
  ])("finds that a quorum has one holder (%s): %j", async (held, answers) => {
    expect((await inspecting(answers)).value).toMatchObject({ held });
  });

  test.each<[answers: Answer[]]>([
    [[x, "free", "silent"]],
    [["free", "silent", "silent"]],
    [[x, y, "silent"]],
    [[x, x, "free", "silent"]],
    [["silent"]],
  ])("rejects where the silent endpoints could make a quorum: %j", async (answers) => {
    const error = (await inspecting(answers)).error as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.message).toContain('"r"');
    const outcomes = { free: "granted", silent: "error" };
    expect(error.votes.map(({ outcome }) => outcome)).toEqual(
      answers.map((answer) => (typeof answer === "string" ? outcomes[answer] : "held")),
    );
  });

  test("says when fewer than a quorum will have it, whatever the order of the endpoints", async () => {
    for (const ttls of [
      [10_000, 30_000, 20_000],
      [20_000, 10_000, 30_000],
      [30_000, 20_000, 10_000],
    ]) {
      const { value } = await inspecting(ttls.map((ttl) => ({ holder: "holder-x", ttl })));
      expect(value?.remaining).toBe(20_000);
      expect(value?.votes.map(({ remaining }) => remaining)).toEqual(ttls);
    }
  });

  test("returns no remaining time where it is not held, and reports each endpoint's answer", async () => {
    const { value } = await inspecting(["free", x, "free"]);
    expect(value).toMatchObject({ held: false, remaining: 0, fence: undefined });
    expect(value).not.toHaveProperty("holder");
    expect(value?.votes).toEqual([
      { endpoint: "e1", outcome: "free", remaining: 0 },
      { endpoint: "e2", outcome: "held", remaining: 60_000, holder: digestOf("holder-x") },
      { endpoint: "e3", outcome: "free", remaining: 0 },
    ]);
  });

  test("names the holder by its token alone, and shows its note beside that", async () => {
    const { redlock } = virtualWorld().client();
    const lock = await redlock.acquire("r", { note: "who and why" });
    const { holder, note, votes } = await inspect(redlock, "r");
    expect([holder, note]).toEqual([digestOf(lock.token), "who and why"]);
    expect(votes.map((vote) => vote.holder)).toEqual([holder, holder, holder]);
  });
});
