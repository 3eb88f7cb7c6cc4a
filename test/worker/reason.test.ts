import { expect, it } from "vitest";
import { StaleFenceError } from "../../src/inbox/index.ts";
import { EndpointError, QuorumError, type Vote } from "../../src/index.ts";
import { WebhookVerificationError } from "../../src/webhooks/index.ts";

// Imported by variables, so that the compiler does not follow: they need workerd's types, which conflict with Node's.
const [reasonFile, bindingsFile, eventFile] = [
  "../../worker/reason.ts",
  "../../worker/bindings.ts",
  "../../worker/event.ts",
];
const { reasonOf } = await import(reasonFile);
const { BindingError } = await import(bindingsFile);
const { EventError } = await import(eventFile);

const refused = (code: string, error?: unknown) => ({
  refusal: { type: "refused", status: 503, code, key: "k", error },
});
const votes = (...outcomes: Vote["outcome"][]) => outcomes.map((outcome) => ({ endpoint: "a", outcome }));

it.each<[string, object, string | undefined]>([
  ["an effect", {}, undefined],
  [
    "a forged delivery",
    refused("WEBHOOK_INVALID", new WebhookVerificationError("stripe", "bad-signature", "no v1 holds")),
    "The signature does not fit: someone else sent it, or it was changed on the way.",
  ],
  [
    "late answers",
    { error: new QuorumError("acquire", ["r"], votes("granted", "granted", "pending"), true) },
    "No quorum: the endpoints' answers came too late.",
  ],
  [
    "a newer holder",
    { error: new StaleFenceError("entity", 7n) },
    "Someone else took over while this was being handled.",
  ],
  ["a body that is no event", { error: new EventError("no JSON") }, "Not understood: no JSON."],
  [
    "a missing binding",
    { error: new BindingError("the binding DB is missing", "Bind it.") },
    "The Worker is not set up: the binding DB is missing.",
  ],
  [
    "any other error",
    { error: new Error("password of the database") },
    "The handler failed: the Worker's log has the cause.",
  ],
])("reasonOf gives the reason of %s", (_, ending, text) => {
  expect(reasonOf(ending)?.text).toBe(text);
});

it("reasonOf keeps the votes, without what endpoints wrote", () => {
  const cause = new EndpointError("b", "http", "HTTP 401: token abc123", { status: 401 });
  const error = new QuorumError(
    "acquire",
    ["r"],
    [...votes("granted"), { endpoint: "b", outcome: "error", cause }],
  );
  expect(reasonOf(refused("NO_QUORUM", error))).toEqual({
    text: "No quorum: 1 of 2 endpoints failed.",
    votes: [
      { endpoint: "a", outcome: "granted" },
      { endpoint: "b", outcome: "error", failure: { kind: "http", status: 401 } },
    ],
  });
});
