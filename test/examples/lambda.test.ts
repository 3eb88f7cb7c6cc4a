import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { expect, it } from "vitest";
import { withLock } from "../../examples/lambda-middy/lock.ts";
import { endpointsFromEnv, type FencedLock, Redlock } from "../../src/index.ts";
import { staged } from "./stage.ts";

const at = staged();
const context = (ms = 30_000) => ({ getRemainingTimeInMillis: () => ms }) as Context;

it("examples/lambda-middy runs one handler of a name at a time, and releases after a failure", async () => {
  const endpoints = endpointsFromEnv(at.local.env());
  const redlock = new Redlock({ endpoints, timeout: 20_000, ttl: 60_000 });
  const handler = middy()
    .use(withLock<{ invoice: string; fails: boolean }>(redlock, ({ invoice }) => invoice))
    .handler(async ({ fails }, { lock }: Context & { lock?: FencedLock }) => {
      expect(await redlock.tryAcquire("42")).toBe(null);
      if (fails) throw new Error("no");
      return lock!.fence;
    });
  const invoke = (fails: boolean) => handler({ invoice: "42", fails }, context());
  const [failed, ...fences] = await Promise.allSettled([invoke(true), invoke(false), invoke(false)]);
  expect(failed).toMatchObject({ status: "rejected", reason: { message: "no" } });
  expect(new Set(fences.map((each) => each.status === "fulfilled" && each.value)).size).toBe(2);
  expect(fences).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
});
