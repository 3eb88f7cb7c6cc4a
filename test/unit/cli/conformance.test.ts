import { describe, expect, onTestFinished, test, vi } from "vitest";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { probeTtl } from "../../../src/cli/doctor/probe.ts";
import { EndpointError } from "../../../src/index.ts";
import {
  afterScript,
  answering,
  type Bend,
  bentServer,
  halving,
  instead,
  refusing,
  replaced,
  without,
} from "./bent-server.ts";

// doctor --conformance in front of servers of which each has one fault: it must find this one, and nothing else. Over HTTP:
// golden.test.ts.

type Diagnosis = Awaited<ReturnType<ReturnType<typeof bentServer>["judged"]>>;

/** The codes whose answer is not yes, with the answer. */
const lacksOf = ({ rows }: Diagnosis) =>
  Object.fromEntries(rows.flatMap(({ code, answer }) => (answer === "yes" ? [] : [[code, answer]])));

const nx = /^SET NX PX/;
const nxGet = /^SET NX GET/;
const ifeq = /^SET IFEQ/;

/** A gateway with one connection to Redis, which is in subscriber mode once anybody has asked for a stream. */
function subscribed(): Bend {
  let isSubscriber = false;
  return {
    subscribe() {
      isSubscriber = true;
      return Promise.reject(new EndpointError("e", "http", "HTTP 500", { status: 500 }));
    },
    command: (words, execute) => (isSubscriber ? refusing(/./).command!(words, execute) : execute(words)),
  };
}

const failed = {
  error: new EndpointError("e", "redis", "HTTP 400, ERR one of them failed", { status: 400 }),
};

