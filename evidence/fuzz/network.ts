import { Engine, ReplyError, VirtualTime } from "../../local/src/memory/index.ts";
import { type Command, type Dialect, type Endpoint, httpEndpoint } from "../../src/index.ts";
import type { Lie } from "./lies.ts";

/** Endpoints in this process behind a `fetch`, some of which may lie. */
export interface Network {
  readonly runtime: VirtualTime;
  readonly endpoints: readonly Endpoint[];
  /** Texts that no message may contain. */
  readonly secrets: Set<string>;
  /** By endpoint: its answers; undefined: always the truth. */
  liars: readonly (readonly Lie[] | undefined)[];
}

/** Opens a network and replaces the global `fetch`. One at a time. */
export function openNetwork(count: number, dialect: Dialect = "redis"): Network {
  // A present date, as clocks of the engine and fences have them.
  const runtime = new VirtualTime({ start: 1_763_714_567_890 });
  const engines = Array.from({ length: count }, () => new Engine({ dialect, now: () => runtime.now() }));
  const tokens = engines.map((_, index) => `rest-token-${index}-5ecret5ecret5ecret`);
  const endpoints = tokens.map((token, index) =>
    httpEndpoint({ url: `http://endpoint-${index}/`, token, dialect, name: `endpoint-${index}` }),
  );
  const network: Network = { runtime, endpoints, secrets: new Set(tokens), liars: [] };
  const asked = engines.map(() => 0);

  globalThis.fetch = async (url, init) => {
    const endpoint = Number(/^http:\/\/endpoint-(\d+)\//.exec(String(url))?.[1]);
    const { signal, body } = init as RequestInit;
    const command: Command = JSON.parse(String(body));
    for (const secret of command.join(" ").match(/t[0-9a-f]{32}/g) ?? []) network.secrets.add(secret);
    const answers = network.liars[endpoint];
    const told = answers?.[asked[endpoint]! % answers.length];
    asked[endpoint]! += 1;
    const truth = told?.executes === false ? '{"result":"OK"}' : execute(engines[endpoint]!, command);
    return respond(truth, told, signal as AbortSignal);
  };
  return network;
}

/** Executes a command. @returns the body of the answer */
function execute(engine: Engine, command: Command): string {
  try {
    return JSON.stringify({ result: engine.execute(command) });
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return JSON.stringify({ error: error.message });
  }
}

async function respond(truth: string, told: Lie | undefined, signal: AbortSignal): Promise<Response> {
  if (!told) return asResponse(truth.startsWith('{"error"') ? 400 : 200, truth);
  const { kind, status = 200, body = truth, at = 0 } = told;
  if (kind === "silent") return new Promise((_, reject) => onAbort(signal, reject));
  if (kind === "whole") return asResponse(status, body);
  return asResponse(200, truth.slice(0, Math.floor(at * truth.length)), kind === "broken");
}

/** Not a real Response: reading its body would take turns of the event loop, in real time. */
function asResponse(status: number, body: string, isBroken = false): Response {
  const headers = new Headers({ "content-length": String(body.length) });
  const text = async () => {
    if (isBroken) throw new TypeError("terminated");
    return body;
  };
  return { status, headers, text } as Partial<Response> as Response;
}

function onAbort(signal: AbortSignal, reject: (reason: unknown) => void): void {
  if (signal.aborted) reject(signal.reason);
  else signal.addEventListener("abort", () => reject(signal.reason));
}
