import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { type Dialect, ReplyError } from "../../../local/src/engine/engine.ts";
import type { Answer } from "../../../local/src/rest/http/inject-faults.ts";
import {
  type ConformanceResult,
  conformanceLines,
  judge,
  type Row,
  requirements,
} from "../../../src/cli/conformance-advice.ts";
import type { Need } from "../../../src/cli/conformance-examine.ts";
import type { Seen } from "../../../src/cli/conformance-session.ts";
import { type Lack, refusing, startStand, wordsOf } from "./conformance-stand.ts";

// doctor --conformance in front of servers of which each lacks one thing: it must find this one, and no other.

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

const unasked = (...needs: Need[]) => Object.fromEntries(needs.map((need) => [need, "unknown"]));
const scripts: Need[] = ["evalsha", "flag", "pexpireat", "once"];

/** What a reader gets of a key that was written: what was there before. */
function stale(
  isRead: (words: readonly string[]) => boolean,
  reply: (value: Buffer) => Buffer | Buffer[],
): Lack {
  const values = new Map<string, string>();
  const before = new Map<string, string>();
  return {
    command(words, execute) {
      const [name, key = "", value = ""] = words;
      if (name === "SET") {
        before.set(key, values.get(key) ?? "");
        values.set(key, value);
      }
      const read = name === "GET" ? key : words[3]!;
      return isRead(words) ? reply(Buffer.from(before.get(read) ?? "")) : execute(words);
    },
  };
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
/** A stream of which nothing arrives. */
const withheld = () =>
  new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });

/** By what it lacks: the server, the rows that are not `yes`, and doctor's exit code. */
const cases: Record<
  string,
  readonly [lack: Lack, expected: Partial<Record<Need, Row["answer"]>>, code: number]
> = {
  nothing: [{}, {}, 0],
  "SET that knows no NX": [refusing((line) => /^SET .* NX PX/.test(line)), { nx: "no" }, 1],
  "SET that overlooks NX": [
    {
      command: (words, execute) =>
        execute(words.includes("GET") ? words : words.filter((word) => word !== "NX")),
    },
    { nx: "no" },
    1,
  ],
  "SET that overlooks PX": [
    {
      command: (words, execute) =>
        execute(words[0] === "SET" && words[3] === "NX" && words[4] === "PX" ? words.slice(0, 4) : words),
    },
    { nx: "no" },
    1,
  ],
  "SET without NX and GET together": [refusing((line) => / NX GET /.test(line)), { "nx-get": "no" }, 0],
  "another error for NX and GET": [
    refusing((line) => / NX GET /.test(line), "ERR odd"),
    { "nx-get": "no" },
    1,
  ],
  "SET … IFEQ": [refusing((line) => /^SET .* IFEQ /.test(line)), { ifeq: "no" }, 1],
  "SET … IFEQ that overwrites": [
    {
      command: (words, execute) =>
        execute(
          words[0] === "SET" && words[3] === "IFEQ" ? [...words.slice(0, 3), ...words.slice(5)] : words,
        ),
    },
    { ifeq: "no" },
    1,
  ],
  DELEX: [refusing((line) => line.startsWith("DELEX"), "ERR unknown command 'DELEX'"), { delex: "no" }, 1],
  EVAL: [
    refusing((line) => line.startsWith("EVAL "), "ERR unknown command 'EVAL'"),
    { eval: "no", ...unasked(...scripts) },
    1,
  ],
  EVALSHA: [
    refusing((line) => line.startsWith("EVALSHA "), "ERR unknown command 'EVALSHA'"),
    { evalsha: "no", ...unasked("noscript") },
    1,
  ],
  "a cache of scripts": [
    refusing((line) => line.startsWith("EVALSHA "), "NOSCRIPT No matching script"),
    { evalsha: "no" },
    0,
  ],
  "the error NOSCRIPT": [
    {
      async command(words, execute) {
        const reply = await execute(words);
        return reply instanceof ReplyError ? new ReplyError("ERR no such script") : reply;
      },
    },
    { noscript: "no" },
    1,
  ],
  "the flag of scripts": [
    refusing((line) => line.includes("#!lua flags"), "ERR Unexpected flag in script shebang"),
    { flag: "no" },
    1,
  ],
  "PEXPIREAT in scripts": [refusing((line) => line.includes("PEXPIREAT")), { pexpireat: "no" }, 0],
  "/pipeline": [answering("/pipeline", notFound), { pipeline: "no" }, 0],
  "a /pipeline that works": [answering("/pipeline", refusal("ERR no")), { pipeline: "no" }, 1],
  "a /pipeline that keeps the order": [
    {
      async request(request, answer) {
        const response = await answer(request);
        return request.url.endsWith("/pipeline")
          ? Response.json(((await response.json()) as unknown[]).reverse())
          : response;
      },
    },
    { pipeline: "no" },
    1,
  ],
  "/subscribe": [answering("/subscribe", notFound), { subscribe: "no" }, 0],
  "streams that arrive at once": [
    { ...answering("/subscribe", withheld), timeout: 2_000 },
    { subscribe: "no" },
    0,
  ],
  "a right clock": [{ clockOffset: 10_000 }, { clock: "no" }, 0],
  "one execution of each request": [
    {
      async request(request, answer) {
        if (!request.url.includes("/subscribe")) await answer(request.clone());
        return answer(request);
      },
    },
    { once: "no" },
    1,
  ],
  "replies of their own": [
    {
      command: (words, execute) =>
        words[0] === "PING" && words[1]?.length === 36 ? Buffer.from("of another one") : execute(words),
    },
    { replies: "no" },
    1,
  ],
  "requests of more than 100 kB": [{ maxBody: 100_000 }, { request: "no" }, 0],
  "replies of more than 100 kB": [
    {
      async request(request, answer) {
        if ((await wordsOf(request))[0] !== "MGET") return answer(request);
        const text = await (await answer(request)).text();
        return text.length > 100_000 ? new Response("too large", { status: 502 }) : new Response(text);
      },
    },
    { reply: "no" },
    0,
  ],
  "reads of what was just written": [
    stale(
      ([name]) => name === "GET",
      (value) => value,
    ),
    { reads: "no" },
    0,
  ],
  "scripts that read what was just written": [
    stale(
      (words) => words.at(-1) === "peek" && !words[1]!.startsWith("#!"),
      (value) => [value],
    ),
    { reads: "no" },
    0,
  ],
  noeviction: [
    answering("CONFIG", () => Response.json({ result: ["maxmemory-policy", "allkeys-lru"] })),
    { eviction: "no" },
    0,
  ],
  "permission for CONFIG": [
    answering("CONFIG", refusal("NOPERM no permissions")),
    { eviction: "unknown" },
    0,
  ],
  WAIT: [answering("WAIT", refusal("ERR unknown command 'WAIT'")), { wait: "no" }, 0],
  "permission to run scripts": [
    refusing((line) => line.startsWith("EVAL"), "NOPERM this user has no permissions to run 'eval'"),
    unasked("eval", "noscript", ...scripts),
    1,
  ],
};

