import { sign, verify } from "@octokit/webhooks-methods";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { github, standardWebhooks, stripe, type WebhookProvider } from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";
import { outcome } from "./outcome.ts";

// The senders' own packages, with the same clock, accept and refuse the same deliveries: genuine ones, and such with a
// part that was changed. Ours may be stricter, but only where its documentation says so.

const seconds = 1_763_714_567;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: seconds * 1_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

type Parts = Readonly<Record<string, string>>;

interface Comparison {
  readonly provider: WebhookProvider;
  /** The parts of a genuine delivery, as the package signs it: headers, and `body`. */
  readonly genuine: (body: string, seconds: number) => Parts | Promise<Parts>;
  readonly theirs: (body: string, headers: Parts) => unknown;
  /** Whether ours may refuse what theirs accepts. */
  readonly isStricter?: (headers: Parts, offset: number) => boolean;
}

const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const standard = new Webhook(standardSecret);
const stripeSecret = "whsec_test_secret";
const { webhooks } = new Stripe("sk_test_unused");

/** Ids with a numeric part or beyond visible ASCII, times with something around the digits, a second comma. */
function isStricterStandard(headers: Parts): boolean {
  return (
    /\.\d+(\.|$)|[^!-~]/.test(headers["webhook-id"] ?? "") ||
    !/^[1-9]\d*$/.test(headers["webhook-timestamp"] ?? "") ||
    /,.*,/.test(headers["webhook-signature"] ?? "")
  );
}

/** Times in the future, and headers that theirs reads leniently: two times, or a value with another "=". */
function isStricterStripe(headers: Parts, offset: number): boolean {
  const form = /^(?:(?!t=)[^=]*(?:=[^=,]*)?,)*t=\d{10}(?:,(?!t=)[^=,]*(?:=[^=,]*)?)*$/;
  return offset > 300 || !form.test(headers["stripe-signature"] ?? "");
}

/** Ours also accepts a signature in upper-case hex. */
function withLowerHex(header: string): string {
  return header.replace(/=[0-9a-f]+/gi, (hex) => hex.toLowerCase());
}

const comparisons: Readonly<Record<string, Comparison>> = {
  "@octokit/webhooks-methods": {
    provider: github({ secret: "hush" }),
    genuine: async (body) => ({ "x-hub-signature-256": await sign("hush", body), body }),
    theirs: (body, headers) => verify("hush", body, withLowerHex(headers["x-hub-signature-256"]!)),
  },
  standardwebhooks: {
    provider: standardWebhooks({ secret: standardSecret }),
    genuine: (body, time) => ({
      "webhook-id": "msg_a.b-9",
      "webhook-timestamp": String(time),
      "webhook-signature": standard.sign("msg_a.b-9", new Date(time * 1_000), body),
      body,
    }),
    theirs: (body, headers) => standard.verify(body, headers, { jsonParse: false }),
    isStricter: isStricterStandard,
  },
  stripe: {
    provider: stripe({ secret: stripeSecret }),
    genuine: (payload, timestamp) => ({
      "stripe-signature": webhooks.generateTestHeaderString({ payload, secret: stripeSecret, timestamp }),
      body: payload,
    }),
    theirs: (body, headers) =>
      webhooks.signature!.verifyHeader(body, withLowerHex(headers["stripe-signature"]!), stripeSecret, 300),
    isStricter: isStricterStripe,
  },
};

const changes = fc.record({
  part: fc.nat(),
  place: fc.nat(300),
  remove: fc.nat(2),
  insert: fc.oneof(
    fc.string({ unit: "binary-ascii", maxLength: 2 }),
    fc.constantFrom(" ", ",", "=", ".", "0", "9", "t=", "v1=", "v0=", ",v1=00"),
  ),
});
// A few minutes in both directions, which includes the edge of the tolerance.
const offsets = fc.oneof(fc.constant(0), fc.integer({ min: -303, max: 303 }));
const bodies = fc.string({ unit: "grapheme", minLength: 1 });

/** The packages throw, or return false. */
async function accepts(verifies: () => unknown): Promise<boolean> {
  try {
    return (await verifies()) !== false;
  } catch {
    return false;
  }
}

test.each(Object.entries(comparisons))("%s", async (_, { provider, genuine, theirs, isStricter }) => {
  const seen = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(bodies, offsets, changes, async (text, offset, { part, place, remove, insert }) => {
      const parts: Record<string, string> = { ...(await genuine(text, seconds + offset)) };
      const names = Object.keys(parts);
      // Of some deliveries, nothing is changed.
      const name = names[part % (names.length + 1)];
      if (name !== undefined) {
        const from = place % (parts[name]!.length + 1);
        parts[name] = parts[name]!.slice(0, from) + insert + parts[name]!.slice(from + remove);
      }
      const { body = "", ...changed } = parts;
      // Without what HTTP cannot carry, or the packages treat as misuse.
      fc.pre(!/\p{Cs}/u.test(body) && body !== "" && !/[\0\r\n]/.test(Object.values(changed).join("")));
      const headers = Object.fromEntries(new Request("https://a", { headers: changed }).headers);
      fc.pre(Object.values(headers).every(Boolean));

      const ours = typeof (await outcome(provider, { headers, body })) !== "string";
      seen[ours ? "accepted" : "refused"] += 1;
      if (ours || !isStricter?.(headers, offset)) {
        expect(ours, JSON.stringify(parts)).toBe(await accepts(() => theirs(body, headers)));
      }
    }),
    seeded(400),
  );
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(30);
});
