import type { Reply } from "../testing/engine.ts";
import { Faults } from "../testing/faults.ts";
import { plainReply } from "./backend.ts";
import { CommandLog, type LoggedCommand } from "./command-log.ts";
import { accessOf } from "./http/authorize.ts";
import { answerFaults } from "./http/faults-api.ts";
import { declaredSize, upstashHandler } from "./http/handler.ts";
import { type Answer, withFaults } from "./http/inject-faults.ts";
import { type Listener, listen } from "./http/listen.ts";
import type { Memory, Store } from "./store.ts";

const maxBody = 10 * 1024 * 1024;

/** What one endpoint is made of. */
export interface EndpointSettings {
  readonly name: string;
  readonly store: Store;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  readonly readOnlyToken: string;
  /** Whether `/_faults` is served. */
  readonly faultsApi: boolean;
  readonly onLog: ((entry: LoggedCommand) => void) | undefined;
}

/** One local endpoint: a port that speaks Upstash's REST protocol, and the Redis behind it. */
export class DevEndpoint {
  /** `endpoint-1`, `endpoint-2`, … */
  readonly name: string;
  readonly token: string;
  /** May only read. */
  readonly readOnlyToken: string;
  /** What goes wrong on the way to this endpoint. Restarts keep the rules. */
  readonly faults: Faults = new Faults();
  /** The commands that came over HTTP, and what they would have cost. */
  readonly log: CommandLog;
  readonly #settings: EndpointSettings;
  readonly #answer: (request: Request, signal: AbortSignal) => Promise<Answer>;
  #listener: Listener | undefined;
  #port: number;

  private constructor(settings: EndpointSettings) {
    const { name, token, readOnlyToken, store } = settings;
    this.name = name;
    this.token = token;
    this.readOnlyToken = readOnlyToken;
    this.log = new CommandLog(settings.onLog);
    this.#settings = settings;
    this.#port = settings.port;
    const handle = upstashHandler({ backend: store.backend, token, readOnlyToken, log: this.log, maxBody });
    this.#answer = withFaults(handle, (command) => this.faults.plan(command));
  }

  /** Starts to listen. Rejects when the port cannot be had. */
  static async open(settings: EndpointSettings): Promise<DevEndpoint> {
    const endpoint = new DevEndpoint(settings);
    await endpoint.#listen();
    return endpoint;
  }

  /** Where it listens: the `url` of `new Redlock({ endpoints: [{ url, token }] })`. */
  get url(): string {
    return `http://${reachable(this.#settings.host)}:${this.#port}`;
  }

  /** `redis://…` of the server behind it; undefined for the embedded engine. */
  get redisUrl(): string | undefined {
    return this.#settings.store.redisUrl;
  }

  /**
   * Process id of the redis-server behind it, for SIGSTOP and SIGCONT; undefined for other engines and while it
   * is stopped.
   */
  get pid(): number | undefined {
    return this.#settings.store.pid;
  }

  /**
   * ms by which the engine's clock is ahead of this machine's, negative for behind. Default 0. Setting it on a
   * real Redis throws a `TypeError`.
   */
  get clockOffset(): number {
    return this.#settings.store.clockOffset;
  }

  set clockOffset(ms: number) {
    this.#settings.store.clockOffset = ms;
  }

  /**
   * A crash: open connections break, new ones are refused, and a redis-server of our own is killed with
   * SIGKILL. Requests that a fault still holds back are never run. Stopping twice is the same as once.
   */
  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.close();
    await this.#settings.store.stop();
  }

  /**
   * Comes back on the same port. `memory`: `"kept"` (default) with everything that was acknowledged, `"lost"`
   * empty, cached scripts included. Does nothing while it runs. A Redis given by URL cannot lose its memory
   * (`TypeError`).
   */
  async start(options: { memory?: Memory } = {}): Promise<void> {
    if (this.#listener) return;
    await this.#settings.store.start(options.memory ?? "kept");
    await this.#listen();
  }

  /**
   * Straight to the engine, past HTTP, faults and log: for looking at the state in a test. Rejects with a
   * `ReplyError` when the command fails.
   *
   * @example
   * expect(await endpoint.execute(["PTTL", "redlock:invoice:42"])).toBeGreaterThan(0);
   */
  async execute(command: readonly (string | number)[]): Promise<Reply> {
    const { reply } = await this.#settings.store.backend.execute(command.map(String));
    return plainReply(reply);
  }

  /** Stops for good; nothing of it is left. */
  async close(): Promise<void> {
    await this.stop();
    await this.#settings.store.close();
  }

  async #listen(): Promise<void> {
    const { host, token, readOnlyToken, faultsApi } = this.#settings;
    this.#listener = await listen(
      async (request, remoteAddress, closing) => {
        if (faultsApi && new URL(request.url).pathname === "/_faults") {
          return answerFaults(request, { faults: this.faults, token, remoteAddress });
        }
        this.log.countRequest();
        return this.#answer(request, closing);
      },
      {
        host,
        port: this.#port,
        keepBody: maxBody + 1,
        // Nobody without a token can fill the memory; the handler refuses the request by its head as well.
        reads: (head) =>
          accessOf(head, { token, readOnlyToken }) !== undefined && declaredSize(head.headers) <= maxBody,
      },
    );
    this.#port = this.#listener.port;
  }
}

/** What is bound to all addresses is reached at loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
