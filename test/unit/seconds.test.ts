import { expect, test, vi } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";

// The times are taken, because tests of users need short ones.

const none = () => undefined;
const rows = () => ({ rows: [] });

/** The package, as nobody has called it yet. */
async function freshPackage() {
  vi.resetModules();
  const { Redlock } = await import("../../src/index.ts");
  const runs = await import("../../src/idempotency/index.ts");
  const sync = await import("../../src/sync/index.ts");
  const inbox = await import("../../src/inbox/index.ts");
  return { redlock: new Redlock({ endpoints: [memoryEndpoint()] }), ...runs, ...sync, ...inbox };
}
type Fresh = Awaited<ReturnType<typeof freshPackage>>;

async function linesOf(use: (fresh: Fresh) => unknown): Promise<unknown[]> {
  using warn = vi.spyOn(console, "warn").mockImplementation(none);
  const fresh = await freshPackage();
  await use(fresh);
  await use(fresh);
  return warn.mock.calls.flat();
}

test.each<[option: string, ms: number, use: (fresh: Fresh, ms: number) => unknown]>([
  // On a busy machine it may be lost.
  ["ttl", 30, ({ redlock }, ttl) => redlock.using("a", { ttl }, none).catch(none)],
  ["lease", 60, (fresh, lease) => new fresh.Idempotency(fresh.redlock, { lease })],
  ["every", 3_600, (fresh, every) => fresh.once(fresh.redlock, "a", { every }, none)],
  ["ttl", 300, (fresh, ttl) => fresh.singleFlight(fresh.redlock, "a", { ttl }, none)],
  ["retention", 604_800, (fresh, retention) => new fresh.Idempotency(fresh.redlock, { retention })],
  ["olderThan", 2_592_000, (fresh, olderThan) => fresh.pruneInbox(rows, { olderThan })],
])("a time that was probably meant in seconds is told once: %s: %s", async (option, ms, use) => {
  const line = `redlock-edge: ${option}: ${ms} is in ms; did you mean ${ms} * 1_000?`;
  expect(await linesOf((fresh) => use(fresh, ms))).toEqual([line]);
});

test("nothing is told of a short time that somebody may want", async () => {
  const lines = await linesOf(async ({ redlock, singleFlight, debounce }) => {
    await redlock.using("a", { ttl: 100, wait: 300, timeout: 50 }, none);
    await debounce(redlock, "a", { window: 1 }, none);
    await singleFlight(redlock, "a", { ttl: 0, lease: 1_000 }, none);
  });
  expect(lines).toEqual([]);
});
