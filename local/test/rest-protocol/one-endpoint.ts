import { afterAll, beforeAll, beforeEach } from "vitest";
import { type LocalEndpoint, type LocalEndpoints, type StartOptions, start } from "../../src/index.ts";

/** An endpoint for the tests of the `describe` around the call; each finds it empty, without scripts and with an empty log. */
export function oneEndpoint(options: StartOptions) {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;
  beforeAll(async () => {
    local = await start({ ...options, count: 1 });
    endpoint = local.endpoints[0]!;
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    await endpoint.execute(["SCRIPT", "FLUSH"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  /** Sends a request with the full token, unless `init` has another one. */
  const send = (path: string, init: RequestInit = {}) =>
    fetch(endpoint.url + path, {
      ...init,
      headers: { authorization: `Bearer ${endpoint.token}`, ...init.headers },
    });

  /** What it has answered; `json` is undefined where the body is none. */
  async function request(path: string, init: RequestInit = {}) {
    const response = await send(path, init);
    const text = await response.text();
    const isJson = text !== "" && response.headers.get("content-type")?.includes("json");
    const json = isJson ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }

  /** Posts text and bytes as they are, and anything else as JSON. */
  function post(value: unknown, path = "/", headers: Record<string, string> = {}) {
    const isBody = typeof value === "string" || value instanceof Uint8Array;
    const body = isBody ? (value as BodyInit) : JSON.stringify(value);
    return request(path, { method: "POST", body, headers });
  }

  return {
    get endpoint() {
      return endpoint;
    },
    send,
    request,
    post,
    run: async (...command: (string | number)[]): Promise<{ result?: unknown; error?: string }> =>
      (await post(command)).json,
  };
}
