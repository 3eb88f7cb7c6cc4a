import { describe, expect, test } from "vitest";
import { Faults } from "../../../src/faults/faults.ts";
import { answerFaults, isLoopback } from "../../../src/rest/http/faults-api.ts";

describe("/_faults", () => {
  /** Sends a request to an endpoint that has one rule. */
  function setUp() {
    const faults = new Faults([{ fault: "duplicate" }]);
    async function send(
      method: string,
      rules?: unknown,
      { token = "full", remoteAddress = "127.0.0.1" }: { token?: string; remoteAddress?: string } = {},
    ) {
      const request = new Request("http://localhost/_faults", {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(rules !== undefined && { body: JSON.stringify(rules) }),
      });
      const response = await answerFaults(request, { faults, token: "full", remoteAddress });
      const { result } = (await response.json()) as { result?: { fault: string }[] };
      return { status: response.status, result: result?.map(({ fault }) => fault) };
    }
    const active = () => faults.list().map(({ fault }) => fault);
    return { send, active };
  }

  test("POST adds a rule or several, PUT replaces all, and DELETE removes them", async () => {
    const { send, active } = setUp();
    expect(await send("GET")).toEqual({ status: 200, result: ["duplicate"] });
    expect(await send("POST", { fault: "down" })).toEqual({ status: 200, result: ["duplicate", "down"] });
    expect(await send("PUT", [{ fault: "reorder" }])).toEqual({ status: 200, result: ["reorder"] });
    expect(active()).toEqual(["reorder"]);
    expect(await send("DELETE")).toEqual({ status: 200, result: [] });
    expect(active()).toEqual([]);
  });

  test("PUT with a rule that is not valid changes nothing", async () => {
    const { send, active } = setUp();
    expect(await send("PUT", [{ fault: "down" }, { fault: "bogus" }])).toMatchObject({ status: 400 });
    expect(active()).toEqual(["duplicate"]);
  });

  test.each([
    ["from another machine", { remoteAddress: "192.168.1.2" }, 403],
    ["from another machine, over IPv6", { remoteAddress: "::ffff:10.0.0.1" }, 403],
    ["with another token", { token: "other" }, 401],
  ])("%s is refused", async (_, from, status) => {
    const { send, active } = setUp();
    for (const method of ["GET", "POST", "PUT", "DELETE"]) {
      const rules = method.startsWith("P") ? [] : undefined;
      expect(await send(method, rules, from)).toEqual({ status, result: undefined });
    }
    expect(active()).toEqual(["duplicate"]);
  });
});

test.each([
  ["127.0.0.1", true],
  ["::ffff:127.0.0.1", true],
  ["[::1]", true],
  ["localhost", true],
  ["0.0.0.0", false],
  ["::ffff:10.0.0.1", false],
  ["localhost.example", false],
  // A name, and no address.
  ["127.example", false],
])("isLoopback(%s) is %s", (address, expected) => {
  expect(isLoopback(address)).toBe(expected);
});
