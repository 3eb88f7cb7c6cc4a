import { describe, expect, it } from "vitest";
import { githubExamples } from "../../tools/deliveries.mjs";
import {
  EventError,
  githubEvent,
  linearEvent,
  shopifyEvent,
  slackEvent,
  standardWebhooksEvent,
  stripeEvent,
} from "../../worker/event.ts";

const text = (value: string) => new TextEncoder().encode(value);
const bytes = (payload: unknown) => text(JSON.stringify(payload));
const from = (headers: Record<string, string>) =>
  new Request("http://localhost/", { method: "POST", headers });
const github = (event: string) => from({ "x-github-event": event });
const shopify = (topic: string) =>
  from({ "x-shopify-topic": topic, "x-shopify-shop-domain": "a.myshopify.com" });
const slack = (event: unknown) => slackEvent(bytes({ type: "event_callback", team_id: "T1", event }));
const repository = { full_name: "octo/demo" };
const installation = { account: { login: "octo" } };
const sender = { login: "cat" };

describe("the event of GitHub", () => {
  it.each([
    ["issues", { action: "opened", repository, issue: { number: 42 } }, "issues.opened", "octo/demo#42"],
    ["pull_request", { action: "closed", repository, number: 7 }, "pull_request.closed", "octo/demo#7"],
    ["pull_request_review", { repository, pull_request: { number: 7 } }, undefined, "octo/demo#7"],
    ["discussion", { repository, discussion: { number: 9 } }, undefined, "octo/demo#9"],
    ["push", { repository, ref: "refs/heads/feature/x" }, "push", "octo/demo@feature/x"],
    ["delete", { repository, ref: "feature/x", ref_type: "branch" }, "delete", "octo/demo@feature/x"],
    ["create", { repository, ref: null }, "create", "octo/demo"],
    ["organization", { organization: { login: "octo" }, sender }, undefined, "octo"],
    ["installation", { installation, sender }, undefined, "octo"],
    ["sponsorship", { sender }, undefined, "cat"],
    ["security_advisory", { security_advisory: { ghsa_id: "GHSA-1" } }, undefined, "GHSA-1"],
    ["star", { action: { a: 1 }, repository: "octo/demo", sender: { login: ["x"] } }, "star", "unknown"],
  ])("is that of %s", (event, payload, name = event, subject) => {
    expect(githubEvent(github(event), bytes(payload))).toEqual({ name, entity: `github:${subject}` });
  });

  it("is about something in each of GitHub's own examples", () => {
    for (const { name, examples } of githubExamples()) {
      for (const payload of examples) {
        expect(githubEvent(github(name), bytes(payload)).entity).not.toBe("github:unknown");
      }
    }
  });

  it("has a name that is short enough for a key", () => {
    const long = { repository: { full_name: "x".repeat(5_000) }, ref: "y".repeat(5_000) };
    expect(githubEvent(github("push"), bytes(long)).entity.length).toBeLessThan(1_000);
  });
});

it.each<[sender: string, event: object, name: string, subject: string]>([
  ["standard-webhooks", standardWebhooksEvent(bytes({ type: "a", data: { id: "inv" } }), "msg"), "a", "inv"],
  ["standard-webhooks", standardWebhooksEvent(bytes({ type: "a", data: { id: 42 } }), "msg"), "a", "42"],
  ["standard-webhooks", standardWebhooksEvent(bytes({ data: { id: null } }), "msg"), "event", "msg"],
  ["stripe", stripeEvent(bytes({ type: "a", data: { object: { id: "in" } } }), "evt"), "a", "in"],
  ["stripe", stripeEvent(bytes({ type: "a", related_object: { id: "mtr" } }), "evt"), "a", "mtr"],
  ["stripe", stripeEvent(bytes({ data: "text" }), "evt"), "event", "evt"],
  ["shopify", shopifyEvent(shopify("a/paid"), bytes({ id: 82 }), "d"), "a/paid", "a.myshopify.com/a/82"],
  ["shopify", shopifyEvent(shopify("a/gone"), bytes({}), "d"), "a/gone", "a.myshopify.com/a/d"],
  ["slack", slack({ type: "message", channel: "C1", user: "U1" }), "message", "T1/C1"],
  ["slack", slack({ type: "channel_created", channel: { id: "C2" } }), "channel_created", "T1/C2"],
  [
    "slack",
    slack({ type: "reaction_added", user: "U1", item: { channel: "C3" } }),
    "reaction_added",
    "T1/C3",
  ],
  ["slack", slack({ type: "user_change", user: { id: "U2" } }), "user_change", "T1/U2"],
  ["slack", slack(undefined), "event_callback", "T1"],
  [
    "linear",
    linearEvent(bytes({ type: "Issue", action: "update", data: { id: "i" } }), "d"),
    "Issue.update",
    "i",
  ],
  ["linear", linearEvent(bytes({}), "d"), "event", "d"],
])("the event of %s: %j", (sender, event, name, subject) => {
  expect(event).toEqual({ name, entity: `${sender}:${subject}` });
});

it("a challenge of Slack is one", () => {
  const challenge = { type: "url_verification", token: "t", challenge: "3eZbrw1a" };
  expect(slackEvent(bytes(challenge))).toMatchObject({ name: "url_verification", challenge: "3eZbrw1a" });
});

it.each<[string, () => unknown]>([
  ["a form", () => githubEvent(github("issues"), text("payload=%7B%7D"))],
  ["a list", () => githubEvent(github("issues"), bytes([]))],
  ["null", () => githubEvent(github("issues"), bytes(null))],
  ["no name of an event", () => githubEvent(github("two words"), bytes({}))],
  ["a name that is too long", () => githubEvent(github("x".repeat(65)), bytes({}))],
  ["a broken text", () => standardWebhooksEvent(text("{"), "msg")],
  ["a command of Slack", () => slackEvent(text("command=%2Fx&trigger_id=1"))],
])("%s is no event", (_, event) => {
  expect(event).toThrow(EventError);
});

it.each([
  ["cut between two characters", `${"x".repeat(253)}🔒tail`, `${"x".repeat(253)}🔒`],
  ["cut before a character that does not fit", `${"x".repeat(254)}🔒tail`, "x".repeat(254)],
  ["a half that the payload escapes", "inv_\ud83d!", "inv_\ufffd!"],
  ["a half at the end", "inv_\ud83d", "inv_\ufffd"],
  ["the other half", "\udd12inv", "\ufffdinv"],
])("a name that UTF-8 cannot hold, or that is too long, is repaired: %s", (_, id, name) => {
  const entity = `standard-webhooks:${name}`;
  expect(standardWebhooksEvent(bytes({ type: id, data: { id } }), "msg")).toEqual({ name, entity });
  // Also an id that stands for the entity.
  if (id.length < 100) expect(standardWebhooksEvent(bytes({}), id).entity).toBe(entity);
});
