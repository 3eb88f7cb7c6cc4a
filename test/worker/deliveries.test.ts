import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Delivery, forged, githubDelivery, standardDelivery } from "../../tools/deliveries.mjs";
import { type LocalStand, openStand, sendAtOnce, sendUntilSuccess } from "./local-stand.ts";

let stand: LocalStand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

/** A delivery of GitHub with this body, whatever it is. */
const fromGitHub = (payload: unknown) =>
  githubDelivery(stand.secrets.GITHUB_WEBHOOK_SECRET, "issues", payload, randomUUID());
/** What GitHub sends where the content type is not application/json. */
async function form(): Promise<Delivery> {
  const body = "payload=%7B%7D";
  const signature = await sign(stand.secrets.GITHUB_WEBHOOK_SECRET, body);
  const delivery = await fromGitHub({});
  return { ...delivery, body, headers: { ...delivery.headers, "x-hub-signature-256": signature } };
}
const standard = (payload: unknown, id: string) =>
  standardDelivery(stand.secrets.STANDARD_WEBHOOKS_SECRET, payload, id);

// The first tests of this file: nothing else has been sent.
describe("a delivery that is refused", () => {
  it.each<[string, number, () => Delivery | Promise<Delivery>]>([
    ["forged", 401, async () => forged(await stand.github("issues"))],
    ["forged, of Stripe", 401, async () => forged(stand.stripe("in_3"))],
    ["unsigned", 401, async () => ({ ...(await stand.github("issues")), headers: {} })],
    ["null", 400, () => fromGitHub(null)],
    ["a list", 400, () => fromGitHub([])],
    ["a form", 400, () => form()],
    ["about a NUL", 400, () => standard({ type: "a", data: { id: "in\0" } }, randomUUID())],
    [
      "of half of a surrogate pair",
      400,
      () => standard({ type: "\udc00", data: { id: "in" } }, randomUUID()),
    ],
  ])("(%s) has no effect, and causes no request to Redis", async (_, status, make) => {
    const delivery = await make();
    const response = await stand.send(delivery);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      status,
      "application/problem+json",
    ]);
    expect(await response.json()).toMatchObject({ status, title: expect.any(String) });
    expect(stand.requests()).toBe(0);
    expect(await stand.effects(delivery)).toEqual([]);
  });
});

describe("a genuine delivery", () => {
  it.each<[string, () => Delivery | Promise<Delivery>]>([
    ["GitHub", () => stand.github("issues")],
    ["Standard Webhooks", () => stand.standard("inv_1")],
    ["Stripe", () => stand.stripe("in_1")],
  ])("of %s that is sent five times at once, and once more later, acts once", async (_, make) => {
    const delivery = await make();
    const statuses = await sendAtOnce(stand, delivery, 5);
    expect(statuses.filter((status) => status !== "replayed" && status !== 503)).toEqual([200]);
    await stand.journal(delivery, 5);
    const again = await stand.send(delivery);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    const [row] = (await stand.journal(delivery, 6)).slice(-1);
    expect(row).toMatchObject({ sender: delivery.provider, outcome: "replayed", status: 200, reason: null });

    const [effect, ...others] = await stand.effects(delivery);
    expect(others).toEqual([]);
    const { event, entity, fence, events } = effect!;
    expect(await again.json()).toEqual({ delivery: delivery.id, event, entity, fence, events });
    expect(row).toMatchObject({ event, entity });
    const find = "SELECT events, fence FROM entities WHERE entity = ?1";
    expect(await stand.query(find, String(entity))).toEqual([{ events, fence }]);
  });

  it.each<[event: string, entity: string, make: () => Delivery | Promise<Delivery>]>([
    ["issues.edited", "github:Codertocat/Hello-World#1", () => stand.github("issues")],
    ["pull_request.opened", "github:Codertocat/Hello-World#2", () => stand.github("pull_request")],
    ["discussion.created", "github:octo-org/octo-repo#90", () => stand.github("discussion")],
    ["push", "github:Codertocat/Hello-World", () => stand.github("push")],
    ["organization.member_added", "github:Octocoders", () => stand.github("organization")],
    ["sponsorship.created", "github:monalisa", () => stand.github("sponsorship")],
    ["a.b", "standard-webhooks:42", () => standard({ type: "a.b", data: { id: 42 } }, "msg_1")],
    ["event", "standard-webhooks:msg_2", () => standard({ data: { id: null } }, "msg_2")],
    ["invoice.paid", "stripe:in_42", () => stand.stripe("in_42")],
  ])("is about %s of %s", async (event, entity, make) => {
    const response = await stand.send(await make());
    expect(await response.json()).toMatchObject({ event, entity });
  });
});

