import { afterAll, beforeAll, beforeEach } from "vitest";
import { type LocalEndpoint, type LocalEndpoints, type StartOptions, start } from "../../src/index.ts";

/** An endpoint for the tests of the `describe` around the call; each finds it empty, without scripts and with an empty log. */
export function oneEndpoint(options: StartOptions) {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;
  beforeAll(async () => {
    local = await start({ ...options, count: 1 });
    endpoint = local.endpoints[0];
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    await endpoint.execute(["SCRIPT", "FLUSH"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  /** Sends a request with the full token, unless `init` has another one. `json` is undefined if the body is none. */
  async function request(path: string, init: RequestInit = {}) {
    const headers = { authorization: `Bearer ${endpoint.token}`, ...init.headers };
    const response = await fetch(endpoint.url + path, { ...init, headers });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: text && JSON.parse(text) };
  }

  /** Posts text as it is, and anything else as JSON. */
  function post(value: unknown, path = "/", headers: Record<string, string> = {}) {
    const body = typeof value === "string" ? value : JSON.stringify(value);
    return request(path, { method: "POST", body, headers });
  }

  return {
    get endpoint() {
      return endpoint;
    },
    request,
    post,
    run: async (...command: (string | number)[]): Promise<{ result?: unknown; error?: string }> =>
      (await post(command)).json,
  };
}
