import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { keyOf, parseKey } from "../../../src/inspect/stored-key.ts";
import { matching, summary } from "../../src/page/browser/words.ts";
import { merged, resultOf, rowsOf, wordsOf } from "../../src/page/request.ts";
import { lockRow } from "../../src/page/stored.ts";
import type { Exchange, Executed } from "../../src/rest/observe.ts";
import type { WireReply } from "../../src/rest/redis/resp.ts";

type Plain = string | number | null | ReplyError | readonly Plain[];

/** A reply with its texts as bytes, as Redis sends them. */
function wire(reply: Plain): WireReply {
  if (typeof reply === "string") return Buffer.from(reply);
  return Array.isArray(reply) ? reply.map(wire) : (reply as WireReply);
}

const [own, other] = [`t${"1".repeat(32)}`, `t${"2".repeat(32)}`];
const lock = keyOf("redlock", "lock", "a");
const run = keyOf("redlock", "idem", "h");
const script = (key: string, ...args: string[]) => ["EVALSHA", "0".repeat(40), "2", key, "void", ...args];
const [pending, others, complete] = [`P1 ${own} 1 -`, `P1 ${other} 1 -`, `C1 ${own} 2 - {}`];

describe("requests", () => {
  const acquire = ["SET", lock, own, "NX", "PX", "100"];
  const begin = ["SET", run, pending, "NX", "GET"];
  const mailbox = (...args: string[]) => {
    const keys = ["mailbox", "mailbox-order", "mailbox-values", "void", "mailbox-done"];
    return ["EVALSHA", "0".repeat(40), "5", ...keys.map((kind) => keyOf("redlock", kind, "a")), ...args];
  };
  const drain = ["post", own, "9", "9", "9", "5", "0", "100", "0"];
  const post = [...drain, "ia", "call", "v1"];
  const stored = (holder: string) => [own, "stored", holder, "0", "5", []];
  const step = (closes: string) => ["step", own, "0", "9", "9", "1", closes, "0", "0", "0", "0"];
  test.each<[string, string, Plain, readonly string[]]>([
    ["acquire", "acquired", "OK", acquire],
    ["acquire", "held by another", null, acquire],
    ["extend", "gone", null, ["SET", lock, "v", "IFEQ", "v", "PX", "100"]],
    ["release", "released", 1, ["DELEX", lock, "IFEQ", "v"]],
    ["release", "gone", 0, ["DELEX", lock, "IFEQ", "v"]],
    ["acquire", "acquired", [own], script(lock, "claim", own)],
    ["acquire", "held by another", [0, 1, 12, other], script(lock, "prove", own)],
    ["extend", "extended", [own], script(lock, "keep", own)],
    ["release", "released", [own, "t"], script(lock, "end", own)],
    ["release", "gone", [own, "tf"], script(lock, "end", own)],
    ["begin", "begun", null, begin],
    ["begin", "begun", pending, begin],
    ["begin", "replayed", complete, begin],
    ["begin", "waiting", [0, 1, -2, others], script(run, "claim", "", pending)],
    ["begin", "replayed", [0, 1, -2, complete], script(run, "claim", "", others)],
    ["complete", "executed", [own], script(run, "keep", pending, complete)],
    ["complete", "executed", [own, "tf"], script(run, "end", pending, complete)],
    ["complete", "taken over", [own, "ft"], script(run, "end", pending, complete)],
    ["extend", "extended", [own], script(run, "keep", pending, pending)],
    ["end", "failed", [own, "t"], script(run, "end", pending, "")],
    ["count", "ok", "A1 t 1", ["SET", keyOf("p", "tries", "h"), "A1 t 1", "NX", "GET"]],
    // The slots that others have, t or f, are no verdict.
    ["semaphore slot 0", "ok", ["v", 1, "ft", 2], script(keyOf("p", "slot:0", "a"), "v", "2")],
    ["fair lock", "refused", [0, 1], script(keyOf("p", "fair", "a"), own, "17")],
    ["post", "turn taken", stored(own), mailbox(...post)],
    ["post", "queued", stored(other), mailbox(...post)],
    ["post", "duplicate", [own, "handled"], mailbox(...post)],
    ["post", "full", [own, "full", "ib"], mailbox(...post)],
    ["drain", "turn taken", stored(own), mailbox(...drain)],
    ["drain", "held by another", stored(other), mailbox(...drain)],
    ["step", "ok", [own, "open", [], []], mailbox(...step("0"))],
    ["close", "turn ended", [own, "closed"], mailbox(...step("1"))],
    ["close", "more messages", [own, "open", [], []], mailbox(...step("1"))],
    ["close", "gone", [own, "lost"], mailbox(...step("1"))],
    ["extend", "extended", [own, "open"], mailbox("keep", own, "10")],
    ["release", "released", [own, "open"], mailbox("end", own, "0")],
    ["look", "ok", [own, "seen", "", "2"], mailbox("look", own, "0")],
    ["SET", "ok", "OK", ["SET", "plain", "v", "NX"]],
    ["acquire", "error ERR", new ReplyError("ERR value secret-token"), acquire],
    ["acquire", "script not cached", new ReplyError("NOSCRIPT No matching script"), script(lock, "claim")],
  ])("are named in the words of users: %s, %s", (operation, result, reply, command) => {
    expect(wordsOf(command).operation).toBe(operation);
    expect(resultOf(wordsOf(command), command, wire(reply))).toBe(result);
  });

  const once = (command = acquire): Executed => ({ command, reply: wire("OK"), billed: 1 });
  const plain = ["GET", "b"];
  test.each<[commands: string[][], parts: Partial<Exchange>, rows: string[]]>([
    [[acquire], { executed: [once()], status: 200 }, ["acquire a acquired"]],
    [[acquire], { executed: [once()] }, ["acquire a acquired, reply lost (failed)"]],
    [[acquire], { executed: [once(), once()], status: 200 }, ["acquire a acquired, executed twice"]],
    [[acquire], {}, ["acquire a request lost (failed)"]],
    [[acquire, plain], { executed: [once(), once(plain)], status: 200 }, ["acquire a acquired", "GET b ok"]],
    [[plain], { status: 503 }, ["GET b HTTP 503 (failed)"]],
    [[], { status: 400 }, ["/  HTTP 400 (failed)"]],
  ])("have a row for each command, and say what faults have done: %j, %j", (commands, parts, expected) => {
    const peer = { address: "127.0.0.1", port: 1, agent: "node" };
    const nothing = { peer, at: 1, ms: 5, path: "/", executed: [], status: undefined };
    const rows = rowsOf("e1", { ...nothing, commands, ...parts });
    const shown = rows.map(
      ({ operation, resource, result, failed }) =>
        `${operation} ${resource} ${result}${failed ? " (failed)" : ""}`,
    );
    expect(shown).toEqual(expected);
  });
});

