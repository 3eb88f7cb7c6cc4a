import { createHmac } from "node:crypto";
import fc from "fast-check";
import Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stripe, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";

const secret = "whsec_test_secret";
const seconds = 1_763_714_567;
const at = seconds * 1_000;
const event = JSON.stringify({ id: "evt_1NG8Du2eZvKYlo2CUI79vXWy", object: "event", pending_webhooks: 2 });
const bytes = (text: string) => new TextEncoder().encode(text);
const { webhooks: vendor } = new Stripe("sk_test_unused");

/** The header as the vendor's package writes it. */
function header(payload = event, timestamp = seconds, key = secret, scheme = "v1"): string {
  return vendor.generateTestHeaderString({ payload, secret: key, timestamp, scheme });
}

const v1 = (key: string, content: string) => `v1=${createHmac("sha256", key).update(content).digest("hex")}`;

function verify(signature: string, payload = event, provider = stripe({ secret, now: () => at })) {
  const headers = { "Stripe-Signature": signature };
  return provider.verify(
    new Request("https://example.com/stripe", { method: "POST", headers }),
    bytes(payload),
  );
}

async function reason(signature: string, payload?: string, provider?: ReturnType<typeof stripe>) {
  return verify(signature, payload, provider).then(
    () => "accepted",
    (error: unknown) => {
      expect(error).toBeInstanceOf(WebhookVerificationError);
      return (error as WebhookVerificationError).reason;
    },
  );
}

describe("stripe", () => {
  it("accepts what the vendor's package signs, and keeps whsec_ in the secret", async () => {
    expect(await verify(header())).toMatchObject({
      id: "evt_1NG8Du2eZvKYlo2CUI79vXWy",
      timestamp: at,
      idSigned: true,
    });
    expect(await reason(header(event, seconds, "test_secret"))).toBe("bad-signature");
  });

  it("reads the id of a thin event as the vendor's package does", async () => {
    const thin = JSON.stringify({
      id: "evt_test_65R9Ijk8dKEYZcXeRWn",
      object: "v2.core.event",
      type: "v1.billing.x",
    });
    const client = new Stripe("sk_test_unused");
    const theirs = client.parseEventNotification(thin, header(thin), secret, undefined, undefined, at);
    expect((await verify(header(thin), thin)).id).toBe(theirs.id);
  });

  it("recognises an event when its counter has changed", async () => {
    const again = event.replace('"pending_webhooks":2', '"pending_webhooks":1');
    expect((await verify(header(again), again)).id).toBe((await verify(header())).id);
  });

  it("accepts one good signature among several, at any position and next to any others", async () => {
    const wrong = `v1=${"0".repeat(64)}`;
    const good = v1(secret, `${seconds}.${event}`);
    for (const entries of [
      [`t=${seconds}`, wrong, good],
      [`t=${seconds}`, good, wrong],
      [good, `t=${seconds}`],
      [`t=${seconds}`, "v0=00", good, "v1=short", "", "x", "v1", "v2=1"],
    ]) {
      expect(await reason(entries.join(",")), entries.join()).toBe("accepted");
    }
  });

  it("skips other schemes, which must not count as v1", async () => {
    expect(await reason(header(event, seconds, secret, "v0"))).toBe("malformed-header");
    const v0 = header(event, seconds, secret, "v0").split(",")[1];
    expect(await reason(`t=${seconds},v1=${"0".repeat(64)},${v0}`)).toBe("bad-signature");
    expect(await reason(`t=${seconds},v11=${v1(secret, `${seconds}.${event}`).slice(3)}`)).toBe(
      "malformed-header",
    );
  });

  it("refuses two times, no matter which one was signed", async () => {
    const good = v1(secret, `${seconds}.${event}`);
    expect(await reason(`t=${seconds},t=${seconds + 1},${good}`)).toBe("malformed-header");
    expect(await reason(`t=${seconds + 1},t=${seconds},${good}`)).toBe("malformed-header");
  });

  describe("compared with the vendor's package, with the same clock", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["Date"], now: at });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    const theirs = (signature: string, payload: string) => {
      try {
        return vendor.signature!.verifyHeader(payload, signature, secret, 300);
      } catch {
        return false;
      }
    };

    it("accepts and refuses the same, for changed bodies, times and signatures", async () => {
      const by = stripe({ secret });
      const seen = { accepted: 0, refused: 0, strict: 0 };
      const change = fc.record({
        part: fc.constantFrom("none", "body", "header"),
        from: fc.nat(100),
        remove: fc.nat(2),
        insert: fc.oneof(
          fc.string({ unit: "binary-ascii", maxLength: 2 }),
          fc.constantFrom(",", "=", "t=", "v1=", "v0=", "0", ",v1=00"),
        ),
      });
      const content = fc.string({ unit: "grapheme", minLength: 1 });
      const shift = fc.oneof(fc.constant(0), fc.integer({ min: -303, max: 303 }));
      await fc.assert(
        fc.asyncProperty(content, shift, change, async (text, offset, { part, from, remove, insert }) => {
          const altered = (value: string) => {
            const place = from % (value.length + 1);
            return value.slice(0, place) + insert + value.slice(place + remove);
          };
          const genuine = header(text, seconds + offset);
          const payload = part === "body" ? altered(text) : text;
          const changed = part === "header" ? altered(genuine) : genuine;
          // Without texts that HTTP cannot carry, or that their package treats as misuse.
          fc.pre(!/\p{Cs}/u.test(payload) && payload !== "" && !/[\0\r\n]/.test(changed));
          const carried = new Request("https://a", { headers: { "stripe-signature": changed } }).headers.get(
            "stripe-signature",
          );
          fc.pre(!!carried);
          const ours = (await reason(changed, payload, by)) === "accepted";
          seen[ours ? "accepted" : "refused"]++;
          // Ours may be stricter, but only in what is documented: times in the future, and headers that theirs reads
          // leniently (a time with something behind it, two times, a value with another "=").
          const strict =
            offset > 300 ||
            !/^(?:(?!t=)[^=]*(?:=[^=,]*)?,)*t=\d{10}(?:,(?!t=)[^=,]*(?:=[^=,]*)?)*$/.test(carried!);
          if (strict) seen.strict++;
          if (ours || !strict)
            expect(ours, JSON.stringify({ carried, payload })).toBe(theirs(carried!, payload));
        }),
        seeded(400),
      );
      expect(seen.accepted).toBeGreaterThan(30);
      expect(seen.refused).toBeGreaterThan(30);
      expect(seen.strict).toBeLessThan(seen.refused);
    });
  });
});
