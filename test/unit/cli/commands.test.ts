import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { runCommand } from "../../../src/cli/commands.ts";
import { Idempotency, inspectKey, singleFlight } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, httpEndpoint, Redlock } from "../../../src/index.ts";
import { CountDownLatch, Semaphore } from "../../../src/sync/index.ts";
import { patient } from "../../support/beyond-tests.ts";

// The commands against three local endpoints, some of them with faults.

let local: LocalEndpoints;
let redlock: Redlock;
let names: string[];

beforeAll(async () => {
  local = await start({ engine: "embedded", count: 3 });
  redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()), wait: 0 });
  names = local.endpoints.map(({ url }) => new URL(url).host);
});
afterAll(() => local.close());
afterEach(() => {
  for (const { faults } of local.endpoints) faults.clear();
});

interface Setting {
  readonly env?: Record<string, string>;
  /** The person's answer; default: there is no terminal. */
  readonly answer?: string;
  readonly stop?: AbortSignal;
  readonly onLine?: (line: string) => void;
  readonly onProgress?: (text: string) => void;
}

/** Runs a command line; a word in quotes is one argument. */
async function run(line: string, { env, answer, stop, onLine, onProgress }: Setting = {}) {
  const lines: string[] = [];
  const warnings: string[] = [];
  const questions: string[] = [];
  const progress: (string | undefined)[] = [];
  const args = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
  const code = await runCommand(args, {
    out: (text) => {
      lines.push(text);
      onLine?.(text);
    },
    warn: (text) => warnings.push(text),
    stop: stop ?? new AbortController().signal,
    env: env ?? local.env(),
    version: async () => "1.2.3",
    ask:
      answer === undefined
        ? undefined
        : async (question) => {
            questions.push(question);
            return answer;
          },
    progress(text) {
      progress.push(text);
      if (text !== undefined) onProgress?.(text);
    },
  });
  return { code, lines, text: lines.join("\n"), warnings, questions, progress };
}

const json = (text: string) => JSON.parse(text) as Record<string, unknown>;
const down = (...numbers: number[]) => {
  for (const number of numbers) local.endpoints[number - 1]!.faults.add({ fault: "down" });
};
const requests = () => local.endpoints.reduce((sum, { log }) => sum + log.requests, 0);

