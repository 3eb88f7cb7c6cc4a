import type { Buffer } from "node:buffer";

/** A request that is refused before anything is run: `message` goes out as `{"error": message}`. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** The HTTP status. */
  readonly status: 400 | 401 | 405 | 413 | 501;

  constructor(status: RequestError["status"], message: string) {
    super(message);
    this.status = status;
  }
}

/** The command in the body of `POST /`: a JSON array. Throws `RequestError` 400. */
export function decodeCommand(body: Buffer): string[] {
  return commandOf(parse(body), "the body");
}

/** The commands in the body of `/pipeline` and `/multi-exec`: a JSON array of arrays. Throws `RequestError` 400. */
export function decodeBatch(body: Buffer): string[][] {
  const batch = parse(body);
  if (!Array.isArray(batch)) throw new RequestError(400, "ERR the body must be a JSON array of commands");
  if (batch.length === 0) throw new RequestError(400, "ERR empty pipeline request");
  return batch.map((row, index) => commandOf(row, `command ${index + 1}`));
}

/**
 * The command in a path: `/set/key/value?EX=10`. A body, if there is one, follows the path's arguments, and the
 * query follows the body, each name with its value; a name without a value is an option (`?NX`).
 */
export function decodePath(path: string, query: URLSearchParams, body: Buffer): string[] {
  let command: string[];
  try {
    command = path.slice(1).split("/").map(decodeURIComponent);
  } catch (cause) {
    throw new RequestError(400, `ERR the path is not correctly percent-encoded: ${(cause as Error).message}`);
  }
  // A slash at the end is not an empty argument.
  if (command.length > 1 && command.at(-1) === "") command.pop();
  if (body.length > 0) command.push(body.toString());
  for (const [name, value] of query) {
    if (name === "_token") continue;
    command.push(name);
    if (value !== "") command.push(value);
  }
  return command;
}

function parse(body: Buffer): unknown {
  if (body.length === 0) throw new RequestError(400, "ERR empty body: a command is a JSON array");
  try {
    return JSON.parse(body.toString());
  } catch (cause) {
    throw new RequestError(400, `ERR the body is not JSON: ${(cause as Error).message}`);
  }
}

function commandOf(value: unknown, where: string): string[] {
  if (!Array.isArray(value)) throw new RequestError(400, `ERR ${where} must be a JSON array`);
  if (value.length === 0) throw new RequestError(400, "ERR empty command");
  return value.map((argument) => {
    if (typeof argument === "string") return argument;
    if (typeof argument === "number" || typeof argument === "boolean") return String(argument);
    if (argument === null) throw new RequestError(400, "ERR null args are not supported");
    throw new RequestError(400, `ERR unsupported arg type: ${Array.isArray(argument) ? "array" : "object"}`);
  });
}
