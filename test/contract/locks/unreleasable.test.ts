import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
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

test("a server shows with its first claim, even of a lock that is held, that it releases; from then on claims are native", async () => {
  const memory = memoryEndpoint({ dialect: "redis" });
  memory.engine.execute(["SET", "redlock:lock:{held}", "other", "PX", 60_000]);
  const redlock = new Redlock({ ...patient, endpoints: [memory] });
  expect(await redlock.tryAcquire("held")).toBeNull();
  const lock = await redlock.acquire("a");
  expect(await lock.release()).toBe(true);
  const sent = memory.log.map(({ command, billed }) => `${command[0]} ${billed}`);
  expect(sent).toEqual(["EVAL 4", "SET 1", "EVALSHA 3"]);
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
