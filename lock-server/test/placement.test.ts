import { expect, test } from "vitest";
import { durableEndpoint, LockServer, type LockServerOptions, lockServerApp } from "../src/index.ts";
import { namespaceOf, type Objects, objectStorage } from "./storage.ts";

// In which object a key is: all that use a server must say the same, or the same lock would be given away twice.

const options: readonly LockServerOptions[] = [1, 2, 4].flatMap((shards) =>
  [undefined, "eu", "fedramp"].map((jurisdiction) => ({ shards, jurisdiction })),
);
const said = ({ shards, jurisdiction }: LockServerOptions) =>
  `${shards} shard${shards === 1 ? "" : "s"} and ${jurisdiction ? `the jurisdiction ${jurisdiction}` : "no jurisdiction"}`;

const signalOf = () => new AbortController().signal;
const names = Array.from({ length: 30 }, (_, index) => `held-${index}`);

/** How many of the names somebody gets, with the messages of the others. */
async function acquire(holder: string, locks: ReturnType<typeof namespaceOf>, server: LockServerOptions) {
  const endpoint = durableEndpoint(locks, server);
  const settled = await Promise.allSettled(
    names.map((name) => endpoint.send(["SET", name, holder, "NX"], signalOf())),
  );
  return settled.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason.message)));
}

test.each(options)(
  "a server with $shards shards, jurisdiction $jurisdiction refuses all others",
  async (first) => {
    for (const second of options.filter((other) => other !== first)) {
      for (const isolate of ["the same", "another"]) {
        const objects: Objects = new Map();
        const locks = namespaceOf(objects);
        expect(new Set(await acquire("first", locks, first))).toEqual(new Set(["OK"]));
        const theirs = isolate === "another" ? namespaceOf(objects) : locks;
        const answers = new Set(await acquire("second", theirs, second));
        expect(answers.size).toBe(1);
        const [message] = answers;
        expect(message).toContain(`has ${said(first)}, and the request says ${said(second)}`);
        // It has locked nobody out.
        expect(new Set(await acquire("first", locks, first))).toEqual(new Set([null]));
      }
    }
  },
);

test("a location is only where objects are created", async () => {
  const objects: Objects = new Map();
  for (const [locationHint, answer] of [
    ["weur", "OK"],
    ["enam", null],
    [undefined, null],
  ] as const) {
    const server = { shards: 2, jurisdiction: "eu", locationHint };
    expect(new Set(await acquire("somebody", namespaceOf(objects), server))).toEqual(new Set([answer]));
  }
});

test("who the server is for is asked once by an isolate, and of an object that is found without a jurisdiction", async () => {
  const asked: [id: string, commands: number][] = [];
  const locks = namespaceOf(new Map(), (...question) => asked.push(question));
  const { send } = durableEndpoint(locks, { jurisdiction: "eu" });
  await send(["PING"], signalOf());
  await send(["PING"], signalOf());
  expect(asked).toEqual([
    ["anywhere/locks:0", 0],
    ["eu/locks:0", 1],
    ["eu/locks:0", 1],
  ]);
});

test("a binding that is already within a jurisdiction is refused", () => {
  const locks = namespaceOf(new Map()).jurisdiction!("eu" as never);
  expect(() => durableEndpoint(locks)).toThrow(/the binding itself, and jurisdiction: "eu" as an option/);
});

test("a jurisdiction that the platform does not have is named", async () => {
  const locks = {
    ...namespaceOf(new Map()),
    jurisdiction() {
      throw new Error("not implemented here");
    },
  };
  const app = lockServerApp({ jurisdiction: "eu", locks: () => locks, tokens: () => ["x".repeat(32)] });
  const headers = { authorization: `Bearer ${"x".repeat(32)}` };
  const request = new Request("https://locks.example", { method: "POST", headers, body: '["PING"]' });
  const answer = await app.fetch(request, {});
  expect([answer.status, await answer.json()]).toEqual([
    500,
    { error: 'the platform refuses the jurisdiction "eu": not implemented here' },
  ]);
});

test.each(["", "?shards=1", "?placement="])(
  "a first request with the query '%s' does not decide whose object it is",
  async (query) => {
    const objects: Objects = new Map([["anywhere/locks:0", new LockServer({ storage: objectStorage() })]]);
    const request = new Request(`https://o/${query}`, { method: "POST", body: '[["SET","held-0","x"]]' });
    const refused = await objects.get("anywhere/locks:0")!.fetch(request);
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: expect.stringMatching(/lockServerApp or durableEndpoint/) },
    ]);
    expect(new Set(await acquire("somebody", namespaceOf(objects), {}))).toEqual(new Set(["OK"]));
  },
);