describe("redlock-edge", () => {
  test("lists its commands, and prints its version", async () => {
    const { code, text } = await run("--help");
    expect(code).toBe(0);
    for (const command of ["doctor", "inspect", "watch", "free", "forget", "dead"]) {
      expect(text).toMatch(new RegExp(`^  ${command} +\\w`, "m"));
      const help = await run(`${command} --help`);
      expect(help.code).toBe(0);
      expect(help.text).toMatch(new RegExp(`^Usage: redlock-edge ${command} `));
      expect(help.text).toMatch(new RegExp(`^  npx redlock-edge ${command} \\S`, "m"));
      for (const each of help.lines.join("\n").split("\n")) expect(each.length).toBeLessThanOrEqual(120);
    }
    expect(await run("--version")).toMatchObject({ code: 0, lines: ["1.2.3"] });
    expect((await run("help free")).text).toMatch(
      /^Usage: redlock-edge free [\s\S]*semaphore, read-write-lock/,
    );
  });

  test.each([
    ["", "a command is missing: doctor"],
    ["serve", "unknown command 'serve', there are: doctor"],
    ["inpsect a", "unknown command 'inpsect'; did you mean inspect?"],
    ["fre a", "did you mean free?"],
    ["--hlep", "did you mean --help?"],
    ["dead a --max-attempt 3", "did you mean --max-attempts?"],
    ["forget --key a", "Unknown option '--key': the key is the argument"],
    ["free a --kind semaphor --yes", "did you mean semaphore?"],
    ["inspect", "a resource, or --key, is missing"],
    ["inspect a b", "unexpected argument 'b'"],
    ["inspect a --bogus", "Unknown option '--bogus'"],
    ["inspect a --dialect mysql", '--dialect must be "upstash", "redis-8.4" or "redis"'],
    ["inspect a --timeout soon", "--timeout takes a whole number"],
    ["inspect a --timeout 99", "--timeout is 100"],
    ["doctor --prefix a{b", "--prefix has"],
    ["inspect a --count 2", "--count needs --kind"],
    ["inspect a --kind semaphore", "a Semaphore cannot be inspected"],
    ["inspect a --kind count-down-latch", "--count is missing"],
    ["watch a --interval 5", "at least 100"],
    ["free", "a resource is missing"],
    ["free a --kind lock --yes", "--kind is one of semaphore, read-write-lock, "],
    ["forget", "a key is missing"],
    ["dead k --max-attempts 0", "at least 1"],
    ["doctor now", "unexpected argument 'now'"],
    ["inspect a --read-env /nowhere/.dev.vars", "there is no such file"],
    ["inspect a --read-env /", "it is a folder"],
  ])("exits with 2 and sends nothing after '%s'", async (line, message) => {
    const before = requests();
    const { code, lines, warnings } = await run(line);
    expect(code).toBe(2);
    expect(lines).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining(message),
      expect.stringMatching(/^Try: redlock-edge /),
    ]);
    expect(requests()).toBe(before);
  });

  test("says what to do where the environment names no endpoint", async () => {
    const { code, warnings } = await run("inspect a", { env: {} });
    expect(code).toBe(2);
    expect(warnings[0]).toMatch(/UPSTASH_REDIS_REST_URL is missing.*--read-env \.dev\.vars/);
  });
});

test("reaches endpoints behind a gateway, or over http://, only where an option says so", async () => {
  const env = { UPSTASH_REDIS_REST_URL: local.endpoints[0]!.url, UPSTASH_REDIS_REST_TOKEN: "t" };
  const { code, warnings } = await run("inspect a --base-path redis", { env });
  expect([code, warnings[0]]).toEqual([2, expect.stringContaining("basePath must be")]);
  // The endpoint takes /set/foo as a command, so nothing that it answers is an endpoint's.
  const strange = await run("inspect a --base-path /set/foo --json", { env: local.env() });
  expect(json(strange.text)).toMatchObject({ state: "undecided" });
  const open = { ...env, UPSTASH_REDIS_REST_URL: "http://redis.example.invalid" };
  const refused = await run("doctor", { env: open });
  expect(refused.text).toMatch(/must be https:.*\n.*to check it nevertheless: --allow-insecure/);
  expect((await run("doctor --allow-insecure", { env: open })).text).toMatch(/no such host/);
});

test("costs what docs/operations.md says", async () => {
  const sums = () =>
    (["requests", "billed"] as const).map((what) =>
      local.endpoints.reduce((sum, { log }) => sum + log[what], 0),
    );
  /** Requests and billed commands per endpoint. */
  async function costOf(line: string) {
    const before = sums();
    expect((await run(line)).code).not.toBe(1);
    return sums().map((sum, index) => (sum - before[index]!) / 3);
  }
  // The endpoints know the scripts from here on.
  await run("inspect cost");
  await run("free cost --yes");
  const idempotency = new Idempotency(redlock);
  await redlock.acquire("cost");
  expect(await costOf("inspect cost")).toEqual([1, 3]);
  expect(await costOf("free cost --yes")).toEqual([1, 2]);
  await idempotency.run("cost", () => 1);
  expect(await costOf("dead cost")).toEqual([1, 3]);
  expect(await costOf("forget cost --yes")).toEqual([3, 9]);
  await idempotency.run("cost", () => 1);
  await run("doctor --dialect upstash");
  await run("inspect cost --dialect upstash");
  expect(await costOf("forget cost --yes --dialect upstash")).toEqual([3, 7]);
  expect(await costOf("doctor --dialect upstash")).toEqual([12, 16]);
  expect(await costOf("doctor")).toEqual([12, 18]);
});

