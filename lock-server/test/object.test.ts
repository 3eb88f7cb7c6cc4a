import { expect, test } from "vitest";
import { durableEndpoint, type LockServerOptions, lockServerApp } from "../src/index.ts";
import { namespaceOf, type Objects } from "./storage.ts";

// In which object the keys of a lock server are.

const claim = (objects: Objects, server: LockServerOptions) =>
  durableEndpoint(namespaceOf(objects), server).send(
    ["SET", "held", "x", "NX"],
    new AbortController().signal,
  );

test("name and jurisdiction decide it, and a location does not", async () => {
  const objects: Objects = new Map();
  const servers = [{}, { name: "b" }, { jurisdiction: "eu" }, { name: "b", jurisdiction: "eu" }];
  for (const server of servers) {
    expect(await claim(objects, { ...server, locationHint: "weur" })).toBe("OK");
    expect(await claim(objects, { ...server, locationHint: "enam" })).toBeNull();
    expect(await claim(objects, server)).toBeNull();
  }
  expect([...objects.keys()]).toEqual(["anywhere/locks", "anywhere/b", "eu/locks", "eu/b"]);
});

test("a jurisdiction that the platform does not have is named", async () => {
  const locks = {
    ...namespaceOf(new Map()),
    jurisdiction() {
      throw new Error("not implemented here");
    },
  };
  const app = lockServerApp({ jurisdiction: "eu", locks: () => locks, tokens: () => ["x".repeat(32)] });
  const headers = { authorization: `Bearer ${"x".repeat(32)}` };
  const request = new Request("https://locks.example", { method: "POST", headers, body: '["PING"]' });
  const answer = await app.fetch(request, {});
  expect([answer.status, await answer.json()]).toEqual([
    500,
    { error: 'the platform refuses the jurisdiction "eu": not implemented here' },
  ]);
});
