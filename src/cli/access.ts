import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { endpointsFromEnv, type HttpEndpointOptions, Redlock } from "../index.ts";
import { type Environment, UsageError } from "./environment.ts";
import type { Values } from "./options.ts";

/** The endpoints that a command line names, and the variables that they come from. */
export interface Access {
  readonly endpoints: readonly HttpEndpointOptions[];
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** A client for these endpoints. */
export interface Client {
  readonly redlock: Redlock;
  readonly variables: Access["variables"];
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
  const { variables, endpoints } = await accessOf(values, environment);
  const { prefix, timeout } = values;
  try {
    return { redlock: new Redlock({ endpoints, timeout, prefix }), variables };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. To see what to fix: npx redlock-edge doctor`);
  }
}
