import type { HttpEndpointOptions } from "./endpoint.ts";

const plain = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"] as const;
const vercel = ["KV_REST_API_URL", "KV_REST_API_TOKEN"] as const;

/**
 * The endpoints that an environment names: numbered ones (`UPSTASH_REDIS_REST_URL_1`, …) if there are any,
 * else `UPSTASH_REDIS_REST_URL`, else Vercel's `KV_REST_API_URL`; each with its `…_TOKEN`.
 */
export function endpointsFromEnv(env: Record<string, unknown>): HttpEndpointOptions[] {
  const numbers = Object.keys(env)
    .flatMap((name) => /^UPSTASH_REDIS_REST_URL_(\d+)$/.exec(name)?.[1] ?? [])
    .sort((a, b) => Number(a) - Number(b));
  if (numbers.length > 0) {
    return numbers.map((number) => endpoint(env, `${plain[0]}_${number}`, `${plain[1]}_${number}`));
  }
  const [url, token] = env[plain[0]] || !env[vercel[0]] ? plain : vercel;
  return [endpoint(env, url, token)];
}

function endpoint(env: Record<string, unknown>, url: string, token: string): HttpEndpointOptions {
  for (const name of [url, token]) {
    if (typeof env[name] !== "string" || env[name] === "") {
      throw new TypeError(`the environment variable ${name} is missing`);
    }
  }
  return { url: env[url] as string, token: env[token] as string };
}