test("doctor --conformance costs what docs/operations.md says", async () => {
  const [{ url, token, log }] = local.endpoints;
  const env = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };
  const before = [log.requests, log.billed] as const;
  expect((await run("doctor --conformance --dialect upstash", { env })).code).toBe(0);
  expect([log.requests - before[0], log.billed - before[1]]).toEqual([120, 280]);
});

describe("inspect", () => {
  test("shows a held lock without its token, and its cost", async () => {
    const lock = await redlock.acquire("held", { fencing: true });
    const { code, text } = await run("inspect held");
    expect(code).toBe(0);
    expect(text).toMatch(/^held is held\n {2}why +3 of 3 endpoints have the same holder, a quorum is 2\n/);
    expect(text).toContain(`fence ${lock.fence}`);
    expect(text).toMatch(/cost +3 requests, /);
    const found = await run("inspect held --json");
    expect(json(found.text)).toMatchObject({
      command: "inspect",
      resource: "held",
      state: "held",
      holder: expect.stringMatching(/^[0-9a-f]{12}$/),
      fence: lock.fence,
      quorum: 2,
      votes: names.map((endpoint) => ({ endpoint, state: "held" })),
      cost: { requests: 3, ms: expect.any(Number) },
    });
    expect(text + found.text).not.toContain(lock.token);
    await lock.release();
    expect(await run("inspect held")).toMatchObject({
      code: 3,
      text: expect.stringMatching(/^held is free\n/),
    });
  });

  test("shows and forgets what a single flight shares, apart from a run of the same key", async () => {
    await singleFlight(redlock, "k2", { ttl: 60_000 }, () => "the-value");
    expect((await run("inspect --key k2")).code).toBe(3);
    const { code, text } = await run("inspect --key k2 --flight");
    expect(code).toBe(0);
    expect(text).toMatch(/callers share its value until its\s+ttl has ended/);
    expect(text).not.toContain("the-value");
    expect((await run("forget k2 --yes")).code).toBe(3);
    expect((await run("forget k2 --flight --yes")).code).toBe(0);
    expect((await run("inspect --key k2 --flight")).text).toContain("the next call computes");
    expect((await run("inspect --key k2 --flight --http")).code).toBe(2);
  });

  test("shows a latch", async () => {
    const latch = new CountDownLatch(redlock, "import", { count: 2 });
    await latch.arrive("a");
    const line = "inspect import --kind count-down-latch --count 2";
    const closed = await run(line);
    expect(closed.code).toBe(3);
    expect(closed.text).toMatch(/^import is closed\n {2}arrivals {2}1 of 2, 1 missing\n/);
    await latch.arrive("b");
    const open = await run(`${line} --json`);
    expect(open.code).toBe(0);
    expect(json(open.text)).toMatchObject({
      command: "inspect",
      kind: "CountDownLatch",
      open: true,
      arrived: 2,
    });
    expect(await run(line.replace("2", "3"))).toMatchObject({ code: 1, lines: [] });
  });

  test("reads the variables from a file, and uses the prefix", async () => {
    const directory = await mkdtemp(join(tmpdir(), "redlock-edge-cli-"));
    const file = join(directory, ".dev.vars");
    await writeFile(
      file,
      Object.entries(local.env())
        .map(([name, value]) => `${name}="${value}"`)
        .join("\n"),
    );
    await redlock.acquire("prefixed", { prefix: "other" });
    expect(await run(`inspect prefixed --prefix other --read-env ${file}`, { env: {} })).toMatchObject({
      code: 0,
    });
    expect(await run(`inspect prefixed --read-env ${file}`, { env: {} })).toMatchObject({ code: 3 });
    await rm(directory, { recursive: true });
  });

  test("shows progress after a second, and ends at once when it is stopped", async () => {
    local.endpoints[0]!.faults.add({ fault: "delay", ms: 20_000, times: 1 });
    const stop = new AbortController();
    const waiting = `waiting for 1 endpoint: ${names[0]} (`;
    const { code, warnings, progress } = await run("inspect slow --timeout 20000", {
      stop: stop.signal,
      onProgress: (text) => text.startsWith(waiting) && stop.abort(),
    });
    expect(code).toBe(1);
    expect(warnings).toEqual(["redlock-edge: stopped"]);
    expect(progress.slice(-2)).toEqual([expect.stringMatching(/\(\d+ s\)$/), undefined]);
  });
});

