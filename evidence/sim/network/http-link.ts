import { setMaxListeners } from "node:events";
import { type Command, type Endpoint, EndpointError, httpEndpoint } from "../../../src/index.ts";
import type { Draw } from "../draw.ts";
import { readCommand } from "../wire/cell-requests.ts";
import type { Server } from "../world/server.ts";
import { type Answer, type Carrier, createLink, failure, type LinkOptions, type Message } from "./link.ts";

// A link that goes through the library's own HTTP endpoint: its `fetch` answers with statuses and JSON texts, some of
// them wrong, truncated, in pieces, or never complete.

/** What may be wrong with an answer. */
const flaws = [
  "truncated",
  "a page of HTML",
  "with a wrong status",
  "without a result",
  "with result and error",
  "an error with status 200",
  "cut off in the body",
  "never complete",
] as const;

type Flaw = (typeof flaws)[number];

/**
 * What may be wrong with the answer to several commands. A page, or a status such as 404, says that the address takes no
 * pipelines: no gateway says that of one that it has passed on.
 */
const ofPipelines = flaws.filter((flaw) => flaw !== "a page of HTML" && flaw !== "with a wrong status");

/** The names under which garbled answers are counted. */
export const garbledReplies: readonly string[] = flaws.map((flaw) => `reply ${flaw}`);

type HttpLinkOptions = Omit<LinkOptions, "exactReplies"> & {
  /** Whether some clients reach it through a gateway, and some try an address at which commands are in the path. */
  readonly gateways?: boolean;
};

/** By address: who answers there. Only one simulation runs at a time. */
const addresses = new Map<string, HttpLink>();
/** By origin: the server there. */
const servers = new Map<string, Server>();

/** Answers every `fetch` from the simulation. @returns undoes it */
export function interceptFetch(): () => void {
  const own = globalThis.fetch;
  globalThis.fetch = (address, init) => {
    const [, url = "", action, channel] = /^(.*?)(pipeline|subscribe\/(.*))?$/.exec(String(address))!;
    const link = addresses.get(url) ?? addresses.get(url.replace(/\/$/, ""));
    if (!init) throw new Error(`the library fetched ${String(address)} without a request`);
    if (link && channel) return link.respondWithStream(decodeURIComponent(channel), init);
    if (link) return link.respond(init, action === "pipeline");
    return runPath(new URL(String(address)), init);
  };
  return () => {
    globalThis.fetch = own;
    addresses.clear();
    servers.clear();
  };
}

/** As Upstash does: what is in the path is the command, and the body its last argument. The network is perfect. */
async function runPath({ origin, pathname }: URL, { body }: RequestInit): Promise<Response> {
  const server = servers.get(origin);
  if (!server) throw new Error(`the library fetched an unknown address: ${origin}`);
  const words = pathname.split("/").filter((word) => word !== "");
  const text = JSON.stringify({ result: server.execute([...words, String(body)]) });
  const headers = new Headers({ "content-length": String(text.length) });
  return asResponse({ status: 200, headers, body: null, text: () => Promise.resolve(text) });
}

/** The path of a gateway, behind which the API is. */
const basePath = "/redis";

/** The HTTP endpoint through which a process reaches a server. */
export function createHttpLink(options: HttpLinkOptions): Endpoint {
  const { world, process, server, gateways = false, batches = false } = options;
  const { name, dialect } = server;
  const url = `https://${process.name}.${name}.example/`;
  const link = new HttpLink(options);
  addresses.set(url, link);
  const origin = url.slice(0, -1);
  addresses.set(origin + basePath, link);
  servers.set(origin, server);
  const maxRequests = batches ? world.draw.pick([1, 2, 6]) : undefined;
  const known = { token: "token", name, dialect, maxRequests };
  const kind = gateways ? world.draw.pick(["direct", "gateway", "with a path"] as const) : "direct";
  if (kind === "with a path") {
    try {
      // Accepted, its OK would look like a grant.
      return httpEndpoint({ ...known, url: `${url}set/foo` });
    } catch {
      world.count("address refused");
    }
  }
  if (kind === "gateway") world.count("behind a gateway");
  return httpEndpoint({ ...known, url, ...(kind === "gateway" && { basePath }) });
}

/** How often a server dies before it has executed all commands of a request. */
const diesBetween = 0.05;

