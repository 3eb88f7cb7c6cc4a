import { expect, test, vi } from "vitest";
import { requireInCi } from "./programs.ts";

test.each([
  ["elsewhere", "false", undefined, false],
  ["in CI", "true", undefined, true],
  ["in CI, where another one is optional", "true", "Chromium,PostgreSQL", true],
  ["in CI, where it is optional", "true", "Chromium,redis-server", false],
])("a missing program %s", (_, ci, optional, fails) => {
  vi.stubEnv("CI", ci);
  vi.stubEnv("OPTIONAL_PROGRAMS", optional);
  const required = () => requireInCi(undefined, "redis-server");
  if (fails) expect(required).toThrow("redis-server is not installed");
  else expect(required).not.toThrow();
  expect(() => requireInCi("/usr/bin/redis-server", "redis-server")).not.toThrow();
});