test("watch prints a line for each change until it is stopped", async () => {
  const stop = new AbortController();
  const seen: unknown[] = [];
  const ended = run("watch door --interval 100 --json", {
    stop: stop.signal,
    onLine: (line) => seen.push(json(line).state),
  });
  await expect.poll(() => seen).toEqual(["free"]);
  const lock = await redlock.acquire("door", { ttl: 60_000 });
  // Endpoints are asked side by side, so a look may see a part of an acquire: a change of its own.
  await expect.poll(() => seen.at(-1)).toBe("held");
  await lock.release();
  await expect.poll(() => seen.at(-1)).toBe("free");
  const count = seen.length;
  await sleep(250);
  expect(seen).toHaveLength(count);
  stop.abort();
  const { code, lines } = await ended;
  expect(code).toBe(0);
  expect(json(lines[0]!)).toMatchObject({
    command: "watch",
    change: "first",
    at: expect.stringMatching(/Z$/),
  });
});

describe("free", () => {
  test("frees a lock without a question only with --yes", async () => {
    const lock = await redlock.acquire("to-free", { ttl: 60_000 });
    const before = requests();
    const unasked = await run("free to-free");
    expect(unasked.code).toBe(2);
    expect(unasked.warnings[0]).toMatch(/no terminal to ask at.*--yes/);
    expect(requests()).toBe(before);

    for (const answer of ["", "n", "yesterday"]) {
      expect(await run("free to-free", { answer })).toMatchObject({
        code: 4,
        questions: ["Free to-free? [y/N] "],
        lines: [],
      });
    }
    const asked = await run("free to-free", { answer: "y" });
    expect(asked).toMatchObject({ code: 0, lines: ["to-free is freed"] });
    expect(asked.warnings.join("\n")).toMatch(
      /to-free is held[\s\S]*does not stop the holder: .* checks it, \d+\.\d s at most\.$/,
    );
    expect(await lock.verify()).toBe(false);
    expect(await run("free to-free --yes --json")).toMatchObject({ code: 3 });
    // Nobody is asked, and nothing is sent after the look: somebody may have acquired it since.
    const beforeLook = requests();
    expect(await run("free to-free", { answer: "y" })).toMatchObject({ code: 3, questions: [] });
    expect(requests() - beforeLook).toBe(3);
  });

  test("asks, and frees, where only one endpoint has it", async () => {
    const [first] = endpointsFromEnv(local.env());
    const { send } = httpEndpoint(first!);
    await send(["SET", "redlock:lock:{rest}", "somebody", "PX", 60_000], new AbortController().signal);
    const { code, warnings, questions, lines } = await run("free rest", { answer: "y" });
    expect(questions).toEqual(["Free rest? [y/N] "]);
    expect(warnings.join("\n")).toMatch(/rest is free[\s\S]*nobody has a quorum[\s\S]*Nobody holds it: /);
    expect({ code, lines }).toEqual({ code: 0, lines: ["rest is freed"] });
    expect(await local.endpoints[0]!.execute(["EXISTS", "redlock:lock:{rest}"])).toBe(0);
  });

  test("frees a synchronizer of a kind", async () => {
    const semaphore = new Semaphore(redlock, "partner", { limit: 1 });
    await semaphore.acquire({ ttl: 60_000 });
    expect((await run("free partner --yes")).code).toBe(3);
    // It cannot be looked at: one is always asked.
    const asked = await run("free partner --kind semaphore", { answer: "no" });
    expect(asked).toMatchObject({ code: 4, questions: ["Free partner? [y/N] "] });
    expect(asked.warnings[0]).toBe("This ends all holds of Semaphore partner.");
    const { code, text } = await run("free partner --kind semaphore --yes --json");
    expect(code).toBe(0);
    expect(json(text)).toMatchObject({
      command: "free",
      resource: "partner",
      kind: "Semaphore",
      freed: true,
    });
    expect(await semaphore.tryAcquire()).not.toBeNull();
  });

  test("says what is freed where too few endpoints answer", async () => {
    await redlock.acquire("half", { ttl: 60_000 });
    down(1, 2);
    expect(await run("inspect half --json")).toMatchObject({ code: 1 });
    expect(await run("inspect --key k")).toMatchObject({ code: 1 });
    const { code, text, warnings } = await run("free half --yes --json");
    expect(code).toBe(1);
    expect(warnings).toEqual([expect.stringMatching(/Free it again .*2 of 3 gave no usable answer: /)]);
    expect(json(text)).toEqual({
      command: "free",
      error: { code: "NO_QUORUM", message: expect.any(String) },
    });
  });
});

