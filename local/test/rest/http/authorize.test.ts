import { describe, expect, test } from "vitest";
import { accessOf } from "../../../src/rest/http/authorize.ts";

const tokens = { token: "full", readOnlyToken: "reader" };
const requestTo = (path: string, authorization?: string) =>
  new Request(`http://localhost${path}`, {
    ...(authorization !== undefined && { headers: { authorization } }),
  });

describe("accessOf", () => {
  test.each([
    ["/", "Bearer full", "full"],
    ["/", "bearer  full ", "full"],
    ["/", "full", "full"],
    ["/", "Bearer reader", "read-only"],
    ["/?_token=full", undefined, "full"],
    ["/?_token=reader", "Bearer full", "read-only"],
    ["/?_token=wrong", "Bearer full", undefined],
    ["/?_token=", undefined, undefined],
    ["/", "Bearer ful", undefined],
    ["/", "Bearer fulll", undefined],
    ["/", "Bearer Full", undefined],
    ["/", "Bearer ", undefined],
    ["/", undefined, undefined],
  ])("of %s with %j is %s", (path, authorization, access) => {
    expect(accessOf(requestTo(path, authorization), tokens)).toBe(access);
    const without = { token: "full", readOnlyToken: undefined };
    expect(accessOf(requestTo(path, authorization), without)).toBe(access === "full" ? "full" : undefined);
  });
});
