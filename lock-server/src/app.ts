import {
  checkLockServer,
  type LockServerNamespace,
  LockServerObject,
  type LockServerOptions,
  Refusal,
} from "./object.ts";

/** Options of {@link lockServerApp}. */
export interface LockServerAppOptions<Env> extends LockServerOptions {
  /** The binding of the {@link LockServer}. */
  readonly locks: (env: Env) => LockServerNamespace;
  /**
   * The tokens that are accepted, each of at least 32 visible characters of ASCII: a new one beside the old one while its users
   * change. Draw them at random, for example by `openssl rand -hex 32`. What is undefined or empty is left out.
   */
  readonly tokens: (env: Env) => readonly (string | undefined)[];
}

/** The most bytes of a request's body. */
const maxBody = 10 * 1024 * 1024;

/** The fewest characters of a token: nobody may guess it. */
const minToken = 32;

/**
 * The Worker in front of a {@link LockServer}, for all who reach it by HTTPS. Experimental. It speaks the part of Upstash's
 * REST protocol that this package uses: `POST /` with a command, `POST /pipeline` with several, `/subscribe/{channel}`,
 * and a Bearer token in the header. Clients use it as `{ url, token, dialect: "redis-8.4" }`.
 *
 * @throws TypeError | RangeError when an option is wrong
 * @example
 * export { LockServer } from "redlock-edge-server";
 * export default lockServerApp<Env>({ locks: (env) => env.LOCKS, tokens: (env) => [env.TOKEN, env.OLD_TOKEN] });
 */
export function lockServerApp<Env>(options: LockServerAppOptions<Env>): {
  fetch(request: Request, env: Env): Promise<Response>;
} {
  const { locks, tokens, ...server } = options;
  for (const [name, given] of Object.entries({ locks, tokens })) {
    if (typeof given !== "function") throw new TypeError(`${name} must be a function of env`);
  }
  checkLockServer(server);
  return {
    async fetch(request, env) {
      try {
        await authorize(request, tokens(env));
        return await answer(request, new LockServerObject(locks(env), server));
      } catch (error) {
        const { message } = error as Error;
        if (error instanceof Refusal) {
          return Response.json({ error: message }, { status: error.status });
        }
        // What is wrong with the settings is said to everybody: it contains no secret.
        if (error instanceof TypeError) return Response.json({ error: message }, { status: 500 });
        return Response.json({ error: "ERR the object could not be reached" }, { status: 503 });
      }
    },
  };
}

async function authorize(request: Request, tokens: readonly (string | undefined)[]): Promise<void> {
  const accepted = tokens.filter((token, index) => token && checkToken(`tokens[${index}]`, token));
  if (accepted.length === 0) {
    throw new TypeError(
      `the lock server needs a token of at least ${minToken} characters: is the secret set?`,
    );
  }
  const [, token] = /^Bearer (\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  if (token === undefined) {
    throw new Refusal(401, "Unauthorized: there is no token in the header authorization, as Bearer …");
  }
  // Of hashes, whose digits nobody can choose: how long it takes to compare them says nothing of a token.
  const [given, ...expected] = await Promise.all([token, ...accepted].map((one) => digest(one!)));
  if (!expected.includes(given!)) throw new Refusal(401, "Unauthorized: the token is wrong");
}

/** Refuses a token that can be guessed, and one that no request could show. */
function checkToken(name: string, token: string): true {
  if (token.length >= minToken && /^[!-~]+$/.test(token)) return true;
  throw new TypeError(
    `${name} of the lock server needs at least ${minToken} characters of ASCII, without a space or a line break: set the secret again`,
  );
}

async function digest(text: string): Promise<string> {
  return String(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

async function answer(request: Request, object: LockServerObject): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  if (search) throw new Refusal(400, "ERR a request has no query: commands are posted as JSON");
  const [, channel] = /^\/subscribe\/([^/]+)$/.exec(pathname) ?? [];
  const isPipeline = pathname === "/pipeline";
  if (channel === undefined && !isPipeline && pathname !== "/") {
    throw new Refusal(
      404,
      "ERR this lock server of redlock-edge has only POST /, /pipeline and /subscribe/{channel}",
    );
  }
  // Before anything is opened: nobody would ever read, nor end, the stream that answers a HEAD.
  if (request.method !== "POST") throw new Refusal(405, "ERR a lock server is asked by POST");
  if (channel !== undefined) {
    const body = await object.subscribe(decodeName(channel), request.signal);
    return new Response(body, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
    });
  }
  const commands = await commandsOf(request, isPipeline);
  const results = await object.execute(commands, request.signal);
  if (isPipeline) return Response.json(results);
  const [result] = results;
  return Response.json(result, { status: result && "error" in result ? 400 : 200 });
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new Refusal(400, "ERR the name of the channel is not correctly percent-encoded");
  }
}

async function commandsOf(request: Request, isPipeline: boolean): Promise<(string | number)[][]> {
  // A body that says that it is too large is not read.
  const isLong = Number(request.headers.get("content-length")) > maxBody;
  const body = isLong ? undefined : await request.arrayBuffer();
  if (!body || body.byteLength > maxBody) {
    throw new Refusal(413, `ERR max request size of ${maxBody} bytes exceeded`);
  }
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder().decode(body));
  } catch {
    // Handled below.
  }
  const commands: unknown = isPipeline ? given : [given];
  if (Array.isArray(commands) && commands.length > 0 && commands.every(isCommand)) return commands;
  throw new Refusal(
    400,
    "ERR a command is a JSON array of texts and numbers within ±2^53, and a pipeline an array of commands",
  );
}

function isCommand(given: unknown): given is (string | number)[] {
  return Array.isArray(given) && given.length > 0 && given.every(isWord);
}

/** JSON.parse makes another number of one that is too large or too precise: as a text it arrives as it was sent. */
function isWord(word: unknown): boolean {
  if (typeof word !== "number") return typeof word === "string";
  return Math.abs(word) <= Number.MAX_SAFE_INTEGER;
}