describe("forget and dead", () => {
  /** Begins a run whose handler never ends. */
  async function crash(key: string, prefix = "redlock") {
    const client = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()), prefix });
    const dying = new Idempotency(client, { maxAttempts: 2, maxHold: 0 });
    const { attempts } = await inspectKey(dying, key);
    void dying.run(key, () => new Promise<never>(() => undefined)).catch(() => undefined);
    await expect.poll(async () => (await inspectKey(dying, key)).attempts).toBe(attempts + 1);
    return dying;
  }

  /** Ends the leases of a prefix, as time would. */
  async function endLeases(prefix: string) {
    for (const options of endpointsFromEnv(local.env())) {
      const { send } = httpEndpoint(options);
      const signal = new AbortController().signal;
      const records = (await send(["KEYS", `${prefix}:idem:*`], signal)) as string[];
      for (const record of records) await send(["DEL", record], signal);
    }
  }

  test("forget removes a result after a yes only", async () => {
    await new Idempotency(redlock).run("paid", () => 1);
    expect((await run("forget paid")).code).toBe(2);
    const no = await run("forget paid", { answer: "no" });
    expect(no.code).toBe(4);
    expect(no.warnings.join("\n")).toMatch(/paid is complete[\s\S]*its effect happens again/);
    expect(await run("forget paid --yes --json")).toMatchObject({ code: 0 });
    expect(await run("forget paid", { answer: "y" })).toMatchObject({ code: 3, questions: [] });
    expect(await run("forget paid --yes")).toMatchObject({
      code: 3,
      lines: ["paid: there was nothing to forget"],
    });
  });

  test("forget asks where only one endpoint has something", async () => {
    await new Idempotency(redlock).run("rest", () => 1);
    for (const endpoint of local.endpoints.slice(1)) await endpoint.execute(["FLUSHALL"]);
    expect(await run("forget rest", { answer: "y" })).toMatchObject({
      code: 0,
      questions: ["Forget rest? [y/N] "],
    });
  });

  test("forget needs every endpoint, and says so", async () => {
    await new Idempotency(redlock).run("kept", () => 1);
    down(3);
    const { code, warnings } = await run("forget kept --yes");
    expect(code).toBe(1);
    expect(warnings[0]).toMatch(/every endpoint must answer.* 1 of 3 gave no usable answer: /);
  });

  test("forget leaves a run that is under way", async () => {
    await crash("running");
    const { code, text } = await run("forget running --yes --json");
    expect(code).toBe(4);
    expect(json(text)).toMatchObject({ forgotten: false, retryAfter: expect.any(Number) });
    expect(await run("dead running --max-attempts 1 --json")).toMatchObject({
      code: 3,
      text: expect.stringContaining('"state":"last-attempt"'),
    });
  });

  test("dead tells a dead key from others, and how to go on", async () => {
    const idempotency = await crash("cursed", "dead");
    await endLeases("dead");
    expect((await run("dead cursed --prefix dead --max-attempts 2")).code).toBe(3);
    await crash("cursed", "dead");
    await endLeases("dead");
    const { code, text } = await run("dead cursed --prefix dead --max-attempts 2");
    expect(code).toBe(0);
    expect(text).toMatch(/^cursed is dead\n/);
    expect(text).toContain("npx redlock-edge forget cursed --prefix dead");
    expect(await run("dead cursed --prefix dead")).toMatchObject({
      code: 1,
      text: expect.stringMatching(/^cursed may be dead/),
    });
    await expect(idempotency.run("cursed", () => 1)).rejects.toMatchObject({ code: "DEAD_KEY", attempts: 2 });
    // Only the count is left: that is something to forget, and one is asked.
    const asked = await run("forget cursed --prefix dead", { answer: "y" });
    expect(asked.questions).toEqual(["Forget cursed? [y/N] "]);
    expect(asked.warnings.join("\n")).toContain("runs the handler, unless the key is dead");
    expect(asked).toMatchObject({ code: 0, lines: ["cursed is forgotten: it can run again"] });
    expect((await run("dead cursed --prefix dead --max-attempts 2 --json")).code).toBe(3);
  });
});

