import { describe, expect, test } from "vitest";
import type { Dialect } from "../../../local/src/engine/engine.ts";
import type { Answer } from "../../../local/src/rest/http/inject-faults.ts";
import {
  type ConformanceResult,
  conformanceLines,
  judge,
  type Row,
} from "../../../src/cli/conformance-advice.ts";
import type { Need, Seen } from "../../../src/cli/conformance-session.ts";
import { needs, requirements } from "../../../src/cli/conformance-table.ts";
import { type Lack, startStand, wordsOf } from "./conformance-stand.ts";

// doctor --conformance over HTTP: what a server answers that is not a reply, what is printed, and what is left behind. What
// servers do wrong with commands: conformance-faults.test.ts.

type Stand = Awaited<ReturnType<typeof startStand>>;

async function withStand<Result>(lack: Lack, use: (stand: Stand) => Promise<Result>): Promise<Result> {
  const stand = await startStand(lack);
  try {
    return await use(stand);
  } finally {
    await stand.close();
  }
}

/** The rows that are not `yes`, with the answer. */
async function lacksOf(lack: Lack, options: Parameters<Stand["doctor"]>[0] = {}) {
  return withStand(lack, async (stand) => {
    const { code, lines } = await stand.doctor({ ...options, json: true });
    const [{ rows }] = (JSON.parse(lines.join("")) as { endpoints: [ConformanceResult] }).endpoints;
    expect(stand.engine.execute(["KEYS", "*"])).toEqual([]);
    const found = rows.filter(({ answer }) => answer !== "yes");
    return { code, found, answers: Object.fromEntries(found.map(({ need, answer }) => [need, answer])) };
  });
}

/** A server that answers some requests in another way. `what`: a part of a path, or the name of a command. */
function answering(what: string, answer: () => Response): Lack {
  return {
    async request(request, usual) {
      const isMeant = request.url.includes(what) || (await wordsOf(request))[0] === what;
      return isMeant ? answer() : usual(request);
    },
  };
}
const refusal = (message: string) => () => Response.json({ error: message }, { status: 400 });
const notFound = () => new Response("Not found", { status: 404 });

test.each<[what: string, lack: Lack, need?: Need]>([
  ["nothing", {}],
  ["/pipeline", answering("/pipeline", notFound), "pipeline"],
  ["/subscribe", answering("/subscribe", notFound), "subscribe"],
  ["requests of more than 100 kB", { maxBody: 100_000 }, "request"],
  [
    "replies of more than 100 kB",
    {
      async request(request, answer) {
        if ((await wordsOf(request))[0] !== "MGET") return answer(request);
        const text = await (await answer(request)).text();
        return text.length > 100_000 ? new Response("too large", { status: 502 }) : new Response(text);
      },
    },
    "reply",
  ],
])("a server without %s works, but not well", async (_, lack, need) => {
  const { answers, code } = await lacksOf(lack);
  expect([answers, code]).toEqual([need ? { [need]: "no" } : {}, 0]);
});

describe("what keeps doctor from asking", () => {
  const rest = needs.filter((need) => need !== "rest");
  const unasked = (...none: Need[]) => Object.fromEntries(none.map((need) => [need, "unknown"]));
  const html = { status: 200, headers: { "content-type": "text/html" } };
  test.each<[what: string, answer: () => Answer]>([
    ["a page", () => new Response("<h1>Log in</h1>", html)],
    ["a redirect to a page", () => new Response(null, { status: 302, headers: { location: "/login" } })],
    ["a refused token", () => Response.json({ error: "Invalid token" }, { status: 401 })],
    ["silence", () => "silence"],
    ["a broken connection", () => "reset"],
  ])("%s", async (_, answer) => {
    const { answers, code } = await lacksOf({ request: async () => answer(), timeout: 200 });
    expect([answers, code]).toEqual([{ rest: "no", ...unasked(...rest) }, 1]);
  });

  test("a read-only token", async () => {
    const { answers, code, found } = await lacksOf({}, { isReadOnly: true });
    const [, ...others] = rest;
    expect([answers, code]).toEqual([{ token: "no", ...unasked(...others) }, 1]);
    expect(found[0]!.found).toContain("NOPERM");
    await withStand({}, async (stand) => {
      const { lines } = await stand.doctor({ isReadOnly: true });
      expect(lines.at(-1)).toBe("0 of 1 ok; 3 requests. What they wrote is deleted");
    });
  });
});

