import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { until } from "../support/until.ts";

/** A call to the service that an example uses. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Answers it, if `rule` did not. */
  answer(status: number, body?: string): void;
}

/** The service that an example calls. Its calls are the effects that the tests count. */
export interface Service {
  readonly url: string;
  readonly calls: readonly Call[];
  /** Returns the status to answer at once, or undefined: then the call waits for `call.answer`. */
  rule: (call: Call) => number | undefined;
  /** Waits for the next call that has not been awaited yet. */
  next(): Promise<Call>;
  close(): Promise<void>;
}

/** Starts a service that answers 201 at once. */
async function openService(): Promise<Service> {
  const calls: Call[] = [];
  let awaited = 0;
  const server = createServer(async (incoming, outgoing) => {
    let body = "";
    for await (const chunk of incoming) body += chunk;
    const call: Call = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body,
      answer(status, text = JSON.stringify({ call: calls.indexOf(call) + 1 })) {
        outgoing.writeHead(status, { "content-type": "application/json" });
        outgoing.end(text);
      },
    };
    calls.push(call);
    const status = service.rule(call);
    if (status !== undefined) call.answer(status);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const service: Service = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    rule: () => 201,
    async next() {
      const index = awaited;
      awaited += 1;
      return until(() => calls[index], `call ${index + 1} of the service`);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

/** Three endpoints for a file's tests, in front of real Redis servers where available, and a service for each test. */
export function staged(): { readonly local: LocalEndpoints; readonly service: Service } {
  let local: LocalEndpoints;
  let service: Service;
  beforeAll(async () => {
    local = await start({ count: 3 });
  });
  afterAll(() => local.close());
  beforeEach(async () => {
    service = await openService();
  });
  afterEach(() => service.close());
  return {
    get local() {
      return local;
    },
    get service() {
      return service;
    },
  };
}
