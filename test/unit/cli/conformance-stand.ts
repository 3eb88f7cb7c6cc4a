import { Engine } from "../../../local/src/engine/engine.ts";
import { EmbeddedBackend } from "../../../local/src/rest/embedded-backend.ts";
import { upstashHandler } from "../../../local/src/rest/http/handler.ts";
import type { Answer } from "../../../local/src/rest/http/inject-faults.ts";
import { listen } from "../../../local/src/rest/http/listen.ts";
import { runCommand } from "../../../src/cli/commands.ts";

// A server that has all that the library needs, but for what a test takes away; and doctor in front of it, over HTTP.

/** What is wrong with a server. */
export interface Lack {
  /** Answers a request in another way. */
  readonly request?: (request: Request, answer: (request: Request) => Promise<Response>) => Promise<Answer>;
  /** Bytes of a request's body. */
  readonly maxBody?: number;
  /** How long doctor waits for an answer, in ms. Default 10 000. */
  readonly timeout?: number;
}

/** What the handler refuses before it reaches the engine. */
const extra: Readonly<Record<string, unknown>> = { CONFIG: ["maxmemory-policy", "noeviction"], WAIT: 2 };

const token = "the-token";
const readOnlyToken = "the-read-only-token";

/** Starts a server. */
export async function startStand(lack: Lack = {}) {
  const { request, maxBody, timeout = 10_000 } = lack;
  const engine = new Engine();
  const backend = new EmbeddedBackend(engine);
  const handle = upstashHandler({ backend, token, readOnlyToken, ...(maxBody && { maxBody }) });
  let requests = 0;
  async function answer(asked: Request): Promise<Response> {
    const [name = ""] = await wordsOf(asked);
    return name in extra ? Response.json({ result: extra[name] }) : handle(asked);
  }
  const listener = await listen(
    async (asked) => {
      requests += 1;
      return request ? request(asked, answer) : answer(asked);
    },
    { host: "127.0.0.1", port: 0, keepBody: 20_000_000 },
  );
  return {
    engine,
    requests: () => requests,
    close: () => listener.close(),
    /** Runs `doctor --conformance`. */
    async doctor({
      isReadOnly = false,
      stop = new AbortController().signal,
      json = false,
    }: {
      readonly isReadOnly?: boolean;
      readonly stop?: AbortSignal;
      readonly json?: boolean;
    } = {}) {
      const env = {
        UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${listener.port}`,
        UPSTASH_REDIS_REST_TOKEN: isReadOnly ? readOnlyToken : token,
      };
      const lines: string[] = [];
      const out = (line: string) => lines.push(line);
      const line = `doctor --conformance --dialect upstash --prefix p --timeout ${timeout}`;
      const code = await runCommand([...line.split(" "), ...(json ? ["--json"] : [])], {
        out,
        warn: out,
        stop,
        env,
        version: async () => "",
      });
      return { code, lines };
    },
  };
}

/** The words of a command that is posted alone; none of anything else. */
export async function wordsOf(request: Request): Promise<string[]> {
  if (new URL(request.url).pathname !== "/") return [];
  return ((await request.clone().json()) as unknown[]).map(String);
}
