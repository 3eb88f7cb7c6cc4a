import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import type { Finding } from "../../../src/cli/finding.ts";
import { changeBetween, linesOf } from "../../../src/cli/watch.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { run } from "./terminal.ts";

let local: LocalEndpoints;
beforeAll(async () => {
  local = await start({ engine: "embedded", count: 3 });
});
afterAll(() => local.close());
afterEach(() => {
  for (const { faults } of local.endpoints) faults.clear();
});

test("watch prints a line for each change until it is stopped", async () => {
  const redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) });
  const stop = new AbortController();
  const seen: Record<string, unknown>[] = [];
  const onLine = (line: string) => seen.push(JSON.parse(line));
  const ended = run(local, "watch door --interval 100 --json", { stop: stop.signal, onLine });
  const last = () => seen.at(-1)?.state;
  await expect.poll(last).toBe("free");
  const lock = await redlock.acquire("door");
  // Endpoints are asked side by side, so a look may see a part of an acquire: a change of its own.
  await expect.poll(last).toBe("held");
  await lock.release();
  await expect.poll(last).toBe("free");
  const count = seen.length;
  await sleep(250);
  expect(seen).toHaveLength(count);
  stop.abort();
  expect((await ended).code).toBe(0);
  expect(seen[0]).toMatchObject({ command: "watch", change: "first", at: expect.stringMatching(/Z$/) });
});

test("a command ends at once when it is stopped", async () => {
  const [{ faults, log }] = local.endpoints;
  faults.add({ fault: "delay", ms: 20_000 });
  const stop = new AbortController();
  const before = log.requests;
  const ended = run(local, "inspect slow --timeout 20000", { stop: stop.signal });
  await expect.poll(() => log.requests).toBeGreaterThan(before);
  stop.abort();
  expect(await ended).toMatchObject({ code: 1, shown: ["! redlock-edge: stopped"] });
});

const held: Finding = {
  resource: "r",
  state: "held",
  why: "because",
  holder: "a",
  remaining: 8_200,
  fence: 7,
  fenceAge: 1,
  quorum: 1,
  votes: [{ endpoint: "e", state: "held", holder: "a", remaining: 8_200 }],
};
const record: Finding = { ...held, key: "k", state: "pending", attempts: 2, age: 5 };

test.each<[before: Finding, now: Partial<Finding>, change: string | undefined]>([
  [held, { remaining: 7_200, fenceAge: 2, why: "later" }, undefined],
  [held, { remaining: 7_450 }, undefined],
  [held, { remaining: 7_451 }, "extended"],
  [held, { holder: "b" }, "changed"],
  [held, { fence: 8 }, "changed"],
  [held, { votes: [{ endpoint: "e", state: "free" }] }, "changed"],
  [record, { age: 9, remaining: 0 }, undefined],
  [record, { attempts: 3 }, "changed"],
])("a second after %j, %j is %s", (before, now, change) => {
  const first = { finding: before, at: 0 };
  expect(changeBetween(first, { finding: { ...before, ...now }, at: 1_000 })).toBe(change);
  expect(changeBetween(undefined, first)).toBe("first");
});

test("a look leaves the terminal alone, is one line in a pipe, and breaks between words at the width of a terminal", () => {
  const error = { kind: "http", message: "\u001b[2J" };
  const votes = [...held.votes, { endpoint: "e2", state: "error", error } as const];
  const look = { finding: { ...held, votes, note: 'a";\n\u001b[2J\u202e' }, at: 0 };
  const start = "1970-01-01T00:00:00.000Z  r is held";
  const holder = String.raw`holder a; note "a\";\n\u001b[2J\u{202e}"`;
  const line = `${start}; ${holder}; remaining 8.2 s; fence 7; votes held, e2 \\u{1b}[2J`;
  expect(linesOf(look, "first", Infinity)).toEqual([line]);
  expect(linesOf(look, "extended", Infinity)).toEqual([
    `${start}; extended; ${holder}; remaining 8.2 s; fence 7`,
  ]);
  const lines = linesOf(look, "first", 60);
  expect(Math.max(...lines.map((each) => each.length))).toBeLessThanOrEqual(60);
  expect(lines.map((each) => each.slice(26)).join(" ")).toBe(line.slice(26));
});
