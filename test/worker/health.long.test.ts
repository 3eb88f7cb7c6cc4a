import { afterEach, describe, expect, it } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { randomSecrets, startWorker } from "../../tools/local-worker.mjs";

const secrets = { ...randomSecrets(), JOURNAL_SECRET: "a secret of this test, long enough" };
let local: LocalEndpoints;
let worker: Awaited<ReturnType<typeof startWorker>>;
afterEach(async () => {
  await worker?.close();
  await local?.close();
});

async function open(): Promise<void> {
  local = await start({ count: 3, engine: "embedded" });
  worker = await startWorker({ bindings: { ...secrets, ...local.env() } });
}

async function getHealth() {
  const url = `${worker.url}/healthz`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${secrets.JOURNAL_SECRET}` } });
  return { status: response.status, text: await response.clone().text(), json: await response.json() };
}

const senders = ["github", "standard-webhooks", "stripe"];
const names = () => local.endpoints.map(({ url }) => new URL(url).host);
type Failure = { readonly kind: string; readonly status?: number };
const health = (status: string, failures: readonly (Failure | undefined)[], database?: Failure) => ({
  status,
  senders,
  quorum: { answered: failures.filter((failure) => !failure).length, needed: 2 },
  endpoints: names().map((name, index) => ({ name, ...answer(failures[index]) })),
  database: answer(database),
});
const answer = (failure: Failure | undefined) =>
  failure ? { answered: false, failure } : { answered: true };
const network = { kind: "network" };

/**
 * Requests the health until it is this: an answer stays valid for some seconds, and on a busy machine an endpoint's may come
 * too late. Returns its text.
 */
async function untilHealth(status: number, failures: readonly (Failure | undefined)[], database?: Failure) {
  const json = health(status === 200 ? "ok" : "unavailable", failures, database);
  let text = "";
  const get = async () => {
    const last = await getHealth();
    text = last.text;
    return { status: last.status, json: last.json };
  };
  await expect.poll(get).toEqual({ status, json });
  return text;
}

describe("/healthz", () => {
  it("is 200 while a quorum answers, and names the endpoints that do not", async () => {
    await open();
    await local.endpoints[1]!.stop();
    await untilHealth(200, [undefined, network, undefined]);
  });

  it("is 503 without a quorum, contains no secret, and is 200 again after a recovery", async () => {
    await open();
    local.endpoints[0]!.faults.add({ fault: "delay-reply", ms: 20_000 });
    // An answer to a wrong token does not count.
    local.endpoints[1]!.faults.add({ fault: "status", status: 401 });
    const text = await untilHealth(503, [{ kind: "timeout" }, { kind: "http", status: 401 }, undefined]);
    const stranger = await fetch(`${worker.url}/healthz`);
    expect([stranger.status, await stranger.json()]).toEqual([503, { status: "unavailable" }]);
    for (const secret of [...Object.values(secrets), local.endpoints[0]!.token]) {
      expect(text).not.toContain(secret);
    }
    for (const { faults } of local.endpoints) faults.clear();
    await untilHealth(200, [undefined, undefined, undefined]);
  });

  it("is 503 when the database fails", async () => {
    await open();
    await worker.database.prepare("DROP TABLE counters").run();
    // A view that cannot be read simulates a database that cannot be read.
    await worker.database.prepare("CREATE VIEW counters AS SELECT no_such_function(1) AS name").run();
    await untilHealth(503, [undefined, undefined, undefined], { kind: "error" });
  });

  it("queries each endpoint once for many concurrent requests and for the next ones", async () => {
    await open();
    local.endpoints[0]!.faults.add({ fault: "delay", ms: 300 });
    const begun = Date.now();
    const answers = await Promise.all(Array.from({ length: 30 }, getHealth));
    answers.push(await getHealth());
    expect(answers.map(({ json }) => json.endpoints.length)).toEqual(new Array(31).fill(3));
    // Nobody waits for a check, or relies on one, for less than 4 s. On a busy machine more of them may fit into the test.
    const checks = 1 + Math.floor((Date.now() - begun) / 4_000);
    // A check is a script, which is sent again with its source if the endpoint does not have it yet.
    for (const { log } of local.endpoints) expect(log.requests).toBeLessThanOrEqual(2 * checks);
  });
});