/** By what doctor must find: what is wrong with a server. */
const faults: Readonly<Record<string, Readonly<Record<string, Bend>>>> = {
  LOCKS: {
    "NX is not known": refusing(/^SET .* NX PX/),
    "NX overwrites": instead(nx, (words, execute) => execute(without(words, "NX", 1))),
    "NX stores, and says that it was refused": answering(nx, () => null),
    "NX stores nothing, and says OK": instead(nx, () => "OK"),
    "a refused NX gives the key its own ttl": instead(nx, (words, execute) => {
      const reply = execute(words);
      if (reply === null) execute(["PEXPIRE", words[1]!, words.at(-1)!]);
      return reply;
    }),
    "EVAL is not known": refusing(/^EVAL /, "ERR unknown command 'EVAL'"),
    "a claim by script stores nothing": afterScript(/^prove$/, (key, execute) => execute(["DEL", key])),
    "an extension by script forgets its ttl": afterScript(/^keep$/, (key, execute) =>
      execute(["PERSIST", key]),
    ),
    "a script deletes another value": afterScript(/^end$/, (key, execute) => execute(["DEL", key])),
    "a script's PTTL is in seconds": answering(/^EVAL/, (reply) =>
      Array.isArray(reply) && Number(reply[2]) > 1_000
        ? replaced(reply, 2, Math.floor(Number(reply[2]) / 1_000))
        : reply,
    ),
    "an unknown script is another error": refusing(/^EVALSHA 0/, "ERR no such script"),
    "an unknown script is no error": instead(/^EVALSHA/, (words, execute) =>
      words[1]!.startsWith("00") ? null : execute(words),
    ),
    "numbers are texts": answering(/^EVAL/, (reply) => (Array.isArray(reply) ? reply.map(String) : reply)),
  },
  DIALECT: {
    "NX GET overwrites": instead(nxGet, (words, execute) => execute(without(words, "NX", 1))),
    "NX GET returns a third value": answering(nxGet, (reply) => reply && "third"),
    "IFEQ is not known": refusing(/^SET .* IFEQ /),
    "IFEQ overwrites another value": instead(ifeq, (words, execute) =>
      execute(execute(["GET", words[1]!]) === null ? words : without(words, "IFEQ", 2)),
    ),
    "IFEQ does not renew": instead(ifeq, (words, execute) => execute([...words.slice(0, 5), "KEEPTTL"])),
    "IFEQ creates what is not there": instead(ifeq, (words, execute) =>
      execute(execute(["GET", words[1]!]) === null ? without(words, "IFEQ", 2) : words),
    ),
    "DELEX deletes nothing": instead(/^DELEX/, (words, execute) =>
      Number(execute(["GET", words[1]!]) === words[3]),
    ),
    "DELEX says 1 where nothing was": answering(/^DELEX/, () => 1),
    "DELEX deletes another value": instead(/^DELEX/, (words, execute) => execute(["DEL", words[1]!])),
    "the flag of scripts is refused": refusing(/#!lua flags/, "ERR Unexpected flag in script shebang"),
  },
  PIPELINE: {
    "one error fails a whole pipeline": {
      pipeline: (outcomes) =>
        outcomes.some((each) => "error" in each) ? outcomes.map(() => failed) : outcomes,
    },
    "a pipeline's replies are in another order": { pipeline: (outcomes) => outcomes.reverse() },
    "a pipeline's errors are replies": {
      pipeline: (outcomes) => outcomes.map((each) => ("error" in each ? { reply: null } : each)),
    },
  },
  RESULT: {
    "values are cut at 500 kB": instead(/^SET/, (words, execute) =>
      execute(replaced(words, 2, words[2]!.slice(0, 500_000))),
    ),
    "a large value stays away, with OK": instead(/^SET/, (words, execute) =>
      words[2]!.length > 100_000 ? "OK" : execute(words),
    ),
    "large requests are refused": refusing(/^.{100001}/, "ERR too large"),
  },
  EVICTION: { "keys are evicted": instead(/^CONFIG/, () => ["maxmemory-policy", "allkeys-lru"]) },
  SUBSCRIBE: {
    "there are no streams": {
      subscribe: () => Promise.reject(new EndpointError("e", "http", "HTTP 404", { status: 404 })),
    },
    "messages do not arrive": instead(/^PUBLISH/, () => 1),
  },
};

const cases = Object.entries(faults).flatMap(([code, bends]) =>
  Object.entries(bends).map(([what, bend]) => [what, bend, { [code]: "no" }] as const),
);

test.each<readonly [what: string, bend: Bend, lacks: object]>([
  ...cases,
  ["every ttl is halved", halving(/^SET/), { LOCKS: "no" }],
  ["a replica lags, which answers GET", answering(/^M?GET/, () => null), {}],
  ["EVAL is not allowed", refusing(/^EVAL/, "NOPERM no permissions to run 'eval'"), { LOCKS: "unknown" }],
  ["CONFIG is not allowed", refusing(/^CONFIG/, "NOPERM no permissions"), { EVICTION: "unknown" }],
  ["a stream breaks everything", subscribed(), { SUBSCRIBE: "no", STREAMS: "no" }],
])("a server of which %s", async (what, bend, lacks) => {
  const found = await bentServer(bend).judged(what === "messages do not arrive" ? 100 : 5_000);
  expect(lacksOf(found)).toEqual(lacks);
  const isWell = Object.keys(lacks).every((code) => /RESULT|EVICTION|SUBSCRIBE/.test(code));
  expect(found.ok).toBe(isWell);
});

describe("an honest server", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  test.each(["upstash", "redis-8.4", "redis"] as const)(
    `dialect %s, far away, seed ${seed}`,
    async (dialect) => {
      vi.useFakeTimers();
      onTestFinished(() => void vi.useRealTimers());
      // A request may stall.
      const travel = () =>
        new Promise((arrive) => setTimeout(arrive, random() < 0.1 ? 2_300 : 300 * random()));
      const { judged, engine } = bentServer({}, dialect, travel);
      let found: Diagnosis | undefined;
      void judged().then((result) => (found = result));
      while (!found) await vi.advanceTimersByTimeAsync(1_000);
      expect(lacksOf(found)).toEqual(expect.not.objectContaining({ LOCKS: "no" }));
      expect(found.ok).toBe(true);
      for (const key of engine.execute(["KEYS", "*"]) as string[]) {
        expect(key).toMatch(/^p:doctor:\{id\}:/);
        expect(engine.execute(["PTTL", key])).toSatisfy((ms: number) => ms > 0 && ms <= probeTtl);
      }
    },
  );
});

test.each([null, 7, "OK", []])("believes no server that answers everything with %j", async (reply) => {
  const { judged } = bentServer({
    command: (words, execute) => (/^PING|:token /.test(words.join(" ")) ? execute(words) : reply),
  });
  expect((await judged()).ok).toBe(false);
});