it("different deliveries about one entity act one after the other, each under a newer fence", async () => {
  const deliveries = Array.from({ length: 8 }, () => stand.standard("inv_shared"));
  await Promise.all(deliveries.map((delivery) => sendUntilSuccess(stand, delivery)));
  const find = "SELECT events, fence FROM effects WHERE entity = ?1 ORDER BY rowid";
  const rows = await stand.query(find, "standard-webhooks:inv_shared");
  expect(rows.map(({ events }) => events)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  const fences = rows.map(({ fence }) => Number(fence));
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
});

it("a delivery whose effect cannot be written is answered 500, and acts when it is sent again", async () => {
  await stand.query(
    "CREATE TRIGGER broken BEFORE INSERT ON effects BEGIN SELECT RAISE(ABORT, 'the database is broken'); END",
  );
  const delivery = await stand.github("issues");
  const failed = await stand.send(delivery);
  expect([failed.status, failed.headers.get("content-type")]).toEqual([500, "application/problem+json"]);
  expect(await failed.text()).not.toContain("is broken");
  expect(await stand.effects(delivery)).toEqual([]);
  const reason = "The event could not be handled: send it again";
  expect(await stand.journal(delivery, 1)).toMatchObject([{ outcome: "retry", status: 500, reason }]);
  await stand.query("DROP TRIGGER broken");
  await sendUntilSuccess(stand, delivery);
  expect(await stand.effects(delivery)).toHaveLength(1);
});

it("a write under a stale fence changes nothing, and the sender is asked to try again", async () => {
  const entity = "standard-webhooks:inv_stale";
  await stand.query("INSERT INTO entities VALUES (?1, 7, 9007199254740991)", entity);
  await stand.query("INSERT INTO redlock_fences (entity, fence) VALUES (?1, 9007199254740991)", entity);
  const delivery = stand.standard("inv_stale");
  const response = await stand.send(delivery);
  expect(response.status).toBe(503);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await stand.effects(delivery)).toEqual([]);
  const find = "SELECT events FROM entities WHERE entity = ?1";
  expect(await stand.query(find, entity)).toEqual([{ events: 7 }]);
});

it("refused deliveries are only sampled in the journal, under no key", async () => {
  const delivery = await stand.github("watch");
  await Promise.all(Array.from({ length: 130 }, () => stand.send(forged(delivery))));
  await stand.send(delivery);
  await stand.journal(delivery, 1);
  const [refused] = await stand.query(
    "SELECT count(*) AS count, count(delivery_key) AS named FROM deliveries WHERE outcome = 'refused'",
  );
  expect(refused?.count).toBeGreaterThan(0);
  // 60 a minute, and a minute may have ended meanwhile.
  expect(refused?.count).toBeLessThanOrEqual(120);
  expect(refused?.named).toBe(0);
});

it("tools/send-webhook.mjs sends a webhook five times", async () => {
  const run = async () => {
    const args = ["tools/send-webhook.mjs", "--sender", "stripe", "--url", `${stand.url}/`, "--id", "evt_1"];
    const { stdout } = await promisify(execFile)("node", args, {
      env: { ...process.env, ...stand.secrets },
    });
    return stdout.trim().split("\n");
  };
  const answers = await run();
  expect(answers).toHaveLength(5);
  expect(answers.filter((answer) => answer.startsWith("200 {"))).toHaveLength(1);
  const again = await run();
  expect(again.filter((answer) => answer.startsWith("200 replayed {"))).toHaveLength(5);
});
