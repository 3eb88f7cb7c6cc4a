import { describe, expect, test } from "vitest";
import { start } from "../../../local/src/index.ts";
import { httpEndpoint } from "../../../src/endpoints/http.ts";
import { QuorumError } from "../../../src/errors/errors.ts";
import { Idempotency, ResultUnavailableError } from "../../../src/idempotency/index.ts";
import { parseRecord } from "../../../src/idempotency/record.ts";
import { Redlock } from "../../../src/redlock.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { recordName } from "../../support/stores.ts";
import { until } from "../../support/until.ts";

// Real servers that end while a handler runs, and one that refuses its result.

const backoff = { min: 5, max: 60 };
const never = () => expect.unreachable("nothing may run");

describe.concurrent("a server that is killed while the handler runs", () => {
  const engine = bestEngine;

  async function servers(count: number) {
    const local = await start({ count, engine });
    const endpoints = local.endpoints.map(({ url, token, name }) => httpEndpoint({ url, token, name }));
    const options = { lease: 60_000, timeout: 5_000, backoff };
    return { local, client: () => new Idempotency(new Redlock({ endpoints }), options) };
  }

  test("is the only one: the value is returned, and stored when it comes back", async () => {
    const { local, client } = await servers(1);
    const key = freshKey();
    const only = local.endpoints[0]!;
    const outcome = await client().run(key, async () => {
      await only.stop();
      return "done";
    });
    expect(outcome).toEqual({ status: "executed", value: "done", unstored: "no-quorum" });
    const down = await outcomeOf(client().run(key, () => expect.unreachable("the answers do not decide")));
    expect(down.error).toBeInstanceOf(QuorumError);
    await only.start();
    const name = await recordName(key);
    await until(async () => parseRecord(await only.execute(["GET", name]))?.state === "complete");
    expect((await client().run(key, () => "again")).value).toBe("done");
  });
});

test("what a server takes no request for is run once", async () => {
  // The server's own limit of 10 MB, which says so as Upstash does.
  await using local = await start({ count: 1, engine: "embedded" });
  const { url, token } = local.endpoints[0]!;
  const idempotency = new Idempotency(new Redlock({ endpoints: [httpEndpoint({ url, token })] }));
  const key = freshKey();
  expect((await idempotency.run(key, () => "x".repeat(11_000_000))).unstored).toBe("too-large");
  expect((await outcomeOf(idempotency.run(key, never))).error).toBeInstanceOf(ResultUnavailableError);
});
