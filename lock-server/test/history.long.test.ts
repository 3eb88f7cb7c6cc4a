import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { explain, linearizable } from "../../evidence/linearizability/checker.ts";
import {
  type ExtensionRecord,
  type GrantRecord,
  grantHistory,
} from "../../evidence/linearizability/history.ts";
import { lockModel } from "../../evidence/linearizability/models.ts";
import { Draw } from "../../evidence/sim/draw.ts";
import { httpEndpoint, type Lock, Redlock } from "../../src/index.ts";
import { startLockServers, token } from "../../tools/lock-servers.ts";

// Clients of three lock servers, which lose replies, are slow, and are killed and started again on their storage. What the
// clients saw must have a legal order.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const most = Number(process.env.GRANTS ?? 80);
const resources = ["a", "b"];
const now = () => performance.now();

test(`a history of ${most} grants is linearizable`, { timeout: 600_000 }, async () => {
  console.info(`SEED=${seed}`);
  const servers = await startLockServers();
  const records: GrantRecord[] = [];
  const isOver = () => grantsOf(records).length >= most;
  const endpoints = servers.endpoints.map(({ url, name }) =>
    httpEndpoint({ url, name, token, dialect: "redis-8.4" }),
  );
  const clients = Array.from({ length: 6 }, (_, index) =>
    client(
      `client ${index}`,
      new Draw(seed + index),
      new Redlock({ endpoints, timeout: 1_000 }),
      isOver,
      records,
    ),
  );
  await Promise.all([...clients, disturb(servers.endpoints, new Draw(seed - 1), isOver)]);
  await servers.close();
  for (const history of grantHistory(records).values()) {
    const result = linearizable(lockModel, history);
    expect(result.outcome, explain(result)).toBe("yes");
  }
  for (const resource of resources) {
    const fences = grantsOf(records).filter((record) => record.resource === resource && record.fence);
    fences.sort((one, other) => one.acquired! - other.acquired!);
    expect(fences.map(({ fence }) => fence)).toEqual(
      fences.map(({ fence }) => fence).sort((a, b) => a! - b!),
    );
  }
});

const grantsOf = (records: readonly GrantRecord[]) =>
  records.filter(({ acquired }) => acquired !== undefined);

/** Acquires, extends and releases, and writes down what it saw. */
async function client(
  holder: string,
  draw: Draw,
  redlock: Redlock,
  isOver: () => boolean,
  records: GrantRecord[],
): Promise<void> {
  while (!isOver()) {
    const resource = draw.pick(resources);
    const invoked = now();
    let lock: Lock | null | undefined;
    try {
      lock = await redlock.acquire(resource, {
        ttl: draw.pick([1_000, 2_000]),
        wait: 1_000,
        fencing: true,
      });
    } catch {
      // Refused, or of unknown outcome: what it may have got was rolled back, or ends with its ttl.
      records.push({ resource, holder, invoked });
      continue;
    }
    const acquired = now();
    const extensions: ExtensionRecord[] = [];
    let validUntil = acquired + lock.remaining();
    await sleep(draw.integer(0, 60));
    if (draw.chance(0.4) && lock.remaining() > 0) {
      const began = now();
      const extended = await lock.extend(2_000).then(
        () => true,
        (error: { code?: string }) => (error.code === "LOCK_LOST" ? false : undefined),
      );
      // After the end of its validity the loss says nothing of the servers.
      const known = extended || now() < validUntil ? extended : undefined;
      extensions.push({ invoked: began, returned: now(), extended: known });
      // The clock is read first: whatever delays the second line must not make the validity longer.
      const at = now();
      const left = lock.remaining();
      validUntil = left > 0 ? at + left : Math.min(validUntil, at);
    }
    await sleep(draw.integer(0, 60));
    const base = { resource, holder, invoked, acquired, validUntil, extensions, fence: lock.fence };
    if (draw.chance(0.2)) {
      // Left to its ttl: the holder relies on it until its validity ends.
      await sleep(Math.max(0, lock.remaining()));
      records.push(base);
      continue;
    }
    const releaseInvoked = now();
    const answer = await lock.release().catch(() => undefined);
    const releaseReturned = now();
    // After the end of its validity, it may have freed some servers while the ttl freed the others.
    const released = answer || releaseReturned < validUntil ? answer : undefined;
    records.push({ ...base, releaseInvoked, releaseReturned, released });
  }
}

/** Disturbs one server at a time, so that a quorum is left. */
async function disturb(
  endpoints: Awaited<ReturnType<typeof startLockServers>>["endpoints"],
  draw: Draw,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const endpoint = draw.pick(endpoints);
    const kind = draw.pick(["kill", "drop-reply", "delay", "drop-request"] as const);
    if (kind === "kill") {
      await endpoint.stop();
      await endpoint.start();
    } else {
      endpoint.faults.add(
        kind === "delay" ? { fault: kind, ms: [50, 400] } : { fault: kind, probability: 0.5 },
      );
      await sleep(draw.integer(100, 600));
      endpoint.faults.clear();
    }
    await sleep(draw.integer(50, 300));
  }
}
