import type { Need } from "../../../src/cli/conformance-session.ts";
import { EndpointError } from "../../../src/index.ts";
import {
  answering,
  cache,
  deep,
  instead,
  keys,
  refuse,
  refusing,
  script,
  scripts,
  set,
  stale,
  ttl,
  undoing,
  values,
  without,
} from "./conformance-bends.ts";
import type { Bend } from "./conformance-bent.ts";

// Servers of which each has one fault, and what doctor --conformance must find there.

const failure = new EndpointError("e", "redis", "HTTP 400, ERR one of them failed", { status: 400 });
const withheld = async () => new ReadableStream<Uint8Array>();
export const no = (...lacks: Need[]) => Object.fromEntries(lacks.map((need) => [need, "no"]));
const unasked = (...lacks: Need[]) => Object.fromEntries(lacks.map((need) => [need, "unknown"]));
const followEval: Need[] = ["evalsha", "flag", "pexpireat", "once"];
const noEval = { ...no("eval"), ...unasked(...followEval) };

/** By what is wrong: the server, and the rows that are not `yes`. */
export const faults: Readonly<
  Record<string, readonly [bend: Bend, lacks: Partial<Record<Need, string>>, found?: RegExp]>
> = {
  // What a SET does with NX, and with a ttl.
  "NX is not known": [refusing(/^SET .* NX PX/), no("nx")],
  "NX overwrites": [instead(set.nx, (words, execute) => execute(without(words, "NX", 1))), no("nx")],
  "NX says OK of a key that is there": [answering(set.nx, () => "OK"), no("nx")],
  "NX stores, and says that it was refused": [answering(set.nx, () => null), no("nx")],
  "NX stores, and says 1": [answering(set.nx, (reply) => (reply === "OK" ? 1 : reply)), no("nx")],
  "NX stores nothing, and says OK": [undoing(set.nx), no("nx")],
  "a refused NX gives the key its own ttl": [
    instead(set.nx, (words, execute) => {
      const reply = execute(words);
      if (reply === null) execute(["PEXPIRE", words[1]!, words.at(-1)!]);
      return reply;
    }),
    no("nx"),
  ],
  "NX forgets its ttl": [instead(set.nx, (words, execute) => execute(without(words, "PX", 2))), no("nx")],
  "a ttl is halved": [ttl(set.nx, (ms) => Math.ceil(ms / 2)), no("nx")],
  "a ttl is a tenth": [ttl(set.nx, (ms) => Math.ceil(ms / 10)), no("nx")],
  "a ttl is rounded down to seconds": [ttl(set.nx, (ms) => Math.floor(ms / 1_000) * 1_000 || ms), no("nx")],
  "a ttl is at most a second": [ttl(set.nx, (ms) => Math.min(ms, 1_000)), no("nx")],
  "a ttl is at least a minute": [ttl(set.nx, (ms) => Math.max(ms, 60_000)), no("nx")],
  "a ttl is a thousand times as long": [ttl(set.nx, (ms) => 1_000 * ms), no("nx")],
  "every ttl is halved": [ttl(set.any, (ms) => Math.ceil(ms / 2)), no("nx", "nx-get", "ifeq")],
  "a key loses its ttl later": [
    instead(set.nx, (words, execute, later) => {
      later(500, () => execute(["PERSIST", words[1]!]));
      return execute(words);
    }),
    no("kept"),
  ],
  // … with NX and GET.
  "NX and GET together are not known": [refusing(/ NX GET /), no("nx-get")],
  "NX and GET together fail": [refusing(/ NX GET /, "ERR odd"), no("nx-get")],
  "NX GET overwrites": [
    instead(set.nxGet, (words, execute) => execute(without(words, "NX", 1))),
    no("nx-get"),
  ],
  "NX GET returns nothing": [answering(set.nxGet, () => null), no("nx-get")],
  "NX GET returns OK": [answering(set.nxGet, () => "OK"), no("nx-get")],
  "NX GET returns its own value": [answering(set.nxGet, (_, words) => words[2]!), no("nx-get")],
  "NX GET stores nothing": [undoing(set.nxGet), no("nx-get")],
  "NX GET halves the ttl": [ttl(set.nxGet, (ms) => Math.ceil(ms / 2)), no("nx-get")],
  // … with IFEQ; and DELEX.
  "IFEQ is not known": [refusing(/^SET .* IFEQ /), no("ifeq")],
  "IFEQ overwrites another value": [
    instead(set.ifeq, (words, execute) =>
      execute(execute(["GET", words[1]!]) === null ? words : without(words, "IFEQ", 2)),
    ),
    no("ifeq"),
  ],
  "IFEQ creates": [
    instead(set.ifeq, (words, execute) =>
      execute(execute(["GET", words[1]!]) === null ? without(words, "IFEQ", 2) : words),
    ),
    no("ifeq"),
  ],
  "IFEQ does not renew": [
    instead(set.ifeq, (words, execute) => execute([...words.slice(0, 5), "KEEPTTL"])),
    no("ifeq"),
  ],
  "IFEQ writes nothing, and says OK": [
    instead(set.ifeq, (words, execute) => (execute(["GET", words[1]!]) === words[4] ? "OK" : null)),
    no("ifeq"),
  ],
  "IFEQ stores, and says that it was refused": [answering(set.ifeq, () => null), no("ifeq")],
  "IFEQ says OK of another value": [answering(set.ifeq, () => "OK"), no("ifeq")],
  "DELEX is not known": [refusing(/^DELEX/, "ERR unknown command 'DELEX'"), no("delex")],
  "DELEX deletes nothing": [
    instead(/^DELEX/, (words, execute) => Number(execute(["GET", words[1]!]) === words[3])),
    no("delex"),
  ],
  "DELEX deletes another value": [
    instead(/^DELEX/, (words, execute) => execute(["DEL", words[1]!])),
    no("delex"),
  ],
  "DELEX deletes another value, and says 0": [
    instead(/^DELEX/, (words, execute) => Number(execute(["DEL", words[1]!])) * 0),
    no("delex"),
  ],
  "DELEX deletes, and says 0": [answering(/^DELEX/, () => 0), no("delex")],
  "DELEX says 1 where nothing was": [answering(/^DELEX/, () => 1), no("delex")],
  "it has DELIFEQ in place of DELEX": [
    {
      command([name = "", ...words], execute) {
        if (name === "DELEX") return refuse("ERR unknown command 'DELEX'");
        return execute(name === "DELIFEQ" ? ["DELEX", words[0]!, "IFEQ", words[1]!] : [name, ...words]);
      },
    },
    no("delex"),
    /it has DELIFEQ/,
  ],
  // Keys and values.
  "keys are cut at 255 characters": [keys((key) => key.slice(0, 255)), no("keys")],
  "keys are cut at 100 characters": [keys((key) => key.slice(0, 100)), no("keys")],
  "keys are in lower case": [keys((key) => key.toLowerCase()), no("keys")],
  "keys are trimmed": [keys((key) => key.trim()), no("keys")],
  "keys are decoded": [keys((key) => key.replace(/%41/g, "A")), no("keys")],
  "a + in a key is a space": [keys((key) => key.replaceAll("+", " ")), no("keys")],
  "keys lose their braces": [keys((key) => key.replace(/[{}]/g, "")), no("keys")],
  "keys are composed": [keys((key) => key.normalize("NFC")), no("keys")],
  "keys lose characters beyond 16 bits": [
    keys((key) => key.replace(/[\u{10000}-\u{10ffff}]/gu, "?")),
    no("keys"),
  ],
  "values are composed": [values((value) => value.normalize("NFC")), no("values")],
  "values are trimmed": [values((value) => value.trim()), no("values")],
  "values are in lower case": [values((value) => value.toLowerCase()), no("values")],
  "values are decoded": [values((value) => value.replace(/%41/g, "A")), no("values")],
  "escapes in values are read twice": [values((value) => value.replace("\\u0041", "A")), no("values")],
  "values lose characters beyond 16 bits": [
    values((value) => value.replace(/[\u{10000}-\u{10ffff}]/gu, "\ufffd")),
    no("values"),
  ],
  "scripts have keys in lower case": [
    instead(/^EVAL/, (words, execute) =>
      execute(words.map((word) => (word.startsWith("p:") ? word.toLowerCase() : word))),
    ),
    no("keys"),
  ],
  "scripts return composed values": [
    answering(/^EVAL/, (reply) =>
      deep(reply, (item) => (typeof item === "string" ? item.normalize("NFC") : item)),
    ),
    no("values"),
  ],
  "GET returns other values than are stored": [
    answering(/^GET/, (reply) => deep(reply, (item) => (typeof item === "string" ? item.trim() : item))),
    no("values"),
  ],
  "values are cut at 500 kB": [values((value) => value.slice(0, 500_000)), no("request")],
  "values are cut at 64 kB": [values((value) => value.slice(0, 65_536)), no("request")],
  "a large value stays away, with OK": [
    instead(set.any, (words, execute) => (words[2]!.length > 100_000 ? "OK" : execute(words))),
    no("request"),
  ],
  "large requests are refused": [refusing(/^.{100001}/, "ERR too large"), no("request")],
  "large replies are refused": [
    answering(/^MGET/, (reply) => (String(reply).length > 100_000 ? refuse("ERR too large") : reply)),
    no("reply"),
  ],
  // Scripts.
  "EVAL is not known": [refusing(/^EVAL /, "ERR unknown command 'EVAL'"), noEval],
  "EVAL is not allowed": [
    refusing(/^EVAL/, "NOPERM this user has no permissions to run 'eval'"),
    unasked("eval", "noscript", ...followEval),
  ],
  "EVAL stores nothing": [undoing(/^EVAL\b/, (words) => words.includes("acquire")), noEval],
  "a script's SET forgets its ttl": [script(', "PX", ttl', ""), noEval],
  "a script's ttls are halved": [script('"PX", ttl', '"PX", ttl / 2'), noEval],
  "a script does not see what is there": [script("found[n + 1] or other or (", "found[n + 1] or ("), noEval],
  "a script deletes nothing": [script('redis.call("DEL", KEYS[i])', ""), noEval],
  "a script deletes another value": [
    script("string.sub(value, from) then", "string.sub(value, from) or op == 'release' then"),
    noEval,
  ],
  "a script's PTTL is in seconds": [
    scripts((source) => source.replace(/(redis\.call\("PTTL", KEYS\[\w+\]\))/g, "math.floor($1 / 1000)")),
    noEval,
  ],
  "a script's PTTL is a thousand times as long": [
    scripts((source) => source.replace(/(redis\.call\("PTTL", KEYS\[\w+\]\))/g, "$1 * 1000")),
    noEval,
  ],
  "a script prints numbers with an exponent": [script('"%.0f", fence', '"%.7e", fence'), noEval],
  "numbers are texts": [
    answering(/^(?:EVAL|EVALSHA|DELEX|WAIT)\b/, (reply) =>
      deep(reply, (item) => (typeof item === "number" ? String(item) : item)),
    ),
    { ...no("delex", "wait"), ...noEval },
  ],
  "EVALSHA is not known": [
    refusing(/^EVALSHA /, "ERR unknown command 'EVALSHA'"),
    { ...no("evalsha"), ...unasked("noscript") },
  ],
  "no script is remembered": [refusing(/^EVALSHA /, "NOSCRIPT No matching script"), no("evalsha")],
  "EVALSHA stores nothing": [undoing(/^EVALSHA/), no("evalsha")],
  "an unknown script is another error": [
    {
      command: (words, execute) => {
        try {
          return execute(words);
        } catch {
          return refuse("ERR no such script");
        }
      },
    },
    no("noscript"),
  ],
  "the flag of scripts is refused": [
    refusing(/#!lua flags/, "ERR Unexpected flag in script shebang"),
    no("flag"),
  ],
  "PEXPIREAT is refused in scripts": [refusing(/PEXPIREAT/), no("pexpireat")],
  "PEXPIREAT is in seconds": [
    script("now + math.max(ms, remaining)", "1000 * (now + math.max(ms, remaining))"),
    no("pexpireat"),
  ],
  "PEXPIREAT does nothing": [script('redis.call("PEXPIREAT", key,', "string.len(key,"), no("pexpireat")],
  "every request is executed twice": [{ request: () => "twice" }, no("once")],
  "every script is executed twice": [
    instead(/^EVAL/, (words, execute) => {
      execute(words);
      return execute(words);
    }),
    no("once"),
  ],
  "fences are forgotten": [undoing(/^EVAL/, (words) => words[3]!.endsWith(":once")), no("once")],
  // Requests, replies and streams.
  "replies are those of others": [
    instead(/^PING/, (words, execute) => (words[1]?.length === 36 ? "of another one" : execute(words))),
    no("replies"),
  ],
  "there is no pipeline": [{ pipeline: () => undefined }, no("pipeline")],
  "a pipeline fails": [
    { pipeline: (outcomes) => outcomes().map(() => ({ error: failure })) },
    no("pipeline"),
  ],
  "one error fails a whole pipeline": [
    {
      pipeline(outcomes) {
        const all = outcomes();
        return all.some((each) => "error" in each) ? all.map(() => ({ error: failure })) : all;
      },
    },
    no("pipeline"),
  ],
  "a pipeline's replies are in another order": [
    { pipeline: (outcomes) => outcomes().reverse() },
    no("pipeline"),
  ],
  "a pipeline's replies are shifted": [
    {
      pipeline(outcomes) {
        const [first, ...others] = outcomes();
        return [...others, first!];
      },
    },
    no("pipeline"),
  ],
  "a pipeline's errors are replies": [
    { pipeline: (outcomes) => outcomes().map((each) => ("error" in each ? { reply: null } : each)) },
    no("pipeline"),
  ],
  "a pipeline stores nothing": [
    instead(/^SET PX/, (words, execute) => (words[1]!.endsWith(":pipeline") ? "OK" : execute(words))),
    no("pipeline"),
  ],
  "there are no streams": [
    { subscribe: () => Promise.reject(new EndpointError("e", "http", "HTTP 404", { status: 404 })) },
    no("subscribe"),
  ],
  "streams do not arrive": [{ subscribe: withheld }, no("subscribe")],
  "messages do not arrive": [instead(/^PUBLISH/, () => 1), no("subscribe")],
  "a clock is ahead": [{ clockOffset: 10_000 }, no("clock")],
  // The store.
  "reads see what was there before": [stale(([name]) => name === "GET"), no("reads")],
  "scripts see what was there before": [stale((words) => words.at(-1) === "peek"), no("reads")],
  "reads are cached": [cache(), no("reads")],
  "a write of three is lost": [undoing(set.any, (words) => /:reads:[14]$/.test(words[1]!)), no("kept")],
  "a write to an odd key is lost": [
    undoing(set.any, (words) => words[1]!.endsWith(":CASE")),
    { ...no("kept"), ...unasked("keys") },
  ],
  "all writes are lost": [
    undoing(set.any, (words) => words[1]!.includes(":reads:")),
    { ...no("kept"), ...unasked("reads") },
  ],
  "a write is lost later": [
    instead(set.any, (words, execute, later) => {
      if (words[1]!.endsWith(":reads:3")) later(500, () => execute(["DEL", words[1]!]));
      return execute(words);
    }),
    no("kept"),
  ],
  "a deleted key comes back": [
    instead(/^DELEX/, (words, execute, later) => {
      later(500, () => execute(["SET", words[1]!, "v1"]));
      return execute(words);
    }),
    no("kept"),
  ],
  "keys are evicted": [instead(/^CONFIG/, () => ["maxmemory-policy", "allkeys-lru"]), no("eviction")],
  "CONFIG is not allowed": [refusing(/^CONFIG/, "NOPERM no permissions"), unasked("eviction")],
  "WAIT is not known": [refusing(/^WAIT/, "ERR unknown command 'WAIT'"), no("wait")],
};