/** Carries the messages that share a request as one: they are lost, late, or executed twice together. */
class HttpLink implements Carrier {
  readonly #options: HttpLinkOptions;
  readonly #link: Endpoint;
  readonly #draw: Draw;
  /** The messages of a request that is being sent. */
  #bundle: Message[] = [];
  /** Note the last answers: what the client does with them is only known when it has read the whole body. */
  #notes: (() => void)[] = [];

  constructor(options: HttpLinkOptions) {
    this.#options = options;
    this.#draw = options.world.draw.fork();
    this.#link = createLink({
      ...options,
      carrier: this,
      exactReplies: true,
      whenRead: (note) => void this.#notes.push(note),
    });
  }

  carry(message: Message): void {
    this.#bundle.push(message);
  }

  async respond({ body, signal }: RequestInit, isPipeline: boolean): Promise<Response> {
    const until = signal ?? new AbortController().signal;
    // One for each command that shares the request.
    setMaxListeners(0, until);
    const sent = JSON.parse(String(body)) as Command | Command[];
    const commands = isPipeline ? (sent as Command[]) : [sent as Command];
    const answer = await this.#answer(commands, until, isPipeline);
    const { status, text, note } = answer;
    const { world, wire, process } = this.#options;
    const draw = this.#draw;
    if (isPipeline) world.count("commands share a request");
    const flaw = draw.chance(world.network.garbled ?? 0)
      ? draw.pick(isPipeline ? ofPipelines : flaws)
      : undefined;
    if (flaw) {
      world.count(`reply ${flaw}`);
      for (const command of commands) wire.failed(process, readCommand(command));
    }
    return this.#response(flaw ? spoil(flaw, { status, text }, draw) : { status, text, note }, until);
  }

  /** A stream of messages, or what a server says that has none. */
  async respondWithStream(channel: string, { signal }: RequestInit): Promise<Response> {
    const { world } = this.#options;
    const draw = this.#draw;
    const text = () => Promise.resolve("");
    const without = (status: number) => asResponse({ status, headers: new Headers(), body: null, text });
    if (draw.chance(world.network.garbled ?? 0)) {
      world.count("subscription garbled");
      return without(draw.pick([200, 204, 400, 404, 429, 502]));
    }
    try {
      const body = await this.#link.subscribe?.(channel, signal ?? new AbortController().signal);
      return asResponse({ status: 200, headers: new Headers(), body: body ?? null, text });
    } catch (error) {
      if (!(error instanceof EndpointError)) throw error;
      if (signal?.aborted) throw signal.reason;
      if (error.kind === "http") return without(503);
      throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
    }
  }

  /** The answer of the network, as HTTP. */
  async #answer(commands: readonly Command[], signal: AbortSignal, isPipeline: boolean): Promise<HttpAnswer> {
    this.#bundle = [];
    const sent = commands.map((command) => this.#link.send(command, signal));
    const [first, ...others] = this.#bundle;
    if (first) this.#options.carrier.carry(others.length === 0 ? first : this.#bundled(first, this.#bundle));
    const replies = await Promise.allSettled(sent);
    const notes = this.#notes.splice(0);
    const parts: object[] = [];
    for (const reply of replies) {
      if (reply.status === "fulfilled") {
        parts.push({ result: reply.value });
        continue;
      }
      const error: unknown = reply.reason;
      if (!(error instanceof EndpointError)) throw error;
      if (signal.aborted) throw signal.reason;
      if (error.kind === "http") return { status: 503, text: "<h1>Service Unavailable</h1>" };
      if (error.kind !== "redis") throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
      parts.push({ error: error.message });
    }
    const note = () => notes.forEach((each) => void each());
    if (isPipeline) return { status: 200, text: JSON.stringify(parts), note };
    return { status: "error" in parts[0]! ? 400 : 200, text: JSON.stringify(parts[0]), note };
  }

  #bundled({ command, request }: Message, bundle: readonly Message[]): Message {
    const { world, server } = this.#options;
    // The answers to a bundle travel as the reply to its first message.
    const asReply = (answers: readonly Answer[]): Answer => ({ reply: answers as never });
    const answersIn = (answer: Answer) =>
      "reply" in answer ? (answer.reply as unknown as Answer[]) : undefined;
    return {
      command,
      request,
      commands: bundle.length,
      isOpen: () => bundle.some(({ isOpen }) => isOpen()),
      execute: (copy) => {
        // Not while a crowd comes: a rollback that is lost leaves its value.
        if (server.pace > 0 || !this.#draw.chance(diesBetween))
          return asReply(bundle.map(({ execute }) => execute(copy)));
        world.count("pipeline executed in part");
        for (const { execute } of bundle.slice(0, this.#draw.integer(1, bundle.length - 1))) execute(copy);
        return failure(server, "network", "connection reset");
      },
      answer: (answer) => {
        const answers = answersIn(answer);
        bundle.forEach((message, index) => void message.answer(answers?.[index] ?? answer));
      },
    };
  }

  /** A response whose body comes at once, or in pieces. */
  #response(answer: HttpAnswer, signal: AbortSignal): Response {
    const { status, text, note, ends = "whole" } = answer;
    const bytes = new TextEncoder().encode(text);
    const draw = this.#draw;
    if (ends === "whole" && draw.chance(0.7)) {
      note?.();
      const headers = new Headers({ "content-length": String(bytes.length) });
      return asResponse({ status, headers, body: null, text: () => Promise.resolve(text) });
    }
    const at = draw.integer(0, bytes.length);
    const pieces = [bytes.slice(0, at), bytes.slice(at)].filter(({ length }) => length > 0);
    const read = this.#reader(pieces, { ends, note, signal });
    const body = { getReader: () => ({ read, cancel: () => Promise.resolve() }) };
    return asResponse({ status, headers: new Headers(), body, text: () => Promise.resolve(text) });
  }

  /** Reads one piece after another. The last one may be followed by an error, or by nothing. */
  #reader(
    pieces: Uint8Array[],
    { ends, note, signal }: { ends: Ending; note: (() => void) | undefined; signal: AbortSignal },
  ): () => Promise<{ readonly value?: Uint8Array }> {
    const { world, process } = this.#options;
    const draw = this.#draw;
    return () =>
      new Promise((resolve, reject) => {
        const abandon = () => reject(signal.reason);
        if (signal.aborted) return abandon();
        signal.addEventListener("abort", abandon);
        const value = pieces.shift();
        const deliver = () => {
          signal.removeEventListener("abort", abandon);
          if (signal.aborted) return;
          if (value && pieces.length === 0 && ends === "whole") note?.();
          if (value || ends === "whole") resolve(value ? { value } : {});
          else reject(new TypeError("terminated"));
        };
        if (!value && ends === "whole") deliver();
        else if (value || ends === "broken") {
          world.scheduler.at(world.now + draw.between(0, 5), () => process.deliver(deliver));
        }
      });
  }
}

