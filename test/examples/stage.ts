import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type DevEndpoints, startEndpoints } from "../../src/dev/index.ts";
import type { KeyKind } from "../../src/idempotency/digest.ts";
import { recordName } from "../support/stores.ts";
import { until } from "../support/until.ts";

/** A call of the service that an example stands in front of. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Whether the caller hung up before the answer. */
  aborted: boolean;
  /** Answers it, where the service answers nothing by itself. */
  answer(status: number, body?: string): void;
}

/** The service that an example calls: its effects can be counted here. */
export interface Service {
  readonly url: string;
  readonly calls: readonly Call[];
  /** Answers a call at once; undefined: it waits for `call.answer`. */
  rule: (call: Call) => number | undefined;
  /** Waits for the next call that has not been awaited yet. */
  next(): Promise<Call>;
  close(): Promise<void>;
}

/** Starts a service that answers 201 at once. */
export async function openService(): Promise<Service> {
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
      aborted: false,
      answer(status, text = JSON.stringify({ call: calls.indexOf(call) + 1 })) {
        outgoing.writeHead(status, { "content-type": "application/json" });
        outgoing.end(text);
      },
    };
    outgoing.once("close", () => {
      call.aborted ||= !outgoing.writableFinished;
    });
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
      return until(() => calls[index], `call ${index + 1} of the service`, 30_000);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

/** Three endpoints in front of real servers, where there are some. */
export interface Stage {
  readonly local: DevEndpoints;
  /** Runs a command on every endpoint. */
  each(...command: readonly (string | number)[]): Promise<unknown[]>;
  /** ms that what is stored for an idempotency key lives on, by endpoint; −2: nothing is. */
  recordsLeft(key: string, scope: string, kind?: KeyKind): Promise<number[]>;
  /** As if the time of a crashed run's lease had passed. */
  endLease(key: string, scope: string, kind?: KeyKind): Promise<void>;
  /** Makes all endpoints answer 502, until the function returned is called. */
  outage(): () => void;
}

/** Starts the endpoints. */
export async function openStage(): Promise<Stage> {
  const local = await startEndpoints({ count: 3 });
  const each = (...command: readonly (string | number)[]) =>
    Promise.all(local.endpoints.map((endpoint) => endpoint.execute(command)));
  const recordsLeft = async (key: string, scope: string, kind: KeyKind = "http") =>
    (await each("PTTL", await recordName(key, scope, kind))) as number[];
  return {
    local,
    each,
    recordsLeft,
    async endLease(key, scope, kind = "http") {
      const ended = await each("PEXPIRE", await recordName(key, scope, kind), 1);
      if (!ended.includes(1)) throw new Error(`nothing is stored for ${key}`);
      const gone = async () => (await recordsLeft(key, scope, kind)).every((left) => left === -2);
      await until(gone, "the lease's end");
    },
    outage() {
      for (const { faults } of local.endpoints) faults.add({ fault: "status", status: 502 });
      return () => {
        for (const { faults } of local.endpoints) faults.clear();
      };
    },
  };
}