test("requests of a client to several endpoints are one row if their results are equal", () => {
  const row = (endpoint: string, at: number, result = "acquired", client = "node 1") => ({
    ...{ operation: "acquire", resource: "a", failed: false, billed: 2, endpoints: [endpoint] },
    ...{ client, result, at, ms: at },
  });
  const others = [row("e3", 9, "lost"), row("e2", 8, "acquired", "node 2")];
  const shown = merged([row("e2", 9), ...others, row("e1", 7), row("e2", 5), row("e4", -2_000)]);
  const texts = shown.map(({ client, endpoints, result, ms }) => `${client} ${endpoints} ${result} ${ms} ms`);
  const before = ["node 1 e2 acquired 5 ms", "node 1 e4 acquired -2000 ms"];
  expect(texts).toEqual([
    "node 1 e1,e2 acquired 9 ms",
    "node 1 e3 lost 9 ms",
    "node 2 e2 acquired 8 ms",
    ...before,
  ]);
});

test("what is stored is held if a quorum has the same holder", () => {
  const row = (...across: Parameters<typeof lockRow>[0]) => lockRow(across, 2, () => "node 1");
  const of = (holder: string, until: number) => ({
    ...{ parts: parseKey(lock)!, token: undefined, fence: until },
    holder,
    until,
  });
  expect(row("free", undefined, "free")).toBeUndefined();
  const held = { held: true, holder: "x", until: 5, fence: 9, shares: ["same", "same", "free"] };
  expect(row(of("x", 5), of("x", 9), "free")).toMatchObject(held);
  const split = { held: false, shares: ["same", "other", "unknown"] };
  expect(row(of("x", 5), of("y", 9), undefined)).toMatchObject(split);
});

describe("the page", () => {
  test("says whether a quorum can answer, and what may be dead", () => {
    const state = (statuses: string, ...records: string[]) =>
      ({
        ...{ engine: "redis", quorum: 2, locks: [] },
        endpoints: statuses.split(" ").map((status) => ({ status, faults: [] })),
        records: records.map((of) => ({ state: of })),
      }) as never;
    const text = "2 of 3 endpoints up, on Redis · a quorum is 2 · nothing held";
    expect(summary(state("up up stopped"))).toEqual({ text, bad: false });
    expect(summary(state("up stopped stopped")).bad).toBe(true);
    const dead = summary(state("up up up", "pending", "unfinished", "corrupt"));
    expect([dead.text.split(" · ").at(-1), dead.bad]).toEqual(["2 keys may be dead or corrupt", true]);
  });

  test("finds what has all words of a search", () => {
    const found = ["", "ORDER", "node order", "order B"].map((search) => matching("order:7 node A", search));
    expect(found).toEqual([true, true, true, false]);
  });
});
