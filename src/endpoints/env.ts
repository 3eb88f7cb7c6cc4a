import type { HttpEndpointOptions } from "./endpoint.ts";

/**
 * The endpoints that an environment names: numbered ones (`UPSTASH_REDIS_REST_URL_1`, …) if there are any,
 * else `UPSTASH_REDIS_REST_URL`, else Vercel's `KV_REST_API_URL`; each with its `…_TOKEN`.
 */
export function endpointsFromEnv(env: Record<string, unknown>): HttpEndpointOptions[] {
  const numbered = Object.keys(env).filter((name) => /^UPSTASH_REDIS_REST_(URL|TOKEN)_\d+$/.test(name));
  // A token without its URL counts, too: a process that left that endpoint out would count other quorums.
  const urls = [...new Set(numbered.map((name) => name.replace("TOKEN", "URL")))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  if (urls.length === 0) {
    const vercel = !env.UPSTASH_REDIS_REST_URL && env.KV_REST_API_URL;
    urls.push(vercel ? "KV_REST_API_URL" : "UPSTASH_REDIS_REST_URL");
  }
  return urls.map((url) => ({ url: read(env, url), token: read(env, url.replace("URL", "TOKEN")) }));
}

function read(env: Record<string, unknown>, name: string): string {
  const value = env[name];
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`the environment variable ${name} is missing`);
  }
  return value;
}
