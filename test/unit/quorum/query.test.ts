import { expect, test } from "vitest";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError, QuorumError } from "../../../src/errors.ts";
import { query } from "../../../src/quorum/query.ts";
import type { Answer } from "../../../src/quorum/tally.ts";
import { rejection } from "../../support/outcomes.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

type Reply = Answer["outcome"] | "down" | "late";

/** Asks endpoints that reply so, with a timeout of 100 ms. */
function ask(replies: readonly Reply[], enough?: Parameters<typeof query>[3]) {
  const runtime = steppingRuntime();
  const endpoints = replies.map(
    (_, index): Endpoint => ({
      name: `e${index}`,
      dialect: "redis",
      send: () => Promise.reject(new Error("not used")),
    }),
  );
  const perform = async ({ endpoint }: { endpoint: Endpoint }): Promise<Answer> => {
    const reply = replies[endpoints.indexOf(endpoint)]!;
    if (reply === "down") throw new EndpointError(endpoint.name, "network", "down");
    return reply === "late" ? new Promise(() => undefined) : { outcome: reply };
  };
  const answers = query({ endpoints, runtime, timeout: 100 }, ["inspect", ["n"]], perform, enough);
  return { runtime, answers };
}

test.each<[replies: Reply[], answers: Answer["outcome"][]]>([
  [["granted"], ["granted"]],
  [
    ["granted", "held", "down"],
    ["granted", "held"],
  ],
  [
    ["held", "late", "lost"],
    ["held", "lost"],
  ],
  [
    ["late", "lost", "granted", "down", "held"],
    ["lost", "granted", "held"],
  ],
])("of %j a quorum has answered", async (replies, expected) => {
  const { runtime, answers } = ask(replies);
  await runtime.advance(100);
  const { answers: given, round } = await answers;
  expect(given.map(({ outcome }) => outcome)).toEqual(expected);
  expect(round.answers).toHaveLength(replies.length);
});

test.each<Reply[][]>([[["down"]], [["granted", "late"]], [["granted", "down", "late"]]])(
  "of %j no quorum has: the error says of what, and what each has answered",
  async (replies) => {
    const { runtime, answers } = ask(replies);
    const failed = rejection(answers);
    await runtime.advance(100);
    const error = (await failed) as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.message).toMatch(/inspect "n"/);
    const outcomes = replies.map((reply) => (reply === "down" || reply === "late" ? "error" : reply));
    expect(error.votes.map(({ outcome }) => outcome)).toEqual(outcomes);
  },
);

test("it waits for every endpoint, unless the caller says what is enough", async () => {
  const replies: Reply[] = ["granted", "granted", "late"];
  const all = ask(replies);
  const some = ask(replies, ({ result }) => result);
  expect((await some.answers).answers).toHaveLength(2);
  let isDone = false;
  void all.answers.then(() => {
    isDone = true;
  });
  await all.runtime.advance(99);
  expect(isDone).toBe(false);
  await all.runtime.advance(1);
  expect((await all.answers).answers).toHaveLength(2);
});
