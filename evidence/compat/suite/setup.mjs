// Before each file of the suite: an endpoint that no other worker uses, empty.
import process from "node:process";

const endpoints = JSON.parse(process.env.COMPAT_ENDPOINTS);
const { url, token } = endpoints[Number(process.env.VITEST_POOL_ID) - 1];
process.env.UPSTASH_REDIS_REST_URL = url;
process.env.UPSTASH_REDIS_REST_TOKEN = token;
process.env.UPSTASH_DISABLE_TELEMETRY = "1";
const answer = await fetch(`${url}/pipeline`, {
  method: "POST",
  headers: { authorization: `Bearer ${token}` },
  body: JSON.stringify([["FLUSHALL"], ["FUNCTION", "FLUSH"], ["SCRIPT", "FLUSH"]]),
});
if (!answer.ok) throw new Error(`the endpoint cannot be emptied: ${await answer.text()}`);