/** How a body ends: complete, with an error, or not at all. */
type Ending = "whole" | "broken" | "silent";

interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  readonly ends?: Ending;
  /** Called when the client has got the whole answer. */
  readonly note?: (() => void) | undefined;
}

/** An answer that proves nothing any more: of which the library must not believe what is left. */
function spoil(flaw: Flaw, { status, text }: HttpAnswer, draw: Draw): HttpAnswer {
  const part = text.slice(0, draw.integer(0, text.length - 1));
  switch (flaw) {
    case "truncated":
      return { status, text: part };
    case "a page of HTML":
      return { status: 200, text: "<!doctype html><title>Sign in</title>" };
    case "with a wrong status":
      return { status: draw.pick([201, 204, 302, 401, 404, 429, 500, 502]), text };
    case "without a result":
      return { status: 200, text: draw.pick(["{}", "[]", "null", '"OK"', "1", '[{"result":"OK"}]', ""]) };
    case "with result and error":
      return { status: 200, text: `${text.slice(0, -1)},"error":"ERR it failed","result":"OK"}` };
    case "an error with status 200":
      return { status: 200, text: '{"error":"ERR it failed"}' };
    case "cut off in the body":
      return { status, text: part, ends: "broken" };
    case "never complete":
      return { status, text: part, ends: "silent" };
  }
}

/** What the library reads of a response. */
interface ResponseParts {
  readonly status: number;
  readonly headers: Headers;
  readonly body:
    | null
    | ReadableStream<Uint8Array>
    | { getReader(): { read(): Promise<{ value?: Uint8Array }>; cancel(): Promise<void> } };
  text(): Promise<string>;
}

/** Not a real Response: reading its body would take turns of the event loop, in real time. */
function asResponse(parts: ResponseParts): Response {
  return parts as unknown as Response;
}
