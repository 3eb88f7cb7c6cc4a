import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { Idempotency, inspectKey, singleFlight } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { Semaphore } from "../../../src/sync/index.ts";
import { secretTag } from "../../../src/webhooks/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { lasting, run } from "./terminal.ts";

// The commands against three local endpoints, one file of golden/ for each: what is typed, all that is printed, the exit
// code. The test reads only headings and lines that begin with $: `npx vitest run test/unit/cli -u` writes the others.
// `COLUMNS=60` is the terminal's width, `<<< y` what is answered there, and `VARIABLES=` names the endpoints.

let local: LocalEndpoints;
let redlock: Redlock;
let idempotency: Idempotency;
let folder: string;

beforeAll(async () => {
  local = await start({ engine: "embedded", count: 3 });
  redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()), wait: 0 });
  idempotency = new Idempotency(redlock);
  folder = await mkdtemp(join(tmpdir(), "redlock-edge-cli-"));
  const lines = Object.entries(local.env()).map(([name, value]) => `${name}="${value}"`);
  await writeFile(join(folder, ".dev.vars"), lines.join("\n"));
  await writeFile(join(folder, "other.vars"), "PORT=3000");
});
beforeEach(() => on([1, 2, 3], "FLUSHALL"));
afterAll(async () => {
  await local.close();
  await rm(folder, { recursive: true });
});

const down = (...numbers: number[]) => {
  for (const number of numbers) local.endpoints[number - 1]!.faults.add({ fault: "status", status: 503 });
};
const on = (numbers: readonly number[], ...command: (string | number)[]) =>
  Promise.all(numbers.map((number) => local.endpoints[number - 1]!.execute(command)));
const store = (number: number, key: string, value: string) => on([number], "SET", key, value, "PX", 60_000);
const records = () => local.endpoints[0]!.execute(["KEYS", "redlock:idem:*"]) as Promise<string[]>;
const complete = () => idempotency.run("paid", () => 1);
const flight = () => singleFlight(redlock, "evt", { ttl: 60_000 }, () => "hidden-value");
const semaphore = (name: string) => new Semaphore(redlock, name, { limit: 1 });

/** Deletes the records of keys, as time would: the counts of runs stay. */
async function endLeases(...numbers: number[]) {
  for (const record of await records()) await on(numbers, "DEL", record);
}

/** Begins a run that never ends. */
async function begin(key: string) {
  const { attempts } = await inspectKey(idempotency, key);
  const counting = new Idempotency(redlock, { maxAttempts: 9, lease: 600_000 });
  void counting.run(key, () => new Promise<never>(() => undefined)).catch(() => undefined);
  await expect.poll(async () => (await inspectKey(idempotency, key)).attempts).toBe(attempts + 1);
}

/** What happens before a scene, by its heading. */
const before: Readonly<Record<string, () => unknown>> = {
  "somebody holds it": () => redlock.acquire("held", { fencing: true }),
  "it says who it is": () => redlock.acquire("noted", { note: 'nightly "import"\u001b[2J\u202e\n' }),
  "one endpoint is down": () => down(3),
  "two endpoints are down": () => down(2, 3),
  "no endpoint answers": () => down(1, 2, 3),
  "three holders have a part each": async () => {
    for (const number of [1, 2, 3]) await store(number, "redlock:lock:{part}", `t${`${number}`.repeat(32)}`);
  },
  "a fence that is ahead of the clock": async () => {
    for (const number of [1, 2, 3]) await store(number, "redlock:fence:{ahead}", "9999999999999");
  },
  "a semaphore": () => semaphore("partner").acquire(),
  "a complete run": () => idempotency.run("evt", () => "hidden-result"),
  "two endpoints have lost it": () => endLeases(2, 3),
  "a run that began and did not end": () => begin("slow"),
  "it began twice, and its lease has ended": async () => {
    await endLeases(1, 2, 3);
    await begin("slow");
    await endLeases(1, 2, 3);
  },
  "no record, but a value": async () => {
    await idempotency.run("odd", () => 1);
    for (const key of await records()) for (const number of [1, 2, 3]) await store(number, key, "OK");
  },
  "a result that is not stored": () =>
    idempotency.run("large", { maxResult: 1_000 }, () => "hidden-".repeat(200)),
  "a flight": flight,
  "a semaphore is no lock": () => semaphore("partner").acquire(),
  "one endpoint has a lock": () => store(1, "redlock:lock:{rest}", "somebody"),
  "a result": complete,
  "one endpoint has a result": async () => {
    await complete();
    await endLeases(2, 3);
  },
  "only the count of its runs is left": async () => {
    await begin("dead");
    await endLeases(1, 2, 3);
  },
  "a run is under way": () => begin("running"),
  "a lock, a permit, a run": async () => {
    await redlock.acquire("invoice:42", { note: "nightly import" });
    await semaphore("partner").acquire();
    await begin("slow");
  },
  "one endpoint has a rest": () => store(2, "redlock:lock:{rest}", `t${"2".repeat(32)}`),
  "a delivery was handled": async () => {
    const scope = ["stripe", await secretTag("whsec_hidden-1")];
    await idempotency.run("evt_1", { kind: "http", scope, handler: "/webhooks/stripe" } as never, () => 1);
  },
};

