import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { idempotent } from "../../src/hono/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { Redlock } from "../../src/index.ts";
import { github } from "../../src/webhooks/index.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { post } from "./stand.ts";

const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
const provider = github({ secret: "s" });

describe("wrong options are refused at set-up", () => {
  const cases: [what: string, options: object | null | undefined, type: new () => Error, message: RegExp][] =
    [
      ["none", undefined, TypeError, /options.*missing/],
      ["null", null, TypeError, /options.*null/],
      ["no client", {}, TypeError, /redlock/],
      ["a client that is none", { redlock: { acquire: 1 } }, TypeError, /redlock/],
      ["a provider that is none", { redlock, provider: {} }, TypeError, /provider/],
      ["no header's name", { redlock, header: "no name" }, TypeError, /header.*no name/],
      ["a header that is not a text", { redlock, header: 7 }, TypeError, /header.*number/],
      ["required", { redlock, required: "yes" }, TypeError, /required.*yes/],
      ["failOpen", { redlock, failOpen: 1 }, TypeError, /failOpen.*number/],
      ["fingerprint", { redlock, fingerprint: "body" }, TypeError, /fingerprint.*body/],
      ["store", { redlock, store: [200] }, TypeError, /store/],
      ["onEvent", { redlock, onEvent: "log" }, TypeError, /onEvent.*log/],
      ["maxResult", { redlock, maxResult: 10 }, RangeError, /maxResult.*10/],
      ["a misspelt option", { redlock, retension: 1 }, TypeError, /"retension"; did you mean retention\?/],
      [
        "a lock's option",
        { redlock, ttl: 1_000 },
        TypeError,
        /: (idempotent|withIdempotency) has no option "ttl"/,
      ],
      ["lease", { redlock, lease: 5 }, RangeError, /5/],
      [
        "wait without an end for webhooks",
        { redlock, provider, wait: Infinity },
        RangeError,
        /wait.*Infinity/,
      ],
      ["waitUntil", { redlock, waitUntil: {} }, TypeError, /waitUntil/],
      ["omitHeaders", { redlock, omitHeaders: [7] }, TypeError, /omitHeaders.*number/],
      ["omitHeaders that are none", { redlock, omitHeaders: ["no name"] }, TypeError, /omitHeaders.*no name/],
    ];

  test.each(cases)("%s", async (_what, options, type, message) => {
    const handler = () => expect.unreachable("nothing may run");
    for (const fails of [
      () => Promise.resolve().then(() => idempotent(options as never)),
      () => withIdempotency(post(), handler, options as never),
    ]) {
      const { error } = await outcomeOf<unknown>(fails());
      expect(error).toBeInstanceOf(type);
      expect(String(error)).toMatch(message);
    }
  });

  test("they are checked even where the client is made for each request", () => {
    expect(() => idempotent({ redlock: () => redlock, lease: 5 })).toThrow(RangeError);
  });

  test("withIdempotency checks them before it reads the body", async () => {
    const request = post();
    const wrong = withIdempotency(request, () => new Response(), { redlock, provider: {} as never });
    await expect(wrong).rejects.toThrow(/provider/);
    expect(request.bodyUsed).toBe(false);
  });

  test("withIdempotency needs a handler, and a scope of texts", async () => {
    await expect(withIdempotency(post(), undefined as never, { redlock })).rejects.toThrow(/handler/);
    const scope = ["tenant", undefined] as never;
    await expect(withIdempotency(post(), () => new Response(), { redlock, scope })).rejects.toThrow(/scope/);
    await expect(withIdempotency(post(), () => "text" as never, { redlock })).rejects.toThrow(
      /Response.*"text"/,
    );
  });

  test("undefined leaves defaults in place", async () => {
    const unset = { header: undefined, omitHeaders: undefined, wait: undefined, fingerprint: undefined };
    const app = new Hono().post("*", idempotent({ redlock, ...unset, store: undefined }), (c) => c.text("x"));
    expect((await app.fetch(post("k"))).status).toBe(200);
    expect((await app.fetch(post("k"))).headers.get("idempotent-replayed")).toBe("true");
    expect((await app.fetch(post("k", { body: "other" }))).status).toBe(422);
  });
});
