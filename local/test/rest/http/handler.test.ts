import { describe, expect, test } from "vitest";
import { until } from "../../../../test/support/until.ts";
import { type Argument, type Backend, type Outcome, upstashHandler } from "../../../src/index.ts";
import { StatusReply } from "../../../src/rest/redis/resp.ts";

const done: Outcome = { reply: new StatusReply("OK"), billed: 1 };

/** A handler in front of a backend whose replies the test triggers. */
function setUp() {
  const sent: { readonly name: string; answer(): void; lose(): void }[] = [];
  const send = (command: readonly Argument[]) =>
    new Promise<Outcome>((resolve, reject) => {
      const lose = () => reject(new Error("the connection was closed"));
      sent.push({ name: String(command[1]), answer: () => resolve(done), lose });
    });
  const backend: Backend = {
    execute: send,
    transaction: (commands) => Promise.all(commands.map(send)),
    subscribe: () => Promise.reject(new Error("not expected")),
    close: async () => undefined,
  };
  const handle = upstashHandler({ backend, token: "full" });
  async function request(body: unknown, path = "/"): Promise<number> {
    const headers = { authorization: "Bearer full" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await handle(new Request(`http://localhost${path}`, init));
    return Number.parseInt(response.headers.get("upstash-sync-token") ?? "", 32);
  }
  /** Resolves with the command with this key when the backend has received it. */
  const command = (name: string) => until(() => sent.find((each) => each.name === name), `command ${name}`);
  return { request, command };
}

describe("upstash-sync-token", () => {
  test("of concurrent writes has the order in which they were sent, not answered", async () => {
    const { request, command } = setUp();
    const tokens: Promise<number>[] = [];
    for (const name of ["a", "b", "c"]) {
      tokens.push(request(["SET", name, 1]));
      await command(name);
    }
    for (const name of ["c", "a", "b"]) (await command(name)).answer();
    const [first, second, third] = await Promise.all(tokens);
    expect([second, third]).toEqual([first! + 1, first! + 2]);
  });

  test("of a read includes the writes sent before it, answered or not, but no later one", async () => {
    const { request, command } = setUp();
    const before = request(["SET", "before", 1]);
    await command("before");
    const read = request(["GET", "read"]);
    await command("read");
    const after = request(["SET", "after", 1]);
    (await command("after")).answer();
    expect(await after).toBeGreaterThan(0);
    (await command("read")).answer();
    const token = await read;
    (await command("before")).answer();
    expect([token, await after]).toEqual([await before, token + 1]);
  });

  test("increases with a write whose reply is lost", async () => {
    const { request, command } = setUp();
    const lost = request(["SET", "lost", 1]);
    (await command("lost")).lose();
    const token = await lost;
    const read = request(["GET", "read"]);
    (await command("read")).answer();
    expect([token, await read]).toEqual([1, 1]);
  });

  test("of a pipeline or transaction includes its last write", async () => {
    const { request, command } = setUp();
    const writes = (name: string) => [
      ["SET", `${name}1`, 1],
      ["GET", `${name}2`],
      ["SET", `${name}3`, 1],
    ];
    const pipeline = request(writes("p"), "/pipeline");
    const other = request(["SET", "other", 1]);
    (await command("other")).answer();
    for (const number of [1, 2, 3]) (await command(`p${number}`)).answer();
    expect([await other, await pipeline]).toEqual([3, 2]);
    const transaction = request(writes("t"), "/multi-exec");
    for (const number of [1, 2, 3]) (await command(`t${number}`)).answer();
    expect(await transaction).toBe(5);
  });
});
