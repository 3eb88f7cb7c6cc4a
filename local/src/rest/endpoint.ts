import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import { Faults } from "../faults/faults.ts";
import { Line } from "../faults/line.ts";
import { systemRuntime } from "../runtime.ts";
import { plainReply } from "./backend.ts";
import { CommandLog, type LoggedCommand } from "./command-log.ts";
import { upstashHandler } from "./http/handler.ts";
import { withFaults } from "./http/inject-faults.ts";
import { type Listener, listen } from "./http/listen.ts";
import { type Observer, observed } from "./observe.ts";
import type { Memory, Store } from "./store.ts";

/** Settings of one endpoint. */
export interface EndpointSettings {
  readonly name: string;
  readonly store: Store;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  readonly readOnlyToken: string;
  readonly keepsAlive?: boolean | undefined;
  readonly onLog: ((entry: LoggedCommand) => void) | undefined;
}

/** One local endpoint: a port that speaks Upstash's REST protocol, and the Redis behind it. Made by `start`. */
export class LocalEndpoint {
  /** `endpoint-1`, `endpoint-2`, … */
  readonly name: string;
  /** The token that allows every command. */
  readonly token: string;
  /** The token that allows only reading commands. */
  readonly readOnlyToken: string;
  /** The faults of requests to this endpoint. A restart keeps the rules. */
  readonly faults: Faults = new Faults();
  /** The commands that came over HTTP, and what Upstash would bill for them. */
  readonly log: CommandLog;
  readonly #settings: EndpointSettings;
  readonly #line: Line;
  readonly #answer: ReturnType<typeof withFaults>;
  #observer: Observer | undefined;
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
    const { backend } = store;
    const handle = upstashHandler({ backend, token, readOnlyToken, log: this.log });
    this.#line = new Line(this.faults, systemRuntime.timer);
    this.#answer = withFaults(handle, this.faults, this.#line);
  }

  /** Opens the port. Rejects when that fails. */
  static async open(settings: EndpointSettings): Promise<LocalEndpoint> {
    const endpoint = new LocalEndpoint(settings);
    await endpoint.#listen();
    return endpoint;
  }

  /** The address of the endpoint: the `url` of `new Redlock({ endpoints: [{ url, token }] })`. */
  get url(): string {
    return `http://${reachable(this.#settings.host)}:${this.#port}`;
  }

  /** Whether the port is open: false after {@link stop}. */
  get running(): boolean {
    return this.#listener !== undefined;
  }

  /** `redis://…` URL of the server behind it; undefined for the embedded engine. */
  get redisUrl(): string | undefined {
    return this.#settings.store.redisUrl;
  }

  /**
   * Process id of the redis-server behind it, for example to send SIGSTOP. Undefined while the endpoint is stopped,
   * and if this process did not start a server.
   */
  get pid(): number | undefined {
    return this.#settings.store.pid;
  }

  /**
   * Stops the endpoint as a crash does: breaks open connections, refuses new ones, and sends SIGKILL to the redis-server
   * that was started for it. Requests that a fault still delays are never executed. Does nothing if it is stopped.
   */
  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#line.cut();
    await listener?.close();
    await this.#settings.store.stop();
  }

  /**
   * Starts the endpoint again, on the same port. Does nothing if it is running.
   *
   * @param options `memory`: `"kept"` (default) has every acknowledged write, `"lost"` neither data nor cached scripts
   * @throws TypeError for `"lost"` with a Redis given by URL, whose data must not be deleted
   * @example
   * await endpoint.stop();
   * await endpoint.start({ memory: "lost" }); // a node without persistence, after a crash
   */
  async start(options: { memory?: Memory } = {}): Promise<void> {
    if (this.#listener) return;
    await this.#settings.store.start(options.memory ?? "kept");
    await this.#listen();
  }

  /**
   * Executes a command without HTTP, faults and log, to check the state in a test. Rejects with a `ReplyError` when the
   * command fails.
   *
   * @example
   * expect(await endpoint.execute(["PTTL", "redlock:lock:{invoice:42}"])).toBeGreaterThan(0);
   */
  async execute(command: readonly (string | number)[]): Promise<Reply> {
    const { reply } = await this.#settings.store.backend.execute(command.map(String));
    return plainReply(reply);
  }

  /**
   * Executes commands with nothing in between, as {@link execute} does. The reply of one that failed is its error.
   *
   * @internal
   */
  async read(commands: readonly (readonly (string | number)[])[]): Promise<(Reply | ReplyError)[]> {
    const outcomes = await this.#settings.store.backend.transaction(commands.map((each) => each.map(String)));
    if (outcomes instanceof ReplyError) throw outcomes;
    return outcomes.map(({ reply }) => (reply instanceof ReplyError ? reply : plainReply(reply)));
  }

  /**
   * Shows its requests to an observer, until another one or none is set.
   *
   * @internal
   */
  observe(observer: Observer | undefined): void {
    this.#observer = observer;
  }

  /** Stops for good and deletes the data of a server or engine that was started here. */
  async close(): Promise<void> {
    await this.stop();
    await this.#settings.store.close();
  }

  async #listen(): Promise<void> {
    const { host, keepsAlive } = this.#settings;
    this.#listener = await listen(
      async (request, from) => {
        this.log.countRequest();
        const observer = this.#observer;
        if (!observer) return this.#answer(request);
        return observed(observer, request, from, (onCommand) => this.#answer(request, onCommand));
      },
      { host, port: this.#port, keepsAlive },
    );
    this.#port = this.#listener.port;
  }
}

/** The host of a URL for a listening address. The wildcard addresses are reached at loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
