import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { LocalEndpoints } from "../../../local/src/index.ts";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { type Endpoint, EndpointError, type QuorumError, Redlock } from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { type LimitedRedis, startLimitedRedis } from "../../support/limited-redis.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { redisServer } from "../../support/redis-servers.ts";

// What a server would not release is not acquired there: its first lock would be the last one until its ttl is over.

const everything = ["~*", "&*", "+@all"];
const servers: Record<string, { flags?: string[]; rights: string[]; said: RegExp }> = {
  "without EVAL": {
    flags: ["--rename-command", "EVAL", '""'],
    rights: everything,
    said: /unknown command 'EVAL'/,
  },
  "whose user may run no scripts": {
    rights: [...everything, "-@scripting"],
    said: /NOPERM .*'eval/,
  },
};

describe.skipIf(!redisServer).each(Object.entries(servers))(
  "a server %s",
  (_, { flags = [], rights, said }) => {
    let redis: LimitedRedis;
    let local: LocalEndpoints;
    beforeAll(async () => {
      redis = await startLimitedRedis(...flags);
      local = await redis.openAs(...rights);
    });
    afterAll(async () => {
      await local.close();
      await redis.close();
    });

    test.each<[string, (redlock: Redlock, name: string, act: () => void) => Promise<unknown>]>([
      ["using", (redlock, name, act) => redlock.using(name, act)],
      ["using with a fence", (redlock, name, act) => redlock.using(name, { fencing: true }, act)],
      [
        "an idempotent run",
        (redlock, name, act) => new Idempotency(redlock, { wait: Infinity }).run(name, act),
      ],
    ])("%s fails at once with its error, each time, and acquires nothing", async (_, call) => {
      const redlock = new Redlock({ ...patient, endpoints: local.endpoints, wait: Infinity });
      const name = newResource();
      for (let times = 0; times < 2; times += 1) {
        const error = (await rejection(call(redlock, name, () => expect.unreachable()))) as QuorumError;
        expect(error.code).toBe("NO_QUORUM");
        expect(error.message).toMatch(said);
        expect(error.votes[0]!.cause!.permanent).toBe(true);
        // Rollbacks leave tombstones.
        const keys = ((await redis.execute("KEYS", "*")) as unknown[]).map(String);
        expect(keys.filter((key) => !key.startsWith("redlock:void:"))).toEqual([]);
      }
    });
  },
);

describe.skipIf(!redisServer)("a server that executes all", () => {
  let redis: LimitedRedis;
  let local: LocalEndpoints;
  beforeAll(async () => {
    redis = await startLimitedRedis();
  });
  afterEach(() => local.close());
  afterAll(() => redis.close());

  const commands = () => local.endpoints[0].log.entries.map(({ command }) => command[0]);

  test("shows that with its first claim, even if somebody else holds it; from then on claims are native", async () => {
    local = await redis.openAs(...everything);
    const name = newResource();
    await redis.execute("SET", `redlock:lock:{${name}}`, "other", "PX", "60000");
    const redlock = new Redlock({ ...patient, endpoints: local.endpoints });
    expect(await redlock.tryAcquire(name)).toBeNull();
    expect(commands()).toEqual(["EVAL"]);
    expect(local.endpoints[0].log.billed).toBe(4);
    const lock = await redlock.acquire(newResource());
    expect(commands()).toEqual(["EVAL", "SET"]);
    expect(await lock.release()).toBe(true);
    expect(commands()).toEqual(["EVAL", "SET", "EVALSHA"]);
  });
});

test("a native release that was refused is tried before the next claim", async () => {
  const memory = memoryEndpoint({ name: "e", dialect: "redis-8.4" });
  const sent: unknown[] = [];
  let refuses = true;
  const endpoint: Endpoint = {
    name: "e",
    dialect: "redis-8.4",
    exactReplies: true,
    async send(command, signal) {
      sent.push(command[0]);
      if (refuses && command[0] === "DELEX")
        throw new EndpointError("e", "redis", "NOPERM no 'delex' for you");
      return memory.send(command, signal);
    },
  };
  const redlock = new Redlock({ ...patient, endpoints: [endpoint], wait: Infinity });
  const line = vi.spyOn(console, "warn").mockReturnValue();
  expect(await redlock.using("a", () => "done")).toBe("done");
  // Nobody hears events: others would wait for the ttl without a word of the reason.
  expect(line.mock.calls).toEqual([[expect.stringMatching(/no quorum to release "a": .*NOPERM no 'delex'/)]]);
  line.mockRestore();
  sent.splice(0);
  for (const name of ["a", "b"]) {
    const error = (await rejection(redlock.using(name, () => expect.unreachable()))) as QuorumError;
    expect(error.message).toContain("NOPERM no 'delex' for you");
  }
  expect(sent).not.toContain("SET");
  refuses = false;
  sent.splice(0);
  for (const name of ["b", "c"]) await redlock.using(name, () => undefined);
  expect(sent).toEqual(["DELEX", "SET", "DELEX", "SET", "DELEX"]);
});
