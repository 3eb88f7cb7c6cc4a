import { describe, expect, test, vi } from "vitest";
import {
  type UpstashClient,
  type UpstashEndpointOptions,
  upstashEndpoint,
} from "../../../src/endpoints/upstash.ts";
import type { EndpointError } from "../../../src/errors.ts";
import { rejection } from "../../support/outcomes.ts";

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

  const failing = async (error: unknown) => {
    const client = clientWith(() => Promise.reject(error), requester);
    const sending = upstashEndpoint(client).send(["EVAL", "s", 1, "long-key-name", "long-argument"], signal);
    return (await rejection(sending)) as EndpointError;
  };
  const named = (name: string, message: string) => Object.assign(new Error(message), { name });

  test("that Redis refuses is an error without the command, the token and the client's own error", async () => {
    const error = await failing(
      named("UpstashError", "ERR long-argument at long-key-name by a-secret-token, command was: [EVAL]"),
    );
    expect(error).toMatchObject({ kind: "redis", endpoint: "eu1.upstash.io" });
    expect(error.cause).toBe(undefined);
    expect(error.message).toBe("eu1.upstash.io: ERR … at … by …");
  });

  test("without an answer is an error of the network, and one without a usable answer is malformed", async () => {
    expect(await failing(named("TypeError", "fetch failed"))).toMatchObject({ kind: "network" });
    const quoting = await failing(named("UpstashJSONParseError", "unexpected <html>"));
    expect(quoting).toMatchObject({
      kind: "malformed",
      message: expect.stringMatching(/: no usable reply$/),
    });
  });
});

describe("upstashEndpoint", () => {
  const of = (client: object, options?: UpstashEndpointOptions) =>
    upstashEndpoint(
      clientWith(async () => null, client),
      options,
    );

  test("is named after the client's host where that is known, and has its dialect", () => {
    expect(of(requester)).toMatchObject({ name: "eu1.upstash.io", dialect: "upstash" });
    expect(of({ baseUrl: "http://localhost:8080" })).toMatchObject({
      name: "localhost:8080",
      dialect: "redis",
    });
    for (const unknown of [{}, { baseUrl: "" }, { baseUrl: undefined }]) {
      expect(of(unknown)).toMatchObject({ name: "@upstash/redis", dialect: "redis" });
    }
    expect(of(requester, { name: "eu", dialect: "redis" })).toMatchObject({ name: "eu", dialect: "redis" });
  });

  test("does not promise exact replies: the client may retry", () => {
    expect(of(requester).exactReplies ?? false).toBe(false);
  });

  test("works with a client whose requester is not known", async () => {
    const { client: _, ...client } = clientWith(() => Promise.reject(new Error("down")));
    const sending = upstashEndpoint(client).send(["EVAL", "s", 0], signal);
    expect(await rejection(sending)).toMatchObject({ message: "@upstash/redis: the request failed (down)" });
  });

  test("refuses what is not a client of @upstash/redis", () => {
    for (const wrong of [undefined, null, {}, { eval: () => 1, evalsha: () => 1 }]) {
      expect(() => upstashEndpoint(wrong as unknown as UpstashClient)).toThrow(TypeError);
    }
    expect(() => of({}, { name: 1 as unknown as string })).toThrow(TypeError);
    expect(() => of({}, { dialect: "valkey" as "redis" })).toThrow(TypeError);
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
