import { Engine, ReplyError } from "../../local/src/memory/index.ts";
import { type Command, type Dialect, type Endpoint, httpEndpoint, upstashEndpoint } from "../../src/index.ts";
import { type Claim, claimOf, type ParsedCommand, parseCommand } from "./claims.ts";
import { type Distortion, filled } from "./garbage.ts";
import { FuzzTime } from "./virtual-runtime.ts";

/** One request, and what its answer claims. */
export interface Exchange extends ParsedCommand, Claim {
  readonly endpoint: number;
  /** Length of the true answer. */
  readonly bytes: number;
}

/** Endpoints in this process behind a `fetch` that may answer anything. */
export interface Network {
  readonly runtime: FuzzTime;
  readonly endpoints: readonly Endpoint[];
  readonly engines: readonly Engine[];
  /** All requests and answers, in order. */
  readonly exchanges: Exchange[];
  /** Texts that no message may contain. */
  readonly secrets: Set<string>;
  /** While false, all endpoints answer truly. */
  lying: boolean;
}

export interface NetworkOptions {
  readonly dialect: Dialect;
  /** `sdk`: through the adapter for `@upstash/redis` clients. */
  readonly transport: "http" | "sdk";
  /** By endpoint: its answers while it lies. */
  readonly liars: readonly (readonly Distortion[] | undefined)[];
}

