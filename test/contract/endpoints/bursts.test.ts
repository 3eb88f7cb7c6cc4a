import { afterEach, describe, expect, test, vi } from "vitest";
import { type MemoryEndpoint, memoryEndpoint, VirtualTime } from "../../../local/src/memory/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { type Command, Redlock, type RedlockOptions } from "../../../src/index.ts";

// More calls at once than the servers do in time. Each server executes one command after another, which takes it a while,
// whether or not somebody still waits; all in virtual time.

const [timeout, wait, ttl] = [1_000, 3_000, 600_000];
const name = (index: number) => `n${index}`;

/** Three servers, whose commands take so many ms each, behind the global `fetch`. */
function serversWith(costs: readonly number[], roundTrip = 2) {
  const runtime = new VirtualTime();
  const servers = costs.map((_, index) => memoryEndpoint({ name: `e${index}`, dialect: "upstash", runtime }));
  const freeAt = costs.map(() => 0);
  vi.stubGlobal("fetch", (url: string, { body, signal }: RequestInit) => {
    const index = Number(/e(\d)\.example/.exec(url)![1]);
    const isPipeline = url.endsWith("/pipeline");
    const commands: Command[] = isPipeline ? JSON.parse(String(body)) : [JSON.parse(String(body))];
    freeAt[index] =
      Math.max(runtime.elapsed + roundTrip / 2, freeAt[index]!) + costs[index]! * commands.length;
    return new Promise((resolve, reject) => {
      signal!.addEventListener("abort", () => reject(signal!.reason));
      runtime.at(freeAt[index]!, () => {
        const replies = commands.map((command) => ({ result: servers[index]!.engine.execute(command) }));
        runtime.timer(roundTrip / 2, () => resolve(Response.json(isPipeline ? replies : replies[0])));
      });
    });
  });
  let errors = 0;
  const redlock = (options: Partial<RedlockOptions> = {}) =>
    new Redlock({
      timeout,
      wait,
      ttl,
      ...options,
      runtime,
      endpoints: servers.map((server) => ({
        url: `https://${server.name}.example`,
        token: "t",
        dialect: "upstash",
      })),
      onEvent: ({ type }) => {
        if (type === "endpointError") errors += 1;
      },
    });
  return { runtime, servers, redlock, errors: () => errors };
}

/** How a burst of calls has ended: how many were granted, the codes of the others, and the keys that nobody holds. */
async function burst(
  { runtime, servers, redlock }: ReturnType<typeof serversWith>,
  count: number,
  { releases = false, ...options }: Partial<RedlockOptions> & { readonly releases?: boolean } = {},
) {
  const client = redlock(options);
  const calls = Array.from({ length: count }, async (_, index) => {
    const lock = await client.acquire(name(index));
    return releases ? await lock.release() : true;
  });
  const ended = await runtime.settle(Promise.allSettled(calls));
  // What was still to be rolled back.
  await runtime.advance(3 * timeout);
  const held = ended.map(({ status }) => status === "fulfilled" && !releases);
  const standing = held.flatMap((isHeld, index) =>
    isHeld ? [] : servers.filter((server) => stands(server, index)),
  );
  const codes = new Set(ended.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : [])));
  return {
    granted: ended.filter(({ status }) => status === "fulfilled").length,
    codes: [...codes],
    standing,
  };
}

const stands = ({ engine }: MemoryEndpoint, index: number) =>
  engine.execute(["EXISTS", `redlock:lock:{${name(index)}}`]) === 1;

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a burst of calls", () => {
  test.each([
    ["that the servers do within a timeout", [0.5, 0.5, 0.5]],
    ["that takes the servers several timeouts", [2, 2, 2]],
    ["of which a minority does only a part", [0.5, 2, 8]],
  ])("%s is granted as a whole", async (_, costs) => {
    const world = serversWith(costs);
    expect(await burst(world, 1_000)).toEqual({ granted: 1_000, codes: [], standing: [] });
    // Hardly any command has waited in vain.
    if (costs[2] === costs[0]) expect(world.errors()).toBeLessThan(50);
  });

  test.each([
    // Between what the second fastest server does in `wait`, and in the timeout after that.
    ["6 ms", [6, 6, 6], {}, 500, 667],
    // Not as far: the first window is what they do in two timeouts. Most of it is given up, and its rollbacks go first.
    ["20 ms", [20, 20, 20], {}, 25, 200],
    ["6 ms, and that is released at once", [6, 6, 6], { releases: true }, 220, 500],
  ])(
    "whose commands take %s is granted as far as there is time, and leaves nothing",
    async (_, costs, options, least, most) => {
      const { granted, codes, standing } = await burst(serversWith(costs), 1_000, options);
      expect(granted).toBeGreaterThanOrEqual(least);
      expect(granted).toBeLessThanOrEqual(most);
      expect(codes).toEqual(["NO_QUORUM"]);
      expect(standing).toEqual([]);
    },
  );
});

test("servers that are fast and far away get more with each round trip", async () => {
  const world = serversWith([0.01, 0.01, 0.01], 100);
  const client = world.redlock();
  const calls = Array.from({ length: 1_000 }, (_, index) => client.acquire(name(index)));
  await world.runtime.settle(Promise.all(calls));
  // 100, 200, 400, and all the rest.
  expect(world.runtime.elapsed).toBeLessThan(450);
});

test("a release is not held up by many that acquire", async () => {
  const world = serversWith([6, 6, 6]);
  const client = world.redlock();
  const lock = await world.runtime.settle(client.acquire("held"));
  const others = Array.from({ length: 1_000 }, (_, index) => client.tryAcquire(name(index)));
  const ended = Promise.allSettled(others);
  await world.runtime.advance(10);
  expect(await world.runtime.settle(lock.release())).toBe(true);
  await world.runtime.settle(ended);
});

test("a call whose turn does not come within `wait` is not sent, and its error says so", async () => {
  const runtime = new VirtualTime();
  const sent: Command[] = [];
  const send = (command: Command) => {
    sent.push(command);
    return new Promise(() => undefined);
  };
  const endpoints = [{ name: "e", dialect: "upstash", exactReplies: true, send } as const];
  const redlock = new Redlock({ endpoints, runtime, wait: 500, timeout: 100 });
  // All turns are taken, by calls that are not answered.
  for (let call = 0; call < 100; call += 1) void redlock.acquire(name(call), { ttl, timeout: ttl });
  await runtime.advance(0);
  const before = sent.length;
  const controller = new AbortController();
  const late = [redlock.acquire("late"), redlock.acquire("late", { signal: controller.signal })];
  const ended = Promise.allSettled(late);
  await runtime.advance(10);
  controller.abort("enough");
  const unsent = {
    code: "NO_QUORUM",
    message: expect.stringContaining("not sent in time: others were sent first"),
  };
  expect(await runtime.settle(ended)).toMatchObject([
    { reason: { ...unsent, votes: [{ endpoint: "e", outcome: "pending" }] } },
    { reason: "enough" },
  ]);
  expect(runtime.elapsed).toBeLessThanOrEqual(500);
  const run = new Idempotency(redlock).run("late", {}, () => 1);
  expect(await runtime.settle(run.catch((reason: unknown) => reason))).toMatchObject(unsent);
  expect(sent).toHaveLength(before);
});
