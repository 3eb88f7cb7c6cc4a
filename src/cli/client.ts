import {
  type Endpoint,
  endpointsFromEnv,
  type HttpEndpointOptions,
  httpEndpoint,
  Redlock,
} from "../index.ts";
import { type CommandEnvironment, dialectOption, integer, UsageError } from "./command.ts";
import type { Cost } from "./cost.ts";
import { withProgress } from "./progress.ts";
import { counted, shellWord } from "./text.ts";
import { readVariables } from "./variables.ts";

// What the commands that look at running endpoints have in common: their options, the client, and what it costs.

/** Options of all these commands. */
export const clientOptions = {
  "read-env": { type: "string" },
  prefix: { type: "string" },
  dialect: { type: "string" },
  "base-path": { type: "string" },
  "allow-insecure": { type: "boolean" },
  timeout: { type: "string" },
  json: { type: "boolean" },
} as const;

/** Their part of `--help`. */
export const clientHelp = `The endpoints are those that endpointsFromEnv finds in the environment: UPSTASH_REDIS_REST_URL_1 and
UPSTASH_REDIS_REST_TOKEN_1, _2, … They must be the same as your program's.

  --read-env <file>    read the variables from this file instead, e.g. .dev.vars
  --prefix <prefix>    the \`prefix\` of your program's client (redlock)
  --dialect <name>     upstash, redis-8.4 or redis, for all endpoints (upstash for hosts of upstash.io, else redis)
  --base-path <path>   the \`basePath\` of your program's endpoints, for all of them
  --allow-insecure     \`allowInsecure\`: send tokens over http:// to public hosts, too
  --timeout <ms>       how long to wait for an endpoint (5000)
  --json               print JSON, one object per line; docs/operations.md lists the fields
  --help               this text
`;

/** Values of {@link clientOptions}. */
export interface ClientValues {
  readonly "read-env"?: string | undefined;
  readonly prefix?: string | undefined;
  readonly dialect?: string | undefined;
  readonly "base-path"?: string | undefined;
  readonly "allow-insecure"?: boolean | undefined;
  readonly timeout?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Where the endpoints are, and how to ask them. */
export interface Access {
  readonly endpoints: readonly HttpEndpointOptions[];
  /** The variables that they come from. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly prefix: string | undefined;
  /** ms */
  readonly timeout: number;
}

/** A client for the endpoints of the environment. */
export interface Client {
  readonly redlock: Redlock;
  readonly variables: Access["variables"];
  /** Runs something that sends requests, with progress where that takes long, and counts its cost. */
  run<Value>(work: () => Promise<Value>): Promise<{ readonly value: Value; readonly cost: Cost }>;
}

/** The options that say which keys of which endpoints are meant, as words of a command line. */
export function clientWords(values: ClientValues): string {
  const names = ["read-env", "prefix", "dialect", "base-path"] as const;
  const words = names.map((name) =>
    values[name] === undefined ? "" : ` --${name} ${shellWord(values[name])}`,
  );
  return `${words.join("")}${values["allow-insecure"] ? " --allow-insecure" : ""}`;
}

/** @throws UsageError when an option is wrong, or the variables name no endpoints */
export async function accessOf(values: ClientValues, { env }: CommandEnvironment): Promise<Access> {
  const { timeout = "5000", prefix } = values;
  const dialect = dialectOption(values.dialect);
  const ms = integer("--timeout", timeout);
  if (ms < 100 || ms > 60_000) throw new UsageError("--timeout is 100 … 60000 ms");
  if (prefix !== undefined && !/^[^{}]+$/.test(prefix)) {
    throw new UsageError("--prefix has at least one character, and no braces");
  }
  const file = values["read-env"];
  const variables = file === undefined ? env : await readVariables(file);
  return {
    endpoints: endpointsOf(variables, file, {
      dialect,
      basePath: values["base-path"],
      allowInsecure: values["allow-insecure"],
    }),
    variables,
    prefix,
    timeout: ms,
  };
}

function endpointsOf(
  variables: Access["variables"],
  file: string | undefined,
  options: Partial<HttpEndpointOptions>,
): HttpEndpointOptions[] {
  try {
    return endpointsFromEnv(variables).map((endpoint) => ({ ...endpoint, ...options }));
  } catch (error) {
    const { message } = error as Error;
    if (file !== undefined) throw new UsageError(`${file}: ${message}`);
    throw new UsageError(`${message}. To read the variables from a file: --read-env .dev.vars`);
  }
}

/** @throws UsageError when an option or an endpoint cannot be used */
export async function openClient(values: ClientValues, environment: CommandEnvironment): Promise<Client> {
  const { endpoints, prefix, timeout, variables } = await accessOf(values, environment);
  let requests = 0;
  const pending = new Map<Endpoint, number>();
  const counting = (endpoint: Endpoint): Endpoint => ({
    ...endpoint,
    async send(command, signal) {
      requests += 1;
      pending.set(endpoint, (pending.get(endpoint) ?? 0) + 1);
      try {
        return await endpoint.send(command, signal);
      } finally {
        pending.set(endpoint, pending.get(endpoint)! - 1);
      }
    },
  });
  const redlock = usable(
    () => new Redlock({ endpoints: endpoints.map((each) => counting(httpEndpoint(each))), timeout, prefix }),
  );
  const waitingFor = () => {
    const names = [...pending].flatMap(([{ name }, count]) => (count > 0 ? [name] : []));
    return `waiting for ${counted(names.length, "endpoint")}: ${names.join(", ")}`;
  };
  return {
    redlock,
    variables,
    async run(work) {
      const began = performance.now();
      const before = requests;
      const value = await withProgress(environment, waitingFor, work());
      return { value, cost: { requests: requests - before, ms: Math.round(performance.now() - began) } };
    },
  };
}

function usable(create: () => Redlock): Redlock {
  try {
    return create();
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. To see what to fix: npx redlock-edge doctor`);
  }
}
