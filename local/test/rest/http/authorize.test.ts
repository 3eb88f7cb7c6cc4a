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
  });

  test("of a request without a token is undefined, also if there is no read-only token", () => {
    expect(accessOf(requestTo("/"), { token: "full" })).toBeUndefined();
    expect(accessOf(requestTo("/", "Bearer "), { token: "full", readOnlyToken: undefined })).toBeUndefined();
  });
});
