import { describe, expect, test } from "vitest";
import { addressOf } from "../../../src/endpoints/address.ts";

const at = (url: string, options = {}) => addressOf("url", url, options);

test.each([
  ["https://redis.example", {}, "https://redis.example/", "redis.example"],
  ["https://Redis.Example:443/", {}, "https://redis.example/", "redis.example"],
  ["https://redis.example:8443", {}, "https://redis.example:8443/", "redis.example:8443"],
  ["https://gw.example", { basePath: "/redis" }, "https://gw.example/redis", "gw.example/redis"],
  // A server may redirect the one to the other, so what is given is used; the name tells databases apart.
  [
    "https://gw.example/",
    { basePath: "/v1.0/a-b_c/" },
    "https://gw.example/v1.0/a-b_c/",
    "gw.example/v1.0/a-b_c",
  ],
])("%s with %j is %s", (url, options, href, name) => {
  expect(at(url, options)).toEqual({ href, name });
});

function refused(url: string, said: RegExp): void {
  expect(() => at(url)).toThrow(said);
  expect(() => at(url)).toThrow(TypeError);
  expect(() => at(url)).not.toThrow("secret");
}

describe("refuses, and does not repeat,", () => {
  test.each([
    "https://h.example/secret",
    "https://h.example//",
    "https://h.example/a/..//secret",
    "https://h.example\\secret",
    "https://h.example/?",
    "https://h.example?_token=secret",
    "https://h.example/#",
    "https://h.example#secret",
    "https://secret@h.example",
    "https://:secret@h.example",
  ])("the URL %s", (url) => {
    refused(url, /^url must be the REST API's https:\/\/host, without credentials, path and query/);
  });

  test.each<[url: string, said: RegExp]>([
    ['"https://secret.example"', /without quotes/],
    ["'rediss://secret.example'", /without quotes/],
    ["redis://secret.example", /REST API's https:\/\/host; for the Redis protocol/],
    ["REDISS://default:secret@h.example:6379", /REST API's https:\/\/host; for the Redis protocol/],
    ["ftp://secret.example", /https:\/\/host \(or http:/],
    ["blob:https://secret.example/", /https:\/\/host \(or http:/],
    ["secret.example:6379", /https:\/\/host \(or http:/],
    ["secret", /https:\/\/host \(or http:/],
    ["", /https:\/\/host \(or http:/],
  ])("the URL %s, in its own words", refused);

  test.each([
    "redis",
    "/",
    "",
    "//elsewhere.example",
    "/redis//",
    "/../set",
    "/a/./b",
    "/%2e%2e/set",
    "/a?b",
    "/a#b",
    "/a b",
    "/a\\b",
    "@elsewhere.example/",
    7,
  ])("the base path %j", (basePath) => {
    expect(() => at("https://h.example", { basePath })).toThrow(
      new TypeError('basePath must be a path such as "/redis"'),
    );
  });
});

describe("http://", () => {
  const local =
    "localhost:8079 redis.localhost 127.0.0.1 127.255.0.9:1 0.0.0.0 0x7f.1 [::1]:8079 10.0.0.1 172.16.0.1 " +
    "172.31.255.255 192.168.1.1 169.254.0.1 [fc00::1] [fdff:1::] [fe80::1] redis redis:8079 srh.internal " +
    "nas.local srh.cache.svc.cluster.local router.lan nas.home.arpa";
  test.each(local.split(" "))("may lead to %s", (host) => {
    expect(at(`http://${host}`).href).toMatch(/^http:/);
  });

  const open =
    "redis.example eu1.upstash.io 8.8.8.8 10.example.com 127.0.0.1.example.com 172.15.0.1 172.32.0.1 " +
    "192.169.0.1 11.0.0.1 localhost.example notlocal.example xlocal.io mylan.net [2001:db8::1] [fc::1] " +
    "[fd1::] [::2] [::1:1] [::ffff:8.8.8.8]";
  test.each(open.split(" "))("leads to %s only where that is allowed", (host) => {
    expect(() => at(`http://${host}`)).toThrow(
      new TypeError("url must be https://, or all can read the token (see allowInsecure)"),
    );
    // A variable of the environment is a text; "false" would allow it.
    for (const allowInsecure of [false, "false", 1]) {
      expect(() => at(`http://${host}`, { allowInsecure })).toThrow("allowInsecure");
    }
    expect(at(`http://${host}`, { allowInsecure: true }).href).toMatch(/^http:/);
    expect(at(`https://${host}`).href).toMatch(/^https:/);
  });
});