describe("doctor", () => {
  test("finds nothing wrong with endpoints that are well", async () => {
    const { code, text } = await run("doctor");
    expect(code).toBe(0);
    expect(text).toMatch(/3 of 3 ok, a quorum is 2: so locks can be acquired$/);
    for (const name of names) expect(text).toContain(name);
  });

  test("says what is wrong with each endpoint, and keeps the tokens to itself", async () => {
    const env = {
      ...local.env(),
      UPSTASH_REDIS_REST_TOKEN_1: local.endpoints[0]!.readOnlyToken,
      UPSTASH_REDIS_REST_TOKEN_2: "wrong-token",
      UPSTASH_REDIS_REST_URL_4: local.endpoints[2]!.url,
      UPSTASH_REDIS_REST_TOKEN_4: local.endpoints[2]!.token,
      UPSTASH_REDIS_REST_URL_5: "redis://localhost:6379",
      UPSTASH_REDIS_REST_TOKEN_5: "any",
    };
    const { code, text } = await run("doctor --json", { env });
    expect(code).toBe(1);
    const { endpoints, ok } = json(text) as {
      endpoints: { advice: { code: string; fix: string }[] }[];
      ok: boolean;
    };
    expect(ok).toBe(false);
    expect(endpoints.map(({ advice }) => advice.map((each) => each.code))).toEqual([
      ["READ_ONLY"],
      ["TOKEN"],
      expect.any(Array),
      expect.any(Array),
      ["CONFIG"],
    ]);
    // Either of the two may have come first.
    const same = endpoints.slice(2, 4).flatMap(({ advice }) => advice.map((each) => each.code));
    expect(same).toEqual(["SAME_DATABASE"]);
    expect(endpoints[1]!.advice[0]!.fix).toContain("UPSTASH_REDIS_REST_TOKEN_2");
    const plain = await run("doctor", { env });
    for (const { token, readOnlyToken } of local.endpoints) {
      expect(plain.text + text).not.toContain(token);
      expect(plain.text + text).not.toContain(readOnlyToken);
    }
    expect(plain.text + text).not.toContain("wrong-token");
  });

  test("finds an endpoint that is down", async () => {
    down(2);
    const { code, text } = await run("doctor");
    expect(code).toBe(1);
    expect(text).toMatch(/2 of 3 ok, a quorum is 2: so locks can be acquired, with less to spare$/);
  });
});
