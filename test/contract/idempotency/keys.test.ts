import { afterAll, beforeAll, expect, test } from "vitest";
import { withIdempotency } from "../../../src/http/index.ts";
import { forgetKey, inspectKey, RecordCorruptError } from "../../../src/idempotency/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { type Client, clientOf, type OpenStore, recordName, storesOf } from "../../support/stores.ts";

const never = () => expect.unreachable("nothing may run");

eachEngine(storesOf([1, 3]))("keys on $title", ({ open, count }) => {
  let store: OpenStore;
  let client: Client;
  beforeAll(async () => {
    store = await open();
    client = clientOf(store);
  });
  afterAll(() => store.close());

  test("of runs and of requests never meet, in any scope", async () => {
    for (const scope of [undefined, "tenant", "http", ["http"], ["http", "tenant"]] as const) {
      const key = freshKey();
      const { redlock, idempotency } = client;
      const request = () =>
        new Request("https://a.example/", { method: "POST", headers: { "idempotency-key": key } });
      expect((await idempotency.run(key, { scope }, () => "run")).value).toBe("run");
      const answer = () => withIdempotency(request(), () => new Response("request"), { redlock, scope });
      for (const replayed of [null, "true"]) {
        const response = await answer();
        expect([response.status, await response.text()]).toEqual([200, "request"]);
        expect(response.headers.get("idempotent-replayed")).toBe(replayed);
      }
      expect(await idempotency.run(key, { scope }, never)).toEqual({ status: "replayed", value: "run" });
      // Operators select one by its kind.
      expect((await inspectKey(idempotency, key, { scope, kind: "http" })).state).toBe("complete");
      expect(await forgetKey(idempotency, key, { scope, kind: "http" })).toBe(true);
      expect(await (await answer()).text()).toBe("request");
      expect((await inspectKey(idempotency, key, { scope })).state).toBe("complete");
    }
  });

  test.each([
    ["a list", ["RPUSH"], ["x"]],
    ["a hash", ["HSET"], ["f", "x"]],
    ["a set", ["SADD"], ["x"]],
  ])("where %s stands are corrupt, and can be forgotten", async (_what, [command = ""], rest) => {
    const key = freshKey();
    const name = await recordName(key);
    for (let index = 0; index < count; index += 1) await store.execute(index, [command, name, ...rest]);
    const { idempotency } = client;
    const events: string[] = [];
    const onEvent = ({ type }: { type: string }) => events.push(type);
    const { error } = await outcomeOf(idempotency.run(key, { wait: 10_000, onEvent }, never));
    expect(error).toBeInstanceOf(RecordCorruptError);
    expect(events).toEqual(["called", "corrupt"]);
    expect((await inspectKey(idempotency, key)).state).toBe("corrupt");
    expect(await forgetKey(idempotency, key)).toBe(true);
    expect(await forgetKey(idempotency, key)).toBe(false);
    expect((await idempotency.run(key, () => 1)).status).toBe("executed");
  });

  test.runIf(count > 2)("run where a minority has a list, and are forgotten everywhere", async () => {
    const key = freshKey();
    const name = await recordName(key);
    await store.execute(0, ["RPUSH", name, "x"]);
    expect((await client.idempotency.run(key, () => 1)).status).toBe("executed");
    expect((await client.idempotency.run(key, never)).status).toBe("replayed");
    expect(await forgetKey(client.idempotency, key)).toBe(true);
    expect(await store.execute(0, ["EXISTS", name])).toBe(0);
  });

  test.each([
    ["", RangeError],
    [["a", ""], RangeError],
    [[], TypeError],
    [{ 0: "a", length: 1 }, TypeError],
    [null, TypeError],
    [["a", undefined], TypeError],
  ])("a scope %j is refused", async (scope, type) => {
    const { redlock, idempotency } = client;
    const given = { scope: scope as string[] };
    const request = new Request("https://a.example/", {
      method: "POST",
      headers: { "idempotency-key": "k" },
    });
    for (const call of [
      idempotency.run("k", given, never),
      inspectKey(idempotency, "k", given),
      forgetKey(idempotency, "k", given),
      withIdempotency(request, never, { redlock, ...given }),
    ]) {
      const { error } = await outcomeOf<unknown>(call);
      expect(error).toBeInstanceOf(type);
      expect(String(error)).toContain("scope");
    }
  });

  test("misspelt options are refused by their names", async () => {
    const { redlock, idempotency } = client;
    const request = new Request("https://a.example/", {
      method: "POST",
      headers: { "idempotency-key": "k" },
    });
    const cases: [options: object, message: RegExp][] = [
      [{ retension: 1 }, /"retension"; did you mean retention\?/],
      [{ maxAttempt: 1 }, /"maxAttempt"; did you mean maxAttempts\?/],
      [{ waitUntill: 1 }, /did you mean waitUntil\?/],
      [{ laese: 1 }, /did you mean lease\?/],
      [{ ttl: 1 }, /has no option "ttl"; there are /],
    ];
    for (const [options, message] of cases) {
      expect(() => clientOf(store, options)).toThrow(message);
      for (const call of [
        idempotency.run("k", options as object, never),
        withIdempotency(request, never, { redlock, ...options }),
      ]) {
        const { error } = await outcomeOf<unknown>(call);
        expect(error).toBeInstanceOf(TypeError);
        expect(String(error)).toMatch(message);
      }
      const { error } = await outcomeOf(inspectKey(idempotency, "k", options as object));
      expect(String(error)).toContain("inspectKey has no option");
    }
  });
});
