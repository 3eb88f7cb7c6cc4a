import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { EndpointError, endpointsFromEnv, httpEndpoint, Redlock } from "../index.ts";
import { type Environment, UsageError } from "./environment.ts";
import type { Values } from "./options.ts";
import { driverIn, openSocket, type Socket } from "./sockets.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** An endpoint, as the variables name it. */
export interface Place extends Socket {
  /** From 1. */
  readonly number: number;
  /** The variable with its URL. */
  readonly variable: string;
}

/** The endpoints that a command line names. */
export interface Access {
  readonly places: readonly Place[];
  /** Where secrets are found: the file that `--read-env` names, and the shell. */
  readonly variables: Variables;
}

/** The arguments and surroundings of a command. */
export interface Call {
  /** The word behind the options, or `""`. */
  readonly argument: string;
  readonly values: Values;
  readonly access: Access;
  readonly environment: Environment;
}

const restNames = /^(?:UPSTASH_REDIS_REST|KV_REST_API)_(?:URL|TOKEN)/;
const socket = "REDIS_URL";

/**
 * Opens the endpoints that the variables name, by Upstash's REST API or by the Redis protocol.
 *
 * @throws UsageError when they name none, or the file with them cannot be read
 */
export async function openAccess(values: Values, { env, folder }: Environment): Promise<Access> {
  const file = values["read-env"];
  try {
    const read: Variables = file === undefined ? env : parseEnv(await readFile(file, "utf8"));
    const isRest = Object.keys(read).some((name) => restNames.test(name) && read[name]);
    const places = isRest ? restPlaces(read, values) : await socketPlaces(read, values, folder);
    return { places, variables: { ...env, ...read } };
  } catch (error) {
    const { message } = error as Error;
    throw new UsageError(file === undefined ? message : `--read-env ${file}: ${message}`);
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
  const names = namesOf(variables, "UPSTASH_REDIS_REST_URL");
  return endpointsFromEnv(variables).map((options, index) => {
    // Not before it is used, because doctor reports a URL that cannot be used.
    const open = () => httpEndpoint({ ...options, dialect, basePath, allowInsecure });
    const variable = names[index] ?? "KV_REST_API_URL";
    return { number: index + 1, variable, open };
  });
}

function socketPlaces(variables: Variables, values: Values, folder: string): Promise<Place[]> {
  const names = namesOf(variables, socket);
  if (names.length === 0) {
    throw new Error(
      `no variable names an endpoint: set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or ${socket} (redis://…), or read them from a file: --read-env .dev.vars; npx redis-rest-local starts local endpoints, and prints their variables`,
    );
  }
  if (variables[socket] && names[0] !== socket) {
    throw new Error(`${socket} is set beside ${names[0]}: give it a number, too, or leave it out`);
  }
  const driver = driverIn(folder);
  const opened = names.map(async (variable, index) => {
    const opening = openSocket(driver, variables[variable] ?? "", values);
    return { number: index + 1, variable, ...(await opening) };
  });
  return Promise.all(opened);
}

/** @throws UsageError when an endpoint cannot be used */
export function clientOf({ access, values: { timeout, prefix } }: Call): Redlock {
  try {
    return new Redlock({ endpoints: access.places.map((place) => place.open()), timeout, prefix });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. To see what to fix: npx redlock-edge doctor`);
  }
}

/** Why a request failed. `config`: the URL or the token cannot be used at all. */
export interface Failure {
  readonly kind: EndpointError["kind"] | "config";
  readonly status?: number | undefined;
  readonly endpoint: string;
  /** Without the endpoint's name. */
  readonly message: string;
}

/**
 * The failure of an endpoint.
 *
 * @throws an error that is none
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof UsageError) return { kind: "config", endpoint: "", message: error.message };
  if (!(error instanceof EndpointError)) throw error;
  const { kind, status, endpoint } = error;
  const said = error.message.slice(`${endpoint}: `.length);
  // As the platform says it of AbortSignal.timeout.
  const message = said.replace(/^The operation was aborted.*/, "no answer in time");
  return { kind, status, endpoint, message };
}

/** Whether the server has understood the request, and says no. */
export function isRefusal({ kind, status = 0 }: Failure): boolean {
  return kind === "redis" || (kind === "http" && status < 429);
}
