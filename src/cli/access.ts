import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import {
  type Endpoint,
  EndpointError,
  endpointsFromEnv,
  httpEndpoint,
  QuorumError,
  Redlock,
} from "../index.ts";
import { type Environment, UsageError } from "./environment.ts";
import type { Values } from "./options.ts";
import { driverIn, openSocket, type Socket } from "./sockets.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** An endpoint, as the variables name it. */
export interface Place {
  /** From 1. */
  readonly number: number;
  readonly url: string;
  /** The variable with its URL. */
  readonly variable: string;
  /**
   * Opens it. Over HTTP each time anew: an endpoint that was opened for one question shares no request with others.
   *
   * @throws Error if the URL or the token cannot be used
   */
  open(): Endpoint;
  /** Every server that has keys of its own: one, except for a Cluster. */
  nodes(): Promise<readonly Endpoint[]>;
}

/** The endpoints that a command line names. */
export interface Access {
  readonly places: readonly Place[];
  /** Where secrets are found: the file that `--read-env` names, and the shell. */
  readonly variables: Variables;
  close(): void;
}

/** The arguments and surroundings of a command. */
export interface Call {
  /** The word behind the options, or `""`. */
  readonly argument: string;
  readonly values: Values;
  readonly access: Access;
  readonly environment: Environment;
}

const rest = "UPSTASH_REDIS_REST_URL";
const restNames = /^(?:UPSTASH_REDIS_REST|KV_REST_API)_(?:URL|TOKEN)/;
const socket = "REDIS_URL";
const fromFile = "To read the variables from a file: --read-env .dev.vars";

/**
 * Opens the endpoints that the variables name, by Upstash's REST API or by the Redis protocol.
 *
 * @throws UsageError when they name none, or the file with them cannot be read
 */
export async function openAccess(values: Values, { env, folder }: Environment): Promise<Access> {
  const file = values["read-env"];
  const read = file === undefined ? env : await readVariables(file);
  const variables = { ...env, ...read };
  try {
    const isRest = Object.keys(read).some((name) => restNames.test(name) && read[name]);
    if (isRest) return { places: restPlaces(read, values), variables, close: () => undefined };
    const names = namesOf(read, socket);
    if (names.length > 0) return { variables, ...(await socketPlaces(read, names, values, folder)) };
    throw new Error(
      `no variable names an endpoint: set ${rest} and UPSTASH_REDIS_REST_TOKEN, or ${socket} (redis://…); npx redis-rest-local starts local endpoints, and prints their variables`,
    );
  } catch (error) {
    const { message } = error as Error;
    if (file !== undefined) throw new UsageError(`${file}: ${message}`);
    throw error instanceof UsageError ? error : new UsageError(`${message}. ${fromFile}`);
  }
}

/** The variables of a file such as `.env` or wrangler's `.dev.vars`. */
async function readVariables(path: string): Promise<Variables> {
  try {
    return parseEnv(await readFile(path, "utf8"));
  } catch (error) {
    throw new UsageError(`--read-env ${path}: ${(error as Error).message}`);
  }
}

/** The variables with this name and a number, in their order, or else the variable without a number, if it is set. */
function namesOf(variables: Variables, name: string): string[] {
  const numbered = Object.keys(variables).filter((each) => new RegExp(`^${name}_\\d+$`).test(each));
  if (numbered.length === 0) return variables[name] ? [name] : [];
  return numbered.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

function restPlaces(variables: Variables, values: Values): Place[] {
  const { dialect, "base-path": basePath, "allow-insecure": allowInsecure } = values;
  const names = namesOf(variables, rest);
  return endpointsFromEnv(variables).map((options, index) => {
    const open = () => httpEndpoint({ ...options, dialect, basePath, allowInsecure });
    const variable = names[index] ?? "KV_REST_API_URL";
    return { number: index + 1, url: options.url, variable, open, nodes: async () => [open()] };
  });
}

async function socketPlaces(
  variables: Variables,
  names: readonly string[],
  values: Values,
  folder: string,
): Promise<Pick<Access, "places" | "close">> {
  const single = variables[socket];
  if (single && !names.some((name) => variables[name] === single)) {
    throw new UsageError(`${socket} is set beside ${names[0]}: give it a number, too, or leave it out`);
  }
  const driver = driverIn(folder);
  const opened = await Promise.allSettled(
    names.map((name) => openSocket(driver, variables[name] ?? "", values)),
  );
  const places = opened.map((each, index): Place => {
    const get = (): Socket => {
      if (each.status === "rejected") throw each.reason;
      return each.value;
    };
    const variable = names[index]!;
    const url = variables[variable] ?? "";
    return { number: index + 1, url, variable, open: () => get().endpoint, nodes: async () => get().nodes() };
  });
  const close = () => {
    for (const each of opened) if (each.status === "fulfilled") each.value.close();
  };
  return { places, close };
}

/** @throws UsageError when an endpoint cannot be used */
export function clientOf({ places }: Access, { timeout, prefix }: Values): Redlock {
  try {
    return new Redlock({ endpoints: places.map((place) => place.open()), timeout, prefix });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. To see what to fix: npx redlock-edge doctor`);
  }
}

/** Why a request failed. `config`: the URL or the token cannot be used at all. */
export interface Failure {
  readonly kind: EndpointError["kind"] | "config";
  readonly status?: number | undefined;
  /** Without the endpoint's name. */
  readonly message: string;
}

/**
 * The failure of an endpoint.
 *
 * @throws an error that is none
 */
export function failureOf(error: unknown): Failure {
  const cause = error instanceof QuorumError ? error.cause : error;
  if (!(cause instanceof EndpointError)) throw error;
  const { kind, status, message, endpoint } = cause;
  return { kind, status, message: message.slice(`${endpoint}: `.length) };
}

/** Whether the server has understood the request, and says no. */
export function isRefusal({ kind, status = 0 }: Failure): boolean {
  return kind === "redis" || (kind === "http" && status < 429);
}
