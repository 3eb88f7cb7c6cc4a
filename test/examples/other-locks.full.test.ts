import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { Redlock, type RedlockOptions } from "../../src/index.ts";
import { forceRelease } from "../../src/inspect/index.ts";
import { compile, openProject } from "../docs/compile.ts";
import { beyondTests } from "../support/beyond-tests.ts";
import { gate } from "../support/link.ts";
import { onDemand } from "../support/on-demand.ts";
import { rejection } from "../support/outcomes.ts";
import { until } from "../support/until.ts";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

// The locks of other packages, by these: what they do, and that their types fit the interfaces of the packages.

const at = staged();
// biome-ignore lint/suspicious/noExplicitAny: the compiler has the examples' types in the first test
type Any = any;

/** An example. Its package's types are not installed where this file is compiled. */
const load = async (path: string): Promise<Any> => import(/* @vite-ignore */ resolve(path));

/** The client of one process. */
const processOf = (options: Partial<RedlockOptions> = {}) =>
  new Redlock({ endpoints: at.local.endpoints, timeout: beyondTests, ...options });

it("compile against the types of the packages", async () => {
  const packages = onDemand();
  const paths = ["tanstack-ai/locks.ts", "chat-sdk/state.ts", "medusa/locking.ts"];
  const programs = paths.map((path) => {
    const page = join("examples", path);
    const text = readFileSync(page, "utf8");
    return { page, line: 1, path, language: "ts", text, output: undefined } as const;
  });
  const project = await openProject(programs);
  try {
    const modules = join(project.folder, "node_modules");
    for (const name of ["@tanstack/ai", "chat", "@medusajs/types"]) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(packages, name), join(modules, name));
    }
    // The framework brings 600 packages. This is what its /types says.
    const framework = join(modules, "@medusajs/framework");
    mkdirSync(framework);
    const exports = { "./types": { types: "./types.d.ts" } };
    writeFileSync(join(framework, "package.json"), JSON.stringify({ name: "@medusajs/framework", exports }));
    writeFileSync(join(framework, "types.d.ts"), 'export * from "@medusajs/types";');
    expect(existsSync(join(modules, "@medusajs/types/dist/index.d.ts"))).toBe(true);
    expect(await compile(project, programs, "nodenext")).toEqual([]);
  } finally {
    project.remove();
  }
});

describe("examples/tanstack-ai", () => {
  it("aborts the section's signal when the lock is lost, and rejects", async () => {
    const key = randomUUID();
    const redlock = processOf({ ttl: 2_000 });
    const store = (await load("examples/tanstack-ai/locks.ts")).redlockStore(redlock);
    const lost = store.withLock(key, async (signal: AbortSignal) => {
      await forceRelease(redlock, `tanstack-ai:${key}`);
      await until(() => signal.aborted);
      return "ended well";
    });
    expect(await rejection(lost)).toMatchObject({ code: "LOCK_LOST" });
  });
});

describe("examples/chat-sdk", () => {
  it("locks a thread for one instance, and extends and releases the lock that has this token", async () => {
    const { withRedlock } = await load("examples/chat-sdk/state.ts");
    const [one, other] = [withRedlock({}, processOf()), withRedlock({}, processOf())];
    const thread = randomUUID();
    const lock = (await one.acquireLock(thread, 30_000))!;
    expect(lock.threadId).toBe(thread);
    expect(await other.acquireLock(thread, 30_000)).toBe(null);
    expect(lock.expiresAt - Date.now()).toBeGreaterThan(20_000);
    expect(await one.extendLock(lock, 60_000)).toBe(true);
    await other.forceReleaseLock(thread);
    const next = (await other.acquireLock(thread, 30_000))!;
    expect(await one.extendLock(lock, 60_000)).toBe(false);
    await one.releaseLock(lock);
    expect(await one.acquireLock(thread, 30_000)).toBe(null);
    await other.releaseLock(next);
    expect(await other.extendLock(next, 30_000)).toBe(false);
    await one.releaseLock((await one.acquireLock(thread, 30_000))!);
  });
});

describe("examples/medusa", () => {
  /** The provider of one process. */
  async function providerOf(): Promise<Any> {
    const example = await importInNode<Any>("medusa/locking.ts", at.local.env());
    return new example.default.services[0]();
  }

  it("runs the jobs of two processes one after the other, and all keys are locked or none", async () => {
    const [one, other] = [await providerOf(), await providerOf()];
    const [order, item] = [randomUUID(), randomUUID()];
    const entered = gate();
    const mayLeave = gate();
    const ended: string[] = [];
    const first = one.execute([order, item], async (signal: AbortSignal) => {
      entered.open();
      await mayLeave.passed;
      ended.push("first");
      return signal.aborted;
    });
    await entered.passed;
    const never = other.execute([randomUUID(), item], () => expect.unreachable(), { timeout: 0.01 });
    expect(await rejection(never)).toMatchObject({ code: "LOCK_HELD" });
    const second = other.execute(item, async () => ended.push("second"), { timeout: 600 });
    mayLeave.open();
    expect(await first).toBe(false);
    await second;
    expect(ended).toEqual(["first", "second"]);
  });

  it("gives a key to one owner, until it is released", async () => {
    const [one, other] = [await providerOf(), await providerOf()];
    const [order, item] = [randomUUID(), randomUUID()];
    const mine = { ownerId: "mine" };
    await one.acquire(order, { ...mine, expire: 600 });
    await one.acquire(order, { ...mine, expire: 600 });
    for (const process of [one, other]) {
      expect(await rejection(process.acquire([item, order], { ownerId: "theirs" }))).toMatchObject({
        code: "LOCK_HELD",
      });
      expect(await process.release(order, { ownerId: "theirs" })).toBe(false);
    }
    // What was acquired before the key that was held is free again.
    await other.acquire(item);
    expect(await other.release(item)).toBe(true);
    expect(await one.release(order, mine)).toBe(true);
    expect(await one.release(order, mine)).toBe(false);
    await other.acquire(order);
    await other.releaseAll();
    await one.acquire(order, mine);
    await one.releaseAll({ ownerId: "theirs" });
    expect(await rejection(other.acquire(order))).toMatchObject({ code: "LOCK_HELD" });
    await one.releaseAll(mine);
    await other.acquire(order);
    await other.releaseAll();
  });
});
