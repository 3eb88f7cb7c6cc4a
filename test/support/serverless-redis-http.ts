import type { LocalEndpoint } from "../../local/src/index.ts";
import { type RawReply, type RawRequest, type RawServer, startRawServer } from "./raw-server.ts";

// serverless-redis-http 0.0.10 needs Elixir, so this imitates what its source does with a request:
// https://github.com/hiett/serverless-redis-http/tree/master/lib/srh/http

/** The largest body that its parser takes by default, in bytes. */
const maxBody = 8_000_000;

const answer = (status: number, body: object): RawReply => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const refuse = (status: number, error: string): RawReply => answer(status, { error });

/** Starts one in front of a Redis, which gets every command as it is. */
export function startServerlessRedisHttp(target: LocalEndpoint): Promise<RawServer> {
  async function execute(command: readonly (string | number)[]): Promise<object> {
    try {
      return { result: await target.execute(command) };
    } catch (error) {
      if ((error as Error).name === "BackendGoneError") throw error;
      return { error: (error as Error).message };
    }
  }

  async function run(path: string, body: string): Promise<RawReply> {
    const words = JSON.parse(body);
    if (path === "/") {
      const reply = await execute(words);
      return answer("error" in reply ? 400 : 200, reply);
    }
    const replies: object[] = [];
    // One after another, whatever becomes of the one before.
    for (const command of words) replies.push(await execute(command));
    return answer(200, replies);
  }

  return startRawServer(async ({ path, headers, body }: RawRequest) => {
    // Before the path: a stream is asked for without a body, and without this header.
    if (headers["content-type"] !== "application/json") {
      return refuse(400, "Invalid content type. Expected application/json.");
    }
    if (Buffer.byteLength(body) > maxBody) return { status: 413 };
    if (!["/", "/pipeline", "/multi-exec"].includes(path)) {
      return refuse(404, "SRH: Endpoint not found. SRH might not support this feature yet.");
    }
    const [, token] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? [];
    if (token === undefined) return refuse(400, "Missing/Invalid authorization header");
    if (token !== target.token) return refuse(401, "Invalid token");
    return run(path, body).catch(() =>
      refuse(500, "SRH: Unable to connect to the Redis server. See SRH logs for more information."),
    );
  });
}