/** Opens a network and replaces the global `fetch`. One at a time. */
export function openNetwork({ dialect, transport, liars }: NetworkOptions): Network {
  const runtime = new FuzzTime();
  const engines = liars.map(() => new Engine({ dialect, now: () => runtime.now() }));
  const tokens = liars.map((_, index) => `rest-token-${index}-5ecret5ecret5ecret`);
  const asked: number[] = [];
  const exchanges: Exchange[] = [];
  const heard = transport === "sdk" ? parsedBySdk : (reply: unknown) => reply;
  const network = { runtime, engines, exchanges, secrets: new Set(tokens), lying: false };

  /** Answers one request, and records the exchange. */
  function answer(endpoint: number, command: Command): Answer {
    const liar = network.lying ? liars[endpoint] : undefined;
    const turn = asked[endpoint] ?? 0;
    asked[endpoint] = turn + 1;
    const distortion = liar?.[turn % liar.length] ?? { execute: true, kind: "truth" as const };
    const parsed = parseCommand(command);
    for (const secret of command.join(" ").match(/t[0-9a-f]{32}/g) ?? []) network.secrets.add(secret);
    const truth = distortion.execute ? execute(engines[endpoint]!, command) : { status: 200, body: "" };
    const response = distorted(truth, distortion, (text) => filled(text, command, tokens[endpoint]!));
    const said = usable(response);
    const claim: Claim = said
      ? claimOf(parsed, heard(said.result), transport === "sdk")
      : { said: "nothing" };
    exchanges.push({ endpoint, bytes: truth.body.length, ...parsed, ...claim });
    return response;
  }

  globalThis.fetch = async (url, init) => {
    const endpoint = Number(/^http:\/\/endpoint-(\d+)\//.exec(String(url))?.[1]);
    const { signal } = init as RequestInit;
    return deliver(answer(endpoint, JSON.parse(String(init?.body))), signal as AbortSignal);
  };

  const endpoints = liars.map((_, index): Endpoint => {
    const name = `endpoint-${index}`;
    const token = tokens[index]!;
    if (transport === "http") return httpEndpoint({ url: `http://${name}/`, token, dialect, name });
    const call = async (command: Command) => {
      const response = answer(index, command);
      if (response.end === "hang") return new Promise<never>(() => undefined);
      const said = usable(response);
      if (said) return heard(said.result);
      throw sdkError(response);
    };
    const client = {
      client: { headers: { authorization: `Bearer ${token}` } },
      createScript: () => undefined,
      eval: (script: string, keys: string[], args: unknown[]) =>
        call(["EVAL", script, keys.length, ...keys, ...(args as string[])]),
      evalsha: (sha: string, keys: string[], args: unknown[]) =>
        call(["EVALSHA", sha, keys.length, ...keys, ...(args as string[])]),
    };
    return upstashEndpoint(client, { name, dialect });
  });
  return Object.assign(network, { endpoints });
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /**
   * How the body ends: completely (`whole`), never (`stall`), with a broken connection (`break`); or there is no answer
   * (`hang`), or no connection (`fail`).
   */
  readonly end: "whole" | "stall" | "break" | "hang" | "fail";
}

/** Executes a command, and answers as a REST server would. */
function execute(engine: Engine, command: Command): { status: number; body: string } {
  try {
    return { status: 200, body: JSON.stringify({ result: engine.execute(command) }) };
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return { status: 400, body: JSON.stringify({ error: error.message }) };
  }
}

/** The answer that a distortion makes of the true one. */
function distorted(
  truth: { readonly status: number; readonly body: string },
  { kind, body = "", status = truth.status, headers = {}, at = 0, length }: Distortion,
  fill: (text: string) => string,
): Answer {
  const bytes = new TextEncoder().encode(kind === "body" ? fill(body) : truth.body);
  const answer: Answer = { status, headers, body: bytes, end: "whole" };
  const place = Math.floor(at * bytes.length);
  switch (kind) {
    case "truth":
    case "body":
      return answer;
    case "cut":
      return { ...answer, body: bytes.slice(0, Math.min(length ?? place, bytes.length - 1)) };
    case "flip": {
      // A byte that occurs in no UTF-8 text.
      if (bytes.length > 0) bytes[place] = 0xff;
      return { ...answer, body: bytes };
    }
    case "break":
      return { ...answer, body: bytes.slice(0, place), end: "break" };
    default:
      return { ...answer, end: kind };
  }
}

/** The reply in a valid answer: a 200 with an object that has a result and no error. */
function usable({ status, body, end }: Answer): { readonly result: unknown } | undefined {
  if (status !== 200 || end !== "whole") return undefined;
  try {
    const reply = JSON.parse(new TextDecoder().decode(body));
    if (typeof reply !== "object" || reply === null || Array.isArray(reply)) return undefined;
    const names = Object.keys(reply);
    return names.includes("result") && !names.includes("error") ? reply : undefined;
  } catch {
    return undefined;
  }
}

async function deliver({ status, headers, body, end }: Answer, signal: AbortSignal): Promise<Response> {
  const aborted = new Promise<never>((_, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
  });
  aborted.catch(() => undefined);
  if (end === "hang") return aborted;
  if (end === "fail") throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
  if ([204, 205, 304].includes(status)) return new Response(null, { status, headers });
  const stream = new ReadableStream({
    start(controller) {
      if (body.length > 0) controller.enqueue(body);
      if (end === "whole") controller.close();
      if (end === "break") controller.error(new TypeError("terminated"));
    },
    async pull(controller) {
      if (end === "stall") await aborted.catch((reason) => controller.error(reason));
    },
  });
  return new Response(stream, { status, headers });
}

/** The SDK parses what looks like JSON, except numbers that would not print the same again. */
function parsedBySdk(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(parsedBySdk);
  if (typeof value !== "string") return value;
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === "number" && String(parsed) !== value ? value : parsed;
  } catch {
    return value;
  }
}

/** Errors of the SDK quote the answer. */
function sdkError({ status, body, end }: Answer): unknown {
  const text = new TextDecoder().decode(body);
  if (end !== "whole") return new TypeError("fetch failed");
  try {
    const { error } = JSON.parse(text);
    return Object.assign(new Error(`${error}, command was: ${text}`), { name: "UpstashError" });
  } catch {
    if (status === 500) return undefined; // other clients may throw anything
    return Object.assign(new Error(`Unable to parse response body: ${text}`), {
      name: "UpstashJSONParseError",
    });
  }
}
