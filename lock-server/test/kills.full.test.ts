import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { Draw } from "../../evidence/sim/draw.ts";
import { Redlock } from "../../src/index.ts";
import { startWorkerd, token, type Workerd } from "../../test/support/lock-servers.ts";

// What was acknowledged is there after SIGKILL, on the same storage: locks that are held, and those that were released.

const kills = Number(process.env.KILLS ?? 10);
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** The processes of workerd that this one has started. */
async function running(): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(ids.map((id) => readFile(`/proc/${id}/stat`, "utf8").catch(() => "")));
  return stats.flatMap((stat) => {
    const [, id, name, parent] = /^(\d+) \((.*)\) \S (\d+)/.exec(stat) ?? [];
    return name === "workerd" && Number(parent) === process.pid ? [id!] : [];
  });
}

test(`${kills} kills of workerd between writes lose nothing that was acknowledged`, {
  timeout: 20_000 * kills,
}, async () => {
  console.info(`SEED=${seed}`);
  const draw = new Draw(seed);
  const persist = await mkdtemp(join(tmpdir(), "lock-server-"));
  onTestFinished(() => rm(persist, { recursive: true, force: true }));
  const held = new Map<string, string>();
  const released = new Set<string>();
  let checked = 0;
  for (let kill = 0; kill <= kills; kill += 1) {
    const others = new Set(await running());
    const workerd = await startWorkerd({ persist });
    const pid = (await running()).find((one) => !others.has(one))!;
    checked += await check(workerd, held, released);
    const writing = write(workerd, kill, held, released);
    await writing.hasWritten(draw.integer(10, 100));
    // At any moment of the writes that follow.
    await sleep(draw.between(0, 5));
    process.kill(Number(pid), "SIGKILL");
    await writing.end();
    await workerd.worker.dispose().catch(() => undefined);
  }
  console.info(`${kills} kills, ${held.size} locks held and ${released.size} released, ${checked} checks`);
  expect(held.size).toBeGreaterThan(kills);
  expect(released.size).toBeGreaterThan(kills);
});

/** Acquires and releases, and remembers what the server has acknowledged. */
function write(
  { url }: Workerd,
  kill: number,
  held: Map<string, string>,
  released: Set<string>,
): { hasWritten(count: number): Promise<void>; end(): Promise<void> } {
  const endpoint = { url, token, dialect: "redis-8.4" } as const;
  const redlock = new Redlock({ endpoints: [endpoint], ttl: 3_600_000, timeout: 2_000 });
  let isDown = false;
  let acknowledged = 0;
  let onWritten: () => void = () => undefined;
  async function worker(number: number): Promise<void> {
    for (let index = 0; !isDown; index += 1) {
      const name = `k${kill}-${number}-${index}`;
      const lock = await redlock.tryAcquire(name).catch(() => undefined);
      if (!lock) continue;
      // Its release may be executed although nobody hears of it.
      const isReleased = index % 2 > 0 && (await lock.release().catch(() => undefined));
      if (isReleased) released.add(name);
      else if (index % 2 === 0) held.set(name, lock.token);
      else continue;
      acknowledged += 1;
      onWritten();
    }
  }
  const workers = Promise.all([0, 1, 2, 3].map(worker));
  return {
    hasWritten: (count) =>
      new Promise((resolve) => {
        onWritten = () => {
          if (acknowledged >= count) resolve();
        };
      }),
    async end() {
      isDown = true;
      await workers;
    },
  };
}

/** Compares all that was acknowledged with what is stored. Returns how many keys there were. */
async function check({ url }: Workerd, held: Map<string, string>, released: Set<string>): Promise<number> {
  const names = [...held.keys(), ...released];
  if (names.length === 0) return 0;
  const headers = { authorization: `Bearer ${token}` };
  const body = JSON.stringify(["MGET", ...names.map((name) => `redlock:lock:{${name}}`)]);
  const { result } = (await (await fetch(url, { method: "POST", headers, body })).json()) as {
    result: (string | null)[];
  };
  expect(result).toEqual(names.map((name) => held.get(name) ?? null));
  return names.length;
}
