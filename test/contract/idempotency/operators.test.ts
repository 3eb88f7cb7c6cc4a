import { beforeAll, describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors/errors.ts";
import { hashKey } from "../../../src/idempotency/digest.ts";
import { forgetKey, inspectKey } from "../../../src/idempotency/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { takes, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { runner, silence, textsOf } from "../../support/virtual-runs.ts";

// What an operator sees of a key, and what is removed, exact to the millisecond.

let name: string;
let counter: string;
beforeAll(async () => {
  const hash = await hashKey([], "key");
  name = keyOf("redlock", "idem", hash);
  counter = keyOf("redlock", "tries", hash);
});

const start = 1_700_000_000_000;
const pending = `P1 ta ${start - 4_000} -`;
const complete = `C1 ta ${start - 4_000} - "done"`;

const everywhere = [9_000, 8_000, 7_000].map((ttl): [string, number] => [complete, ttl]);

/** A world with these records, each with its ttl; undefined: none. */
function having(texts: readonly ([text: string, ttl: number] | undefined)[], counts: readonly string[] = []) {
  const world = virtualWorld({ count: texts.length });
  texts.forEach((given, index) => {
    if (given) world.endpoints[index]!.engine.execute(["SET", name, given[0], "PX", given[1]]);
  });
  counts.forEach((text, index) => {
    if (text) world.endpoints[index]!.engine.execute(["SET", counter, text, "PX", 50_000]);
  });
  return world;
}

const reaching = (world: VirtualWorld, count: number) => {
  const client = runner(world);
  silence(client.links.slice(count));
  return client;
};

describe("inspect", () => {
  const of = (world: VirtualWorld, reached = 9) => inspectKey(reaching(world, reached).idempotency, "key");
  const none = { state: "none", remaining: 0, attempts: 0 };

  test("nothing", async () => {
    expect(await of(having([undefined, undefined, undefined]))).toEqual({
      ...none,
      votes: ["e1", "e2", "e3"].map((endpoint) => ({ endpoint, ...none })),
    });
  });

  test("a run under way: its lease is over when no quorum has it any more", async () => {
    const world = having(
      [
        [pending, 9_000],
        [pending, 8_000],
        [pending, 7_000],
      ],
      ["A1 ta 1", "A1 tb 2", "A1 ta 1"],
    );
    const seen = await of(world);
    expect(seen).toMatchObject({ state: "pending", age: 4_000, remaining: 8_000, attempts: 2 });
    expect(seen.votes).toEqual([
      { endpoint: "e1", state: "pending", age: 4_000, remaining: 9_000, attempts: 1 },
      { endpoint: "e2", state: "pending", age: 4_000, remaining: 8_000, attempts: 2 },
      { endpoint: "e3", state: "pending", age: 4_000, remaining: 7_000, attempts: 1 },
    ]);
    expect(seen).not.toHaveProperty("fingerprint");
    expect(seen).not.toHaveProperty("unstored");
  });

  test("a result: it is gone when every quorum may be without it", async () => {
    const world = having([[complete, 9_000], [complete, 7_000], [complete, 8_000], undefined]);
    // A quorum of four is three; two with it prevent one without it.
    const seen = await of(world);
    expect(seen).toMatchObject({ state: "complete", age: 4_000, remaining: 8_000, attempts: 0 });
    expect(seen).not.toHaveProperty("unstored");
  });

  test.each([[5], [[]], [["x"]], [["x", 5]], [["x", 5, 7]]])(
    "an endpoint that replies %j has no vote",
    async (reply) => {
      const { idempotency, links } = runner(having(everywhere));
      Object.assign(links[0]!, { send: async () => reply });
      const seen = await inspectKey(idempotency, "key");
      expect(seen).toMatchObject({ state: "complete", remaining: 7_000 });
      expect(seen.votes[0]).toMatchObject({ endpoint: "e1", state: "error", cause: { kind: "malformed" } });
    },
  );

  test("a result with a fingerprint that could not be stored", async () => {
    const text = `N1 ta ${start - 1} ab too-large`;
    const seen = await of(having([[text, 5]]));
    const fields = { state: "complete", age: 1, fingerprint: "ab", unstored: "too-large", remaining: 5 };
    expect(seen).toEqual({ ...fields, attempts: 0, votes: [{ endpoint: "e1", ...fields, attempts: 0 }] });
  });

  test.each<[what: string, texts: (string | undefined)[], state: string]>([
    ["one of three is pending", [pending, undefined, undefined], "undecided"],
    ["one of three is complete", [complete, undefined, undefined], "undecided"],
    ["one of three is not a record", ["text", undefined, undefined], "undecided"],
    ["two runs have one each", [pending, pending.replace("ta", "tb"), undefined], "undecided"],
    ["a run has a quorum, another result a minority", [pending, complete, pending], "pending"],
    ["two are no record, one is pending", ["text", pending, ""], "corrupt"],
  ])("%s: %s", async (_what, texts, state) => {
    const seen = await of(having(texts.map((text) => (text === undefined ? undefined : [text, 9_000]))));
    expect(seen.state).toBe(state);
    if (state === "undecided") expect(seen).toMatchObject({ remaining: 0 });
  });

  test("with a minority that does not answer, and an error with more", async () => {
    const world = having(everywhere);
    const seen = await of(world, 2);
    expect(seen).toMatchObject({ state: "complete", remaining: 8_000 });
    expect(seen.votes[2]).toEqual({ endpoint: "e3", state: "error", cause: expect.any(Error) });
    const { error } = await outcomeOf(of(world, 1));
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual(["granted", "error", "error"]);
    expect(String(error)).toContain('no quorum to inspect "key"');
  });
});

describe("forget", () => {
  const nothing = [null, null, null];

  test.each<[what: string, Parameters<typeof having>[0], counts: readonly string[]]>([
    [
      "result and counts at every endpoint",
      [[complete, 9_000], undefined, [`N1 tb ${start} ab too-large`, 9_000]],
      ["A1 ta 1", "A1 tb 2", "no count"],
    ],
    ["only counts", [undefined, undefined, undefined], ["A1 ta 1"]],
    ["a text that is not a record", [["text", 9_000], undefined, undefined], []],
  ])("removes %s, and says that there was something", async (_what, texts, counts) => {
    const world = having(texts, counts);
    const { idempotency } = runner(world);
    expect(await forgetKey(idempotency, "key")).toBe(true);
    expect([textsOf(world), textsOf(world, "tries")]).toEqual([nothing, nothing]);
    expect(await forgetKey(idempotency, "key")).toBe(false);
  });

  test("removes what it reaches, and says that a silent endpoint may keep a copy", async () => {
    const world = having(everywhere);
    const failures: string[] = [];
    const client = runner(
      world,
      {},
      { onEvent: (event) => event.type === "endpointError" && failures.push(event.endpoint) },
    );
    silence(client.links.slice(2));
    const { error } = await outcomeOf(forgetKey(client.idempotency, "key"));
    expect(error).toBeInstanceOf(QuorumError);
    expect(textsOf(world)).toEqual([null, null, complete]);
    // Once for each reading; the removal sends nothing there.
    expect(failures).toEqual(["e3", "e3"]);
    expect(String(error)).toContain('no quorum to forget "key"');
    // Nothing is left where it asks: the same answer.
    const again = await outcomeOf(forgetKey(reaching(world, 2).idempotency, "key"));
    expect(again.error).toBeInstanceOf(QuorumError);
  });
});

test.each([
  ["inspect", inspectKey],
  ["forget", forgetKey],
])("%s waits as long as its own timeout", async (_what, call) => {
  const world = virtualWorld({ count: 1 });
  const { idempotency, links, started } = runner(world);
  links[0]!.fate = () => "lost";
  const asked = watch<unknown>(call(idempotency, "key", { timeout: 70 }));
  await started();
  await takes(world.runtime, asked, 70);
  expect(asked.error).toBeInstanceOf(QuorumError);
});