describe.concurrent("a server without", () => {
  test.each(Object.entries(cases))("%s", async (_, [lack, expected, code]) => {
    const found = await lacksOf(lack);
    expect([found.answers, found.code]).toEqual([expected, code]);
  });
});

describe("what keeps doctor from asking", () => {
  const rest = Object.keys(requirements).filter((need) => need !== "rest") as Need[];
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

test.each([null, 7, "OK", []])("believes no server that answers everything with %j", async (result) => {
  const lack: Lack = {
    async request(request, usual) {
      if (/^PING|:token /.test((await wordsOf(request)).join(" "))) return usual(request);
      const isPipeline = request.url.endsWith("/pipeline");
      return Response.json(isPipeline ? [{ result }, { result }, { result }] : { result });
    },
  };
  const { code, answers } = await lacksOf(lack);
  // These two are what a right server answers as well.
  const believed: Record<string, Need[]> = { "7": ["wait"], OK: ["request"] };
  const misled = Object.keys(requirements).filter((need) => answers[need] === undefined);
  expect([code, misled]).toEqual([1, ["rest", "token", "replies", ...(believed[String(result)] ?? [])]]);
});

test("names what a server has in place of DELEX", async () => {
  const lack: Lack = {
    command([name, ...words], execute) {
      if (name === "DELEX") return new ReplyError("ERR unknown command 'DELEX'");
      return execute(name === "DELIFEQ" ? ["DELEX", words[0]!, "IFEQ", words[1]!] : [name!, ...words]);
    },
  };
  const { found } = await lacksOf(lack);
  expect(found).toMatchObject([{ need: "delex", answer: "no", found: expect.stringContaining("DELIFEQ") }]);
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
      const began = performance.now();
      const { code, lines } = await stand.doctor({ stop: stop.signal });
      expect([code, lines]).toEqual([1, ["redlock-edge: stopped"]]);
      expect(performance.now() - began).toBeLessThan(30_000);
      expect(keysOf(stand)).toEqual([]);
    });
  });

  test("is deleted after an outage and a timeout", async () => {
    let asked = 0;
    const lack: Lack = {
      async request(request, usual) {
        asked += 1;
        if (asked < 20 || (await wordsOf(request))[0] === "DEL") return usual(request);
        await usual(request);
        return asked === 25 ? "silence" : new Response("down", { status: 503 });
      },
      timeout: 1_000,
    };
    const { code, answers } = await lacksOf(lack);
    expect([code, answers.reads]).toEqual([1, "unknown"]);
  });
});

describe("judge", () => {
  const failure = (message: string): Seen => ({ failure: { kind: "redis", status: 400, message } });
  const all = Object.fromEntries(Object.keys(requirements).map((need) => [need, { works: true }]));
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
    expect(lines).toContain("   executed once         unknown  not asked");
    for (const { label } of Object.values(requirements)) expect(lines.join("\n")).toContain(label);
    expect(lines.at(-1)).toBe("0 of 1 ok; 9 requests. What they wrote is deleted");
  });
});
