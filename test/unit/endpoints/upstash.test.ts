import { describe, expect, test, vi } from "vitest";
import { type UpstashClient, upstashEndpoint } from "../../../src/endpoints/upstash.ts";

// What the endpoint asks of a client; test/contract/endpoints has the real one.

const { signal } = new AbortController();

const clientWith = (client: object) => {
  const never = () => Promise.reject(new Error("not used"));
  const made = { eval: never, evalsha: never, createScript: () => undefined, client };
  return made satisfies UpstashClient;
};

const requester = {
  baseUrl: "https://eu1.upstash.io",
  headers: { authorization: "Bearer a-secret-token" },
};

describe("a subscription", () => {
  test("goes to the client's address with its token", async () => {
    const fetching = vi.fn<typeof fetch>(async () => new Response("data: subscribe,a,1\n\n"));
    vi.stubGlobal("fetch", fetching);
    const endpoint = upstashEndpoint(clientWith(requester));
    await endpoint.subscribe?.("a", signal);
    vi.unstubAllGlobals();
    const [address, options] = fetching.mock.calls[0]!;
    expect(address).toBe("https://eu1.upstash.io/subscribe/a");
    expect(options?.headers).toMatchObject({ authorization: "Bearer a-secret-token" });
  });

  test.each([{}, { baseUrl: "https://a.example" }, { headers: requester.headers }])(
    "is not offered where the client exposes no address or token: %j",
    (hidden) => {
      expect(upstashEndpoint(clientWith(hidden)).subscribe).toBeUndefined();
    },
  );
});
