import { describe, expect, test } from "vitest";
import { endpointsFromEnv } from "../../../src/endpoints/env.ts";

const one = (name: string, suffix = "") => ({
  [`UPSTASH_REDIS_REST_URL${suffix}`]: `https://${name}.upstash.io`,
  [`UPSTASH_REDIS_REST_TOKEN${suffix}`]: `token-${name}`,
});
const vercel = { KV_REST_API_URL: "https://kv.upstash.io", KV_REST_API_TOKEN: "token-kv" };
const read = (name: string) => ({ url: `https://${name}.upstash.io`, token: `token-${name}` });

describe("endpointsFromEnv", () => {
  test.each([
    ["a single one", one("a"), ["a"]],
    ["Vercel's", vercel, ["kv"]],
    ["the single one before Vercel's", { ...vercel, ...one("a") }, ["a"]],
    ["Vercel's where the other is empty", { ...vercel, UPSTASH_REDIS_REST_URL: "" }, ["kv"]],
    ["numbered ones before Vercel's", { ...vercel, ...one("b", "_1") }, ["b"]],
    // As `start` sets them for a single endpoint.
    ["a database once that has both names", { ...one("a"), ...one("a", "_1") }, ["a"]],
    ["numbered ones from _0", { ...one("a", "_0"), ...one("b", "_1") }, ["a", "b"]],
    ["numbered ones where the single one is empty", { UPSTASH_REDIS_REST_URL: "", ...one("b", "_1") }, ["b"]],
    [
      "numbered ones by number, not by text",
      { ...one("ten", "_10"), ...one("two", "_2"), ...one("one", "_1") },
      ["one", "two", "ten"],
    ],
    ["numbered ones with gaps", { ...one("x", "_3"), ...one("y", "_7") }, ["x", "y"]],
    ["nothing of other names", { ...one("a"), UPSTASH_REDIS_REST_URL_EU: "https://eu.upstash.io" }, ["a"]],
  ])("reads %s", (_what, env, names) => {
    expect(endpointsFromEnv(env)).toEqual(names.map(read));
  });

  test.each([
    ["nothing", {}, "UPSTASH_REDIS_REST_URL"],
    ["no token", { UPSTASH_REDIS_REST_URL: "https://a.upstash.io" }, "UPSTASH_REDIS_REST_TOKEN"],
    ["an empty token", { ...one("a"), UPSTASH_REDIS_REST_TOKEN: "" }, "UPSTASH_REDIS_REST_TOKEN"],
    ["no Vercel token", { KV_REST_API_URL: "https://kv.upstash.io" }, "KV_REST_API_TOKEN"],
    [
      "no token for a number",
      { ...one("a", "_1"), UPSTASH_REDIS_REST_URL_2: "https://b.upstash.io" },
      "UPSTASH_REDIS_REST_TOKEN_2",
    ],
    // With one endpoint fewer than its neighbours, a process would find quorums that theirs do not meet.
    [
      "no url for a number",
      { ...one("a", "_1"), UPSTASH_REDIS_REST_TOKEN_2: "token-b" },
      "UPSTASH_REDIS_REST_URL_2",
    ],
    [
      "an empty url for a number",
      { ...one("a", "_1"), UPSTASH_REDIS_REST_URL_1: "" },
      "UPSTASH_REDIS_REST_URL_1",
    ],
    ["a url that is not a text", { ...one("a"), UPSTASH_REDIS_REST_URL: 5 }, "UPSTASH_REDIS_REST_URL"],
    // It is not clear whether it is one of the quorum.
    ["one without a number beside _2", { ...one("a"), ...one("b", "_2") }, "UPSTASH_REDIS_REST_URL_1,"],
    [
      "one without a number beside _1 and _2",
      { ...one("a"), ...one("b", "_1"), ...one("c", "_2") },
      "UPSTASH_REDIS_REST_URL_3,",
    ],
  ])("%s is a TypeError that names the variable", (_what, env, name) => {
    expect(() => endpointsFromEnv(env)).toThrow(TypeError);
    expect(() => endpointsFromEnv(env)).toThrow(new RegExp(`${name} ?`));
    expect(() => endpointsFromEnv(env)).not.toThrow(/token-/);
  });
});

test("variables whose names only contain those are no endpoints", () => {
  const env = {
    UPSTASH_REDIS_REST_URL_1: "https://a.example",
    UPSTASH_REDIS_REST_TOKEN_1: "a",
    OLD_UPSTASH_REDIS_REST_URL_2: "https://b.example",
    UPSTASH_REDIS_REST_URL_3_OLD: "https://c.example",
  };
  expect(endpointsFromEnv(env)).toEqual([{ url: "https://a.example", token: "a" }]);
});
