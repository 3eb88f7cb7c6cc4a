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

const bytes = (payload: unknown) => new TextEncoder().encode(JSON.stringify(payload));
const from = (event: string) =>
  new Request("http://localhost/", { method: "POST", headers: { "x-github-event": event } });
const repository = { full_name: "octo/demo" };

describe("githubEvent", () => {
  it.each([
    ["issues", { action: "opened", repository, issue: { number: 42 } }, "issues.opened", "octo/demo#42"],
    ["pull_request", { action: "closed", repository, number: 7 }, "pull_request.closed", "octo/demo#7"],
    ["pull_request_review", { repository, pull_request: { number: 7 } }, undefined, "octo/demo#7"],
    ["discussion", { repository, discussion: { number: 9 } }, undefined, "octo/demo#9"],
    ["push", { repository, ref: "refs/heads/feature/x" }, "push", "octo/demo@feature/x"],
    ["delete", { repository, ref: "feature/x", ref_type: "branch" }, "delete", "octo/demo@feature/x"],
    ["create", { repository, ref: null }, "create", "octo/demo"],
    ["star", { action: "created", repository }, "star.created", "octo/demo"],
    ["organization", { organization: { login: "octo" }, sender: { login: "cat" } }, undefined, "octo"],
    [
      "installation",
      { installation: { account: { login: "octo" } }, sender: { login: "cat" } },
      undefined,
      "octo",
    ],
    ["sponsorship", { sender: { login: "cat" } }, undefined, "cat"],
    ["security_advisory", { security_advisory: { ghsa_id: "GHSA-1" } }, undefined, "GHSA-1"],
    ["unheard_of", {}, undefined, "unknown"],
  ])("reads the entity of %s", (event, payload, name = event, subject) => {
    expect(githubEvent(from(event), bytes(payload))).toEqual({ name, entity: `github:${subject}` });
  });

  it("reads the entity of each of GitHub's own examples", () => {
    for (const { name, examples } of githubExamples()) {
      for (const payload of examples) {
        expect(githubEvent(from(name), bytes(payload)).entity).not.toBe("github:unknown");
      }
    }
  });

  it("refuses what it cannot understand", () => {
    expect(() => githubEvent(from("issues"), new TextEncoder().encode("payload=%7B%7D"))).toThrow(EventError);
    expect(() => githubEvent(from("issues"), bytes([]))).toThrow(EventError);
    expect(() => githubEvent(from("issues"), bytes(null))).toThrow(EventError);
    for (const event of ["", "two words", "x".repeat(65)]) {
      expect(() => githubEvent(from(event), bytes({}))).toThrow(EventError);
    }
  });

  it("ignores values of unexpected types, and keeps names short enough for a key", () => {
    const odd = { action: { a: 1 }, repository: "octo/demo", sender: { login: ["x"] } };
    expect(githubEvent(from("star"), bytes(odd))).toEqual({ name: "star", entity: "github:unknown" });
    const long = { repository: { full_name: "x".repeat(5_000) }, ref: "y".repeat(5_000) };
    expect(githubEvent(from("push"), bytes(long)).entity.length).toBeLessThan(1_000);
  });
});

describe("names that UTF-8 cannot hold, or that are too long", () => {
  const entityOf = (id: string) => standardWebhooksEvent(bytes({ type: id, data: { id } }), "msg_1");
  const prefix = "standard-webhooks:";

  it.each([
    ["cut between two characters", `${"x".repeat(253)}🔒tail`, `${"x".repeat(253)}🔒`],
    ["cut before a character that does not fit", `${"x".repeat(254)}🔒tail`, "x".repeat(254)],
    ["a half that the payload escapes", "inv_\ud83d!", "inv_\ufffd!"],
    ["a half at the end", "inv_\ud83d", "inv_\ufffd"],
    ["the other half", "\udd12inv", "\ufffdinv"],
  ])("%s", (_, id, name) => {
    expect(entityOf(id)).toEqual({ name, entity: prefix + name });
  });

  it("are repaired in an id that is used as the entity, too", () => {
    expect(standardWebhooksEvent(bytes({}), "msg_\ud83d!").entity).toBe(`${prefix}msg_\ufffd!`);
    expect(stripeEvent(bytes({}), "evt_\ud83d!").entity).toBe("stripe:evt_\ufffd!");
  });
});

