import { wrongType } from "../check/check.ts";
import type { HttpEndpointOptions } from "./http.ts";

/**
 * The endpoints of `UPSTASH_REDIS_REST_URL_1` and `_TOKEN_1`, `_2` … for several databases, else
 * `UPSTASH_REDIS_REST_URL` and `_TOKEN`, else Vercel's `KV_REST_API_URL` and `_TOKEN`.
 *
 * @param given for example `process.env`, or the Worker's `env`
 * @throws TypeError naming the variable that is missing, has no number or is not read
 *
 * @example
 * const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
 */
export function endpointsFromEnv(given: object): HttpEndpointOptions[] {
  const expected = "an object, such as process.env";
  // Not shown, because it may be a secret.
  if (typeof given === "string") throw new TypeError(`env must be ${expected}, got a string`);
  if (!given) throw wrongType("env", given, expected);
  const env = given as Record<string, unknown>;
  const numbered = Object.keys(env).filter((name) => /^UPSTASH_REDIS_REST_(URL|TOKEN)_\d+$/.test(name));
  // A process without that endpoint would use other quorums.
  const urls = [...new Set(numbered.map((name) => name.replace("TOKEN", "URL")))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const single = "UPSTASH_REDIS_REST_URL";
  // Local endpoints set one database twice, which is clear.
  if (urls.length > 0 && env[single] && !urls.some((url) => env[url] === env[single])) {
    let number = 1;
    while (urls.includes(`${single}_${number}`)) number += 1;
    throw new TypeError(
      `${single} is set beside ${urls[0]}: rename it to ${single}_${number}, and its token, too, or leave it out`,
    );
  }
  if (urls.length === 0) {
    const vercel = !env[single] && env.KV_REST_API_URL;
    const unread = vercel && Object.keys(env).find((name) => /^KV_REST_API_(URL|TOKEN)_\d+$/.test(name));
    if (unread) {
      throw new TypeError(`${unread} is not read: name several databases ${single}_1, ${single}_2, …`);
    }
    urls.push(vercel ? "KV_REST_API_URL" : single);
  }
  return urls.map((url) => ({ url: read(env, url), token: read(env, url.replace("URL", "TOKEN")) }));
}

function read(env: Record<string, unknown>, name: string): string {
  const value = env[name];
  if (typeof value !== "string" || value === "") {
    throw new TypeError(
      (globalThis as { process?: { env?: Record<string, unknown> } }).process?.env?.[name]
        ? `the object that you passed has no ${name}, but process.env has it: on Node, pass process.env`
        : `the environment variable ${name} is missing; ${remedyFor(env)}`,
    );
  }
  return value;
}

function remedyFor(env: Record<string, unknown>): string {
  // A framework's context, `process`, or what Pages Functions get.
  if (env.env && typeof env.env === "object") return "give the env in it: endpointsFromEnv(c.env)";
  if (typeof env.toObject === "function") return "in Deno, give Deno.env.toObject()";
  if (env.NEXT_PHASE === "phase-production-build")
    return "next build runs without it: create the client in the handler, or in a function that it calls";
  const named = Object.keys(env).find((name) => /._(KV_REST_API|UPSTASH_REDIS_REST)_URL$/.test(name));
  if (named)
    return `${named} has a prefix: give { url: env.${named}, token: env.${named.replace(/URL$/, "TOKEN")} }`;
  const ofSockets = ["REDIS_URL", "KV_URL", "UPSTASH_REDIS_URL"].find((name) => env[name]);
  if (ofSockets)
    return `${ofSockets} is of the Redis protocol: set the REST API's URL and token, or use redlock-edge/sockets`;
  return 'in Node, node --env-file=.dev.vars reads your file; "npx redis-rest-local" starts one; for your own Redis, use redlock-edge/sockets';
}
