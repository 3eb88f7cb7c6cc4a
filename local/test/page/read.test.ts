import { expect, test } from "vitest";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { FairLock, Mailbox, ReadWriteLock, ReentrantLock, Semaphore } from "../../../src/sync/index.ts";
import { start } from "../../src/index.ts";
import { readKeys, scanStep } from "../../src/page/read.ts";

test("reads who holds each kind of lock", async () => {
  const local = await start({ count: 1, engine: "embedded" });
  try {
    const redlock = new Redlock({ endpoints: endpointsFromEnv(local.env()) });
    await redlock.acquire("a", { note: "nightly report" });
    await new Semaphore(redlock, "a", { limit: 2 }).acquire();
    await new FairLock(redlock, "a").acquire();
    await new ReadWriteLock(redlock, "a").acquireWrite();
    await new ReentrantLock(redlock, "a").acquire();
    await new Promise<void>((begun) => {
      void new Mailbox(redlock, "a").post({ id: "m", value: 1 }, () => {
        begun();
        return new Promise(() => undefined);
      });
    });
    const [endpoint] = local.endpoints;
    const { keys } = await scanStep(endpoint!, "0");
    const values = await readKeys(endpoint!, keys);
    const holders = Object.fromEntries(keys.map(({ kind }, index) => [kind, values[index]?.holder]));
    const hash = expect.stringMatching(/^[0-9a-f]{12}$/);
    expect(holders).toMatchObject({
      lock: hash,
      slot: hash,
      fair: hash,
      mailbox: hash,
      "read-write": "1 holder",
      reentrant: "1 holder",
    });
  } finally {
    await local.close();
  }
});
