import { describe, expect, test } from "vitest";
import type { Argument, Backend, Outcome } from "../../../../src/dev/index.ts";
import { upstashHandler } from "../../../../src/dev/index.ts";
import { StatusReply } from "../../../../src/dev/redis/resp.ts";
import { until } from "../../../support/until.ts";

const done: Outcome = { reply: new StatusReply("OK"), billed: 1 };

/** A handler in front of a backend whose commands are answered when the test says so. */
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
    close: async () => undefined,
  };
  const handle = upstashHandler({ backend, token: "full" });
  async function ask(body: unknown, path = "/"): Promise<number> {
    const headers = { authorization: "Bearer full" };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await handle(new Request(`http://localhost${path}`, request));
    return Number.parseInt(response.headers.get("upstash-sync-token") ?? "", 32);
  }
  /** The command with this key, once the backend has it. */
  const command = (name: string) => until(() => sent.find((each) => each.name === name), `command ${name}`);
  return { ask, command };
}

describe("upstash-sync-token", () => {
  test("of concurrent writes follows the order in which they were sent, not answered", async () => {
    const { ask, command } = setUp();
    const tokens: Promise<number>[] = [];
    for (const name of ["a", "b", "c"]) {
      tokens.push(ask(["SET", name, 1]));
      await command(name);
    }
    for (const name of ["c", "a", "b"]) (await command(name)).answer();
    const [first, second, third] = await Promise.all(tokens);
    expect([second, third]).toEqual([first! + 1, first! + 2]);
  });

  test("of a read covers the writes sent before it, answered or not, and none sent later", async () => {
    const { ask, command } = setUp();
    const before = ask(["SET", "before", 1]);
    await command("before");
    const read = ask(["GET", "read"]);
    await command("read");
    const after = ask(["SET", "after", 1]);
    (await command("after")).answer();
    expect(await after).toBeGreaterThan(0);
    (await command("read")).answer();
    const token = await read;
    (await command("before")).answer();
    expect([token, await after]).toEqual([await before, token + 1]);
  });

  test("moves with a write whose reply is lost", async () => {
    const { ask, command } = setUp();
    const lost = ask(["SET", "lost", 1]);
    (await command("lost")).lose();
    const token = await lost;
    const read = ask(["GET", "read"]);
    (await command("read")).answer();
    expect([token, await read]).toEqual([1, 1]);
  });

  test("of a pipeline and of a transaction covers their last write", async () => {
    const { ask, command } = setUp();
    const writes = (name: string) => [
      ["SET", `${name}1`, 1],
      ["GET", `${name}2`],
      ["SET", `${name}3`, 1],
    ];
    const pipeline = ask(writes("p"), "/pipeline");
    const other = ask(["SET", "other", 1]);
    (await command("other")).answer();
    for (const number of [1, 2, 3]) (await command(`p${number}`)).answer();
    expect([await other, await pipeline]).toEqual([2, 3]);
    const transaction = ask(writes("t"), "/multi-exec");
    for (const number of [1, 2, 3]) (await command(`t${number}`)).answer();
    expect(await transaction).toBe(5);
  });
});