describe("standardWebhooksEvent", () => {
  it.each([
    [{ type: "invoice.paid", data: { id: "inv_42" } }, "invoice.paid", "inv_42"],
    [{ type: "invoice.paid", data: { id: 42 } }, "invoice.paid", "42"],
    [{ type: "ping", data: {} }, "ping", "msg_1"],
    [{ type: "ping" }, "ping", "msg_1"],
    [{ data: { id: null } }, "event", "msg_1"],
  ])("reads %j", (payload, name, subject) => {
    expect(standardWebhooksEvent(bytes(payload), "msg_1")).toEqual({
      name,
      entity: `standard-webhooks:${subject}`,
    });
  });

  it("refuses what is not a JSON object", () => {
    expect(() => standardWebhooksEvent(new TextEncoder().encode("{"), "msg_1")).toThrow(EventError);
    expect(() => standardWebhooksEvent(bytes("text"), "msg_1")).toThrow(EventError);
  });
});

describe("stripeEvent", () => {
  it.each([
    [{ type: "invoice.paid", data: { object: { id: "in_42" } } }, "invoice.paid", "in_42"],
    [{ type: "v1.billing.meter.error", related_object: { id: "mtr_1" } }, "v1.billing.meter.error", "mtr_1"],
    [{ type: "balance.available", data: { object: { object: "balance" } } }, "balance.available", "evt_1"],
    [{ data: "text" }, "event", "evt_1"],
  ])("reads %j", (payload, name, subject) => {
    expect(stripeEvent(bytes(payload), "evt_1")).toEqual({ name, entity: `stripe:${subject}` });
  });
});

describe("shopifyEvent", () => {
  it.each([
    ["orders/paid", { id: 820982911946154500 }, "orders/820982911946154500"],
    ["app/uninstalled", {}, "app/delivery-1"],
  ])("reads %s", (topic, payload, subject) => {
    const headers = { "x-shopify-topic": topic, "x-shopify-shop-domain": "a.myshopify.com" };
    const request = new Request("http://localhost/", { method: "POST", headers });
    expect(shopifyEvent(request, bytes(payload), "delivery-1")).toEqual({
      name: topic,
      entity: `shopify:a.myshopify.com/${subject}`,
    });
  });
});

describe("slackEvent", () => {
  it.each([
    [{ type: "message", channel: "C1", user: "U1" }, "message", "T1/C1"],
    [{ type: "channel_created", channel: { id: "C2" } }, "channel_created", "T1/C2"],
    [
      { type: "reaction_added", user: "U1", item: { type: "message", channel: "C3" } },
      "reaction_added",
      "T1/C3",
    ],
    [{ type: "user_change", user: { id: "U2" } }, "user_change", "T1/U2"],
    [{ type: "team_rename" }, "team_rename", "T1"],
    [undefined, "event_callback", "T1"],
  ])("reads %j", (event, name, subject) => {
    const payload = { type: "event_callback", team_id: "T1", event };
    expect(slackEvent(bytes(payload))).toEqual({ name, entity: `slack:${subject}` });
  });

  it("recognises a challenge, and refuses forms", () => {
    const challenge = { type: "url_verification", token: "t", challenge: "3eZbrw1a" };
    expect(slackEvent(bytes(challenge))).toMatchObject({ name: "url_verification", challenge: "3eZbrw1a" });
    expect(() => slackEvent(new TextEncoder().encode("command=%2Fx&trigger_id=1"))).toThrow(EventError);
  });
});

describe("linearEvent", () => {
  it.each([
    [{ type: "Issue", action: "update", data: { id: "i1" } }, "Issue.update", "i1"],
    [{ type: "Issue" }, "Issue", "d1"],
    [{}, "event", "d1"],
  ])("reads %j", (payload, name, subject) => {
    expect(linearEvent(bytes(payload), "d1")).toEqual({ name, entity: `linear:${subject}` });
  });
});
