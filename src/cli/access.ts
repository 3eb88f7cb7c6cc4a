import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { transportOf } from "../endpoints/transport.ts";
import {
  type Endpoint,
  endpointsFromEnv,
  type HttpEndpointOptions,
  httpEndpoint,
  Redlock,
} from "../index.ts";
import { type Environment, UsageError } from "./environment.ts";
import type { Values } from "./options.ts";
import { withProgress } from "./progress.ts";
import { counted } from "./text.ts";

/** The endpoints that a command line names, and the variables that they come from. */
export interface Access {
  readonly endpoints: readonly HttpEndpointOptions[];
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** What an answer has cost. */
export interface Cost {
  /** HTTP requests. */
  readonly requests: number;
  readonly ms: number;
}

/** A client for these endpoints. */
export interface Client extends Pick<Values, "prefix" | "timeout"> {
  readonly redlock: Redlock;
  readonly endpoints: readonly Endpoint[];
  readonly variables: Access["variables"];
  /** Runs something that sends requests, with progress where that takes long, and counts its cost. */
  run<Value>(work: () => Promise<Value>): Promise<{ readonly value: Value; readonly cost: Cost }>;
}

/** The variables of a file such as `.env` or wrangler's `.dev.vars`. */
async function readVariables(path: string): Promise<Access["variables"]> {
  try {
    return parseEnv(await readFile(path, "utf8"));
  } catch (error) {
    throw new UsageError(`--read-env ${path}: ${(error as Error).message}`);
  }
}

/** @throws UsageError when the variables name no endpoints, or the file with them cannot be read */
export async function accessOf(values: Values, { env }: Environment): Promise<Access> {
  const file = values["read-env"];
  const variables = file === undefined ? env : await readVariables(file);
  const { dialect, "base-path": basePath, "allow-insecure": allowInsecure } = values;
  try {
    const endpoints = endpointsFromEnv(variables);
    return {
      variables,
      endpoints: endpoints.map((each) => ({ ...each, dialect, basePath, allowInsecure })),
    };
  } catch (error) {
    const { message } = error as Error;
    if (file !== undefined) throw new UsageError(`${file}: ${message}`);
    throw new UsageError(`${message}. To read the variables from a file: --read-env .dev.vars`);
  }
}

/** @throws UsageError when an endpoint cannot be used */
export async function openClient(values: Values, environment: Environment): Promise<Client> {
  const { variables, endpoints: options } = await accessOf(values, environment);
  let requests = 0;
  const pending: Endpoint[] = [];
  const counting = (endpoint: Endpoint): Endpoint => ({
    ...endpoint,
    async send(command, signal) {
      pending.push(endpoint);
      try {
        return await transportOf(endpoint)!.send(command, signal, (part) => {
          requests += part;
        });
      } finally {
        pending.splice(pending.indexOf(endpoint), 1);
      }
    },
  });
  const { prefix, timeout } = values;
  try {
    const endpoints = options.map((each) => counting(httpEndpoint(each)));
    const redlock = new Redlock({ endpoints, timeout, prefix });
    const waitingFor = () => {
      const names = [...new Set(pending.map(({ name }) => name))];
      return `waiting for ${counted(names.length, "endpoint")}: ${names.join(", ")}`;
    };
    return {
      redlock,
      endpoints,
      prefix,
      timeout,
      variables,
      async run(work) {
        const began = performance.now();
        const before = requests;
        const value = await withProgress(environment, waitingFor, work());
        return {
          value,
          cost: { requests: Math.round(requests - before), ms: Math.round(performance.now() - began) },
        };
      },
    };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. To see what to fix: npx redlock-edge doctor`);
  }
}