describe("what it writes", () => {
  /** The keys, and for how long they live. */
  const keysOf = ({ engine }: Stand) => {
    const keys = engine.execute(["KEYS", "*"]) as string[];
    return keys.map((key) => ({ key, ttl: engine.execute(["PTTL", key]) as number }));
  };

  test("is below the prefix, and expires where it cannot be deleted", async () => {
    await withStand(answering("DEL", refusal("ERR busy")), async (stand) => {
      const { code, lines } = await stand.doctor();
      const keys = keysOf(stand);
      expect(keys.length).toBeGreaterThan(10);
      for (const { key, ttl } of keys) {
        expect(key).toMatch(/^p:doctor:\{[-\w]{36}:1\}:/);
        expect(ttl).toSatisfy((ms: number) => ms > 0 && ms <= 120_000);
      }
      expect([code, lines.at(-1)]).toEqual([0, expect.stringMatching(/expires within 2 minutes .*: 1$/)]);
      expect(lines.at(-1)).toContain(`; ${stand.requests()} requests.`);
    });
  });

  test.each<[what: string, answer: () => Promise<Answer>]>([
    ["while requests are answered", async () => Response.json({ result: 1 })],
    ["while one hangs", () => new Promise(() => undefined)],
  ])("is deleted after Ctrl-C, %s", async (_, answer) => {
    const stop = new AbortController();
    const lack: Lack = {
      async request(request, usual) {
        if ((await wordsOf(request))[0] !== "EVALSHA") return usual(request);
        stop.abort();
        return answer();
      },
      timeout: 60_000,
    };
    await withStand(lack, async (stand) => {
      const { code, lines } = await stand.doctor({ stop: stop.signal });
      expect([code, lines]).toEqual([1, ["redlock-edge: stopped"]]);
      expect(keysOf(stand)).toEqual([]);
    });
  });
});

describe("judge", () => {
  const failure = (message: string): Seen => ({ failure: { kind: "redis", status: 400, message } });
  const all = Object.fromEntries(needs.map((need) => [need, { works: true }]));
  const judged = (seen: Partial<Record<Need, Seen>>, dialect: Dialect): ConformanceResult =>
    judge({ endpoint: "e", number: 1, dialect, requests: 9, isClean: true, seen: { ...all, ...seen } });

  test.each<[Need, Dialect, Row["level"]]>([
    ["ifeq", "redis", "note"],
    ["ifeq", "redis-8.4", "error"],
    ["delex", "redis", "note"],
    ["delex", "upstash", "error"],
    ["flag", "redis-8.4", "note"],
    ["flag", "upstash", "error"],
  ])("without %s, the dialect %s has a consequence of level %s", (need, dialect, level) => {
    const { ok, rows } = judged({ [need]: failure("ERR syntax error") }, dialect);
    expect(rows.filter(({ answer }) => answer !== "yes")).toMatchObject([{ need, answer: "no", level }]);
    expect(ok).toBe(level !== "error");
  });

  test("shows each row in lines of 80 characters, and what happens without it", () => {
    const seen = { eval: failure(`ERR ${"long ".repeat(30)}`), once: {}, "nx-get": failure("ERR odd") };
    const lines = conformanceLines([{ ...judged(seen, "redis"), ok: false }]);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines[0]).toBe("1  e  ERROR  dialect redis");
    expect(lines.find((line) => line.includes("executed once"))).toMatch(/ unknown {2}not asked$/);
    for (const { label } of Object.values(requirements)) expect(lines.join("\n")).toContain(label);
    expect(lines.at(-1)).toBe("0 of 1 ok; 9 requests. What they wrote is deleted");
  });
});
