import { describe, expect, test, vi } from "vitest";
import { type UpstashClient, upstashEndpoint } from "../../../src/endpoints/upstash.ts";

// What the endpoint asks of a client; test/contract/endpoints has the real one.

const { signal } = new AbortController();

function clientWith(answer: () => Promise<unknown>, client: object = {}) {
  const made = {
    eval: vi.fn((_script: string, _keys: string[], _args: unknown[]) => answer()),
    evalsha: vi.fn((_sha: string, _keys: string[], _args: unknown[]) => answer()),
    createScript: () => undefined,
    client,
  };
  return made satisfies UpstashClient;
}

const requester = {
  baseUrl: "https://eu1.upstash.io",
  headers: { authorization: "Bearer a-secret-token" },
};

describe("a command", () => {
  test.each(["EVAL", "EVALSHA"])("%s is passed on with its keys and arguments, as texts", async (name) => {
    const client = clientWith(async () => "reply");
    const [used, other] = name === "EVAL" ? [client.eval, client.evalsha] : [client.evalsha, client.eval];
    const endpoint = upstashEndpoint(client);
    expect(await endpoint.send([name, "script", 2, "k1", "k2", "a", 7], signal)).toBe("reply");
    expect(used).toHaveBeenCalledExactlyOnceWith("script", ["k1", "k2"], ["a", "7"]);
    expect(other).not.toHaveBeenCalled();
    await endpoint.send([name, "script", 0, "a"], signal);
    expect(used).toHaveBeenLastCalledWith("script", [], ["a"]);
  });
});

describe("a subscription", () => {
  test("goes to the client's address with its token", async () => {
    const fetching = vi.fn<typeof fetch>(async () => new Response("data: subscribe,a,1\n\n"));
    vi.stubGlobal("fetch", fetching);
    const endpoint = upstashEndpoint(clientWith(async () => 1, requester));
    await endpoint.subscribe?.("a", signal);
    vi.unstubAllGlobals();
    const [address, options] = fetching.mock.calls[0]!;
    expect(address).toBe("https://eu1.upstash.io/subscribe/a");
    expect(options?.headers).toMatchObject({ authorization: "Bearer a-secret-token" });
  });

  test.each([{}, { baseUrl: "https://a.example" }, { headers: requester.headers }])(
    "is not offered where the client exposes no address or token: %j",
    (hidden) => {
      expect(upstashEndpoint(clientWith(async () => 1, hidden)).subscribe).toBeUndefined();
    },
  );
});
