import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { start } from "../../src/index.ts";

describe.runIf(redisServer !== undefined)("a start that fails halfway", () => {
  test("leaves no process and no file behind", async () => {
    const scratch = await mkdtemp(join(tmpdir(), "redlock-edge-scratch-"));
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
    const { port } = blocker.address() as AddressInfo;
    vi.stubEnv("TMPDIR", scratch);
    try {
      await expect(start({ count: 2, engine: "redis", port: port - 1 })).rejects.toThrow(/EADDRINUSE/);
      expect(await readdir(scratch)).toEqual([]);
      // The directory is an argument of the shell that guards a server.
      const { stdout } = await promisify(execFile)("ps", ["-eo", "args"]);
      expect(stdout).not.toContain(scratch);
    } finally {
      vi.unstubAllEnvs();
      await new Promise((resolve) => blocker.close(resolve));
      await rm(scratch, { recursive: true });
    }
  });
});

describe("start refuses", () => {
  test.each([
    [{ count: 0 }, RangeError, "0"],
    [{ port: 70_000 }, RangeError, "70000"],
    [{ engine: "dragonfly" as "auto" }, RangeError, "dragonfly"],
    [{ dialect: "valkey" as "redis" }, RangeError, "valkey"],
    [{ token: "" }, TypeError, "token"],
    [{ readOnlyToken: 'quote"' }, TypeError, "readOnlyToken"],
    [{ redis: ["http://localhost"] }, TypeError, "redis://"],
    [{ redis: ["redis://localhost"], count: 2 }, RangeError, "2"],
    [{ redis: ["redis://localhost"], engine: "embedded" }, RangeError, "embedded"],
  ] as const)("%j", async (options, type, value) => {
    const failure = await start(options).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(type);
    expect((failure as Error).message).toContain(value);
  });
});