/** The endpoints, as `VARIABLES=` names them. */
function variables(name: string): Record<string, string> {
  const [first, , third] = local.endpoints;
  const all = local.env();
  const one = (UPSTASH_REDIS_REST_URL: string, UPSTASH_REDIS_REST_TOKEN: string) => {
    return { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN };
  };
  const wrong = {
    UPSTASH_REDIS_REST_TOKEN_1: first!.readOnlyToken,
    UPSTASH_REDIS_REST_TOKEN_2: "hidden-wrong",
    UPSTASH_REDIS_REST_URL_4: "redis://localhost:6379",
    UPSTASH_REDIS_REST_TOKEN_4: "any",
  };
  const named: Record<string, Record<string, string>> = {
    all,
    none: {},
    one: one(third!.url, third!.token),
    public: one("http://redis.example.invalid", "t"),
    wrong: { ...all, ...wrong },
    typo: { ...all, UPSTASH_REDIS_REST_URL_3: third!.url.slice("http://".length) },
    secret: { ...all, STRIPE_WEBHOOK_SECRET: "whsec_hidden-1" },
    mixed: { REDIS_URL: "redis://localhost:1", REDIS_URL_1: "redis://localhost:2" },
  };
  return named[name]!;
}

/** What a terminal shows after a line that is typed in a file. */
async function typed(text: string): Promise<string[]> {
  const [, columns, name = "all", line = "", answer] =
    /^\$ (?:COLUMNS=(\d+) )?(?:VARIABLES=(\w+) )?redlock-edge ?(.*?)(?: <<< (.*))?$/.exec(text)!;
  const { shown, code } = await run(local, line.replace("<folder>", folder).replace("\\u{1b}", "\u001b"), {
    env: variables(name),
    ...(columns && { width: Number(columns) }),
    ...(answer && { answer: answer.replace("''", "") }),
  });
  for (const { faults } of local.endpoints) faults.clear();
  const tokens = local.endpoints.flatMap(({ token, readOnlyToken }) => [token, readOnlyToken]);
  for (const each of shown) {
    expect(each).not.toMatch(/hidden-|\p{Cc}/u);
    for (const token of tokens) expect(each).not.toContain(token);
  }
  return [...shown.map((each) => lasting(each.replace(folder, "<folder>"), local)), `exit code ${code}`, ""];
}

const files = (await readdir(join(import.meta.dirname, "golden"))).filter((name) => name !== "advice.txt");

test.each(files)("golden/%s", async (file) => {
  const requests = () => local.endpoints.reduce((sum, { log }) => sum + log.requests, 0);
  const sent = requests();
  const shown: string[] = [];
  for (const line of (await readFile(join(import.meta.dirname, "golden", file), "utf8")).split("\n")) {
    if (/^[#$] /.test(line)) shown.push(line);
    if (line.startsWith("# ")) await before[line.slice(2)]?.();
    if (line.startsWith("$ ")) shown.push(...(await typed(line)));
  }
  await expect(shown.join("\n")).toMatchFileSnapshot(`golden/${file}`);
  if (file === "usage.txt") expect(requests()).toBe(sent);
});

test("doctor finds a database that two variables name", async () => {
  const { url, token } = local.endpoints[2]!;
  const env = { ...local.env(), UPSTASH_REDIS_REST_URL_4: url, UPSTASH_REDIS_REST_TOKEN_4: token };
  const { shown } = await run(local, "doctor", { env });
  // Either of the two may have come first.
  expect(shown.join("\n")).toMatch(
    /error: +a database of its own: no, it is that of endpoint [34]\n.*URL_[34] to another database/,
  );
});

test("each command costs what docs/operations.md says", async () => {
  /** Billed commands per endpoint. */
  async function costOf(line: string) {
    const sum = () => local.endpoints.reduce((all, { log }) => all + log.billed, 0);
    const earlier = sum();
    expect((await run(local, line)).code, line).not.toBe(1);
    return (sum() - earlier) / 3;
  }
  await redlock.acquire("cost");
  expect(await costOf("inspect cost")).toBe(3);
  expect(await costOf("free cost --yes")).toBe(2);
  await complete();
  expect(await costOf("inspect --key paid")).toBe(3);
  // In the dialect redis, it first shows that it can delete.
  expect(await costOf("forget --key paid --yes")).toBe(9);
  await complete();
  expect(await costOf("forget --key paid --yes --dialect upstash")).toBe(7);
  expect(await costOf("doctor --conformance")).toBe(81);
});
