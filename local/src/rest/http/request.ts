import { Buffer } from "node:buffer";

/** A request that is refused before any command is run. Its message is the response: `{"error": message}`. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** The HTTP status of the response. */
  readonly status: 400 | 401 | 405 | 413;

  constructor(status: RequestError["status"], message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * The commands of a request: of `/pipeline` and `/multi-exec` a JSON array of arrays, of `/` one such array, else the command
 * in the path.
 *
 * @throws RequestError 400 for anything else
 */
export function decodeCommands(url: URL, body: Buffer): [string[], ...string[][]] {
  const { pathname } = url;
  if (pathname === "/") return [commandOf(parse(body), "the body")];
  if (pathname !== "/pipeline" && pathname !== "/multi-exec") return [decodePath(url, body)];
  const batch = parse(body);
  if (!Array.isArray(batch)) throw new RequestError(400, "ERR the body must be a JSON array of commands");
  const [first, ...others] = batch.map((row, index) => commandOf(row, `command ${index + 1}`));
  if (!first) throw new RequestError(400, "ERR empty pipeline request");
  return [first, ...others];
}

/** The commands of a request; none if they cannot be read, which the endpoint answers with an error. Its body stays unread. */
export async function commandsIn(request: Request): Promise<string[][]> {
  const body = Buffer.from(await request.clone().arrayBuffer());
  try {
    return decodeCommands(new URL(request.url), body);
  } catch {
    return [];
  }
}

/**
 * The command in a path, for example `/set/key/value?EX=10`. Its arguments are those of the path, then the body if
 * there is one, then each name and value of the query; a name without a value is an option (`?NX`). Throws `RequestError` 400 for a malformed encoding.
 */
function decodePath({ pathname, search }: URL, body: Buffer): string[] {
  const command = pathname.slice(1).split("/").map(decodePercents);
  // A trailing slash is not an empty argument.
  if (command.length > 1 && command.at(-1) === "") command.pop();
  if (body.length > 0) command.push(body.toString());
  for (const field of search.slice(1).split("&")) {
    const [name = "", ...rest] = field.replaceAll("+", " ").split("=");
    if (field === "" || name === "_token") continue;
    command.push(decodePercents(name));
    const value = rest.join("=");
    if (value !== "") command.push(decodePercents(value));
  }
  return command;
}

function decodePercents(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RequestError(400, `ERR the path is not correctly percent-encoded: ${text.slice(0, 100)}`);
  }
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
