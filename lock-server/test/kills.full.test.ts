import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { Draw } from "../../evidence/sim/draw.ts";
import { Redlock } from "../../src/index.ts";
import { startWorkerd, token } from "../../test/support/lock-servers.ts";
import { until } from "../../test/support/until.ts";

const kills = Number(process.env.KILLS ?? 10);
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

test(`${kills} kills of workerd between writes lose nothing that was acknowledged`, {
  timeout: 20_000 * kills,
}, async () => {
  console.info(`SEED=${seed}`);
  const draw = new Draw(seed);
  const persist = await mkdtemp(join(tmpdir(), "lock-server-"));
  onTestFinished(() => rm(persist, { recursive: true, force: true }));
  /** What the server has acknowledged, by name: the token of a lock that is held, or null after its release. */
  const acknowledged = new Map<string, string | null>();
  for (let kill = 0; kill <= kills; kill += 1) {
    const { url, worker } = await startWorkerd({ persist });
    expect(await stored(url, [...acknowledged.keys()])).toEqual([...acknowledged.values()]);
    const endpoint = { url, token, dialect: "redis-8.4" } as const;
    const redlock = new Redlock({ endpoints: [endpoint], ttl: 3_600_000, timeout: 2_000 });
    let isDown = false;
    const writers = [0, 1, 2, 3].map(async (number) => {
      for (let index = 0; !isDown; index += 1) {
        const name = `k${kill}-${number}-${index}`;
        const lock = await redlock.tryAcquire(name).catch(() => undefined);
        // A release may be executed although nobody hears of it.
        if (lock && index % 2 === 0) acknowledged.set(name, lock.token);
        else if (await lock?.release()) acknowledged.set(name, null);
      }
    });
    const enough = acknowledged.size + draw.integer(10, 100);
    await until(() => acknowledged.size >= enough, "the writes");
    // At any moment of the writes that follow.
    await sleep(draw.between(0, 5));
    // It sends SIGKILL.
    await worker.dispose();
    isDown = true;
    await Promise.all(writers);
  }
  const released = [...acknowledged.values()].filter((value) => value === null).length;
  console.info(`${acknowledged.size - released} locks were held, and ${released} released`);
  expect(Math.min(released, acknowledged.size - released)).toBeGreaterThan(kills);
});

/** What is stored at the keys of locks. */
async function stored(url: string, names: readonly string[]): Promise<unknown> {
  if (names.length === 0) return [];
  const headers = { authorization: `Bearer ${token}` };
  const body = JSON.stringify(["MGET", ...names.map((name) => `redlock:lock:{${name}}`)]);
  const response = await fetch(url, { method: "POST", headers, body });
  return ((await response.json()) as { result: unknown }).result;
}
