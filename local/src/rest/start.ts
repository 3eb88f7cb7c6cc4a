import { randomBytes } from "node:crypto";
import { type Check, checkOptions, integer, oneOf, type Schema, typed } from "../../../src/check/check.ts";
import { type Dialect, dialectCheck } from "../engine/dialect.ts";
import type { LoggedCommand } from "./command-log.ts";
import { LocalEndpoint } from "./endpoint.ts";
import { findRedisServer } from "./redis/process.ts";
import { embeddedStore, externalStore, spawnedStore } from "./store.ts";

/** Options of {@link start}. */
export interface StartOptions {
  /** Number of endpoints, from 1 to 64. Default: the number of `redis` URLs, or 3. */
  readonly count?: number;
  /**
   * `"redis"`: a `redis-server` process per endpoint. `"embedded"`: an engine in this process that has what redlock-edge
   * sends, and refuses everything else. `"auto"` (default): `"redis"` if `redis-server` is on PATH, else `"embedded"`.
   */
  readonly engine?: "auto" | "redis" | "embedded";
  /**
   * The dialect that the endpoints speak: they have its commands, and refuse what only others have. `"redis"` in front of a
   * real Redis is that server as it is. Give the client's endpoints the same `dialect`, or `"redis"`, which all of them
   * speak. Default `"upstash"`.
   */
  readonly dialect?: Dialect;
  /** `redis://` or `rediss://` URLs of running servers to use, one per endpoint. Default: none. */
  readonly redis?: readonly string[];
  /** Address to listen on. Default `"127.0.0.1"`: other machines cannot connect. */
  readonly host?: string;
  /** Port of the first endpoint; each further one has the next port. Default 0: any free ports. */
  readonly port?: number;
  /** Token of all endpoints: letters, digits and `. _ ~ + / = -`. Default: a random one. */
  readonly token?: string;
  /** Read-only token of all endpoints, of the same characters. Default: a random one. */
  readonly readOnlyToken?: string;
  /**
   * Whether the endpoints keep the process alive. By default they do not, so that a test that forgets to close them ends.
   */
  readonly keepsAlive?: boolean;
  /** Called for every command that any endpoint received. Default: none. */
  readonly onLog?: (entry: LoggedCommand & { readonly endpoint: string }) => void;
}

const token: Check = (name, value: string) => {
  if (/^[\w.~+/=-]+$/.test(value)) return;
  // The value itself is a secret and stays out of the message.
  throw new TypeError(`${name} consists of letters, digits and . _ ~ + / = - only, at least one`);
};

const schema: Schema<StartOptions> = {
  count: integer(1, 64),
  engine: oneOf("auto", "redis", "embedded"),
  dialect: dialectCheck,
  redis(_, urls: readonly string[]) {
    if (urls.every((url) => /^rediss?:\/\//.test(url))) return;
    throw new TypeError("a redis URL begins with redis:// or rediss://");
  },
  host: typed("string"),
  port: integer(0, 65_535),
  token,
  readOnlyToken: token,
  keepsAlive: typed("boolean"),
  onLog: typed("function"),
};

const randomToken = () => randomBytes(24).toString("base64url");

/** Running local endpoints. */
export interface LocalEndpoints {
  /** What executes the commands. */
  readonly engine: "redis" | "embedded";
  readonly endpoints: readonly [LocalEndpoint, ...LocalEndpoint[]];
  /**
   * The environment variables that `endpointsFromEnv` reads: `UPSTASH_REDIS_REST_URL_1`,
   * `UPSTASH_REDIS_REST_TOKEN_1`, and so on. A single endpoint also has them without the number.
   */
  env(): Record<string, string>;
  /** Stops everything that was started. May be called more than once. */
  close(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts independent local endpoints that speak Upstash's REST protocol. When it rejects, everything that was already
 * started is stopped.
 *
 * @throws TypeError | RangeError for a wrong option
 * @throws Error when `redis-server` is required but not found or does not start, or when a port is in use
 * @example
 * await using local = await start({ count: 3 });
 * const redlock = new Redlock({ endpoints: endpointsFromEnv(local.env()) });
 * local.endpoints[1].faults.add({ fault: "drop-reply" });
 */
export async function start(options: StartOptions = {}): Promise<LocalEndpoints> {
  checkOptions("start", options, schema, { usual: "count" });
  const { host = "127.0.0.1", port = 0, redis = [], onLog, dialect = "upstash" } = options;
  const count = options.count ?? (redis.length || 3);
  if (redis.length > 0 && (redis.length !== count || options.engine === "embedded")) {
    throw new RangeError(
      `${redis.length} redis URLs are for as many endpoints, not ${count}, and for no embedded engine`,
    );
  }
  const { token = randomToken(), readOnlyToken = randomToken() } = options;
  const program = redis.length > 0 ? undefined : chooseProgram(options.engine ?? "auto");
  const engine = redis.length > 0 || program !== undefined ? "redis" : "embedded";

  async function open(index: number): Promise<LocalEndpoint> {
    const name = `endpoint-${index + 1}`;
    const url = redis[index];
    const own = () => (program === undefined ? embeddedStore(dialect) : spawnedStore(dialect, program));
    const store = url === undefined ? await own() : externalStore(dialect, url);
    try {
      return await LocalEndpoint.open({
        name,
        store,
        host,
        port: port === 0 ? 0 : port + index,
        token,
        readOnlyToken,
        keepsAlive: options.keepsAlive,
        onLog: onLog && ((entry) => onLog({ ...entry, endpoint: name })),
      });
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  const opened = await Promise.allSettled(Array.from({ length: count }, (_, index) => open(index)));
  const endpoints = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  };
  const failed = opened.find((each) => each.status === "rejected");
  if (failed) {
    await close();
    throw failed.reason;
  }
  return {
    engine,
    // As many as `count` says, which is at least 1.
    endpoints: endpoints as [LocalEndpoint, ...LocalEndpoint[]],
    env: () => environment(endpoints),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The path of `redis-server`, or undefined to use the embedded engine. */
function chooseProgram(engine: "auto" | "redis" | "embedded"): string | undefined {
  if (engine === "embedded") return undefined;
  const program = findRedisServer();
  if (program === undefined && engine === "redis") {
    throw new Error(
      'redis-server is not on PATH: install it, give URLs of servers that run (--redis), or use the engine "embedded" (--engine)',
    );
  }
  return program;
}

function environment(endpoints: readonly LocalEndpoint[]): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [index, { url, token }] of endpoints.entries()) {
    for (const suffix of endpoints.length === 1 ? ["", "_1"] : [`_${index + 1}`]) {
      variables[`UPSTASH_REDIS_REST_URL${suffix}`] = url;
      variables[`UPSTASH_REDIS_REST_TOKEN${suffix}`] = token;
    }
  }
  return variables;
}
