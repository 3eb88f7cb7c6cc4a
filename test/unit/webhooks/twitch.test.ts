import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { twitch } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";

// Signed as _verifyData of @twurple/eventsub-http 8.1.4 does it: the hex HMAC-SHA256 of id, time and body.
const secret = "s3cRe7s3cRe7";
const id = "e76c6bd4-55c9-4987-8304-da1588d8988b";
const time = "2023-07-19T14:56:51.634234626Z";
const at = Date.parse("2023-07-19T14:56:51.634Z");
const body = '{"subscription":{"id":"f1c2a387"},"event":{"user_id":"1337"}}';

function verify(given: { id?: string; time?: string; body?: string }, signed = id + time + body) {
  const headers = {
    "Twitch-Eventsub-Message-Id": given.id ?? id,
    "Twitch-Eventsub-Message-Timestamp": given.time ?? time,
    "Twitch-Eventsub-Message-Signature": `sha256=${createHmac("sha256", secret).update(signed).digest("hex")}`,
  };
  return outcome(twitch({ secret, name: "twitch", now: () => at }), { headers, body: given.body ?? body });
}

describe("twitch", () => {
  it("has the message's id, which is signed, and its time", async () => {
    expect(await verify({})).toEqual({ id, timestamp: at, idSigned: true });
    expect(await verify({ id: `${id}0` })).toBe("bad-signature");
  });

  it.each([
    ["2023-07-19T14:56:51Z", 51_000],
    ["2023-07-19T14:56:51.6Z", 51_600],
    ["2023-07-19T14:56:51.12Z", 51_120],
    ["2023-07-19T14:56:51.999999999Z", 51_999],
  ])("reads the time %s", async (text, ms) => {
    expect(await verify({ time: text }, id + text + body)).toMatchObject({ timestamp: at - 51_634 + ms });
  });

  it("refuses a genuine delivery that is split at other places", async () => {
    const whole = id + time + body;
    for (let from = id.length - 6; from < id.length + 8; from += 1) {
      for (let to = from + 18; to < whole.length; to += 1) {
        const split = { id: whole.slice(0, from), time: whole.slice(from, to), body: whole.slice(to) };
        if (split.id === id && split.time === time) continue;
        expect(typeof (await verify(split)), JSON.stringify(split)).toBe("string");
      }
    }
  });

  it.each([
    "2023-07-19T14:56:51+00:00",
    "2023-07-19 14:56:51Z",
    "2023-07-19T14:56:51.1234567890Z",
    "2023-07-19T14:56:51.Z",
    "1689778611",
    `x${time}`,
    `${time}x`,
  ])("refuses the time %s, although it was signed", async (text) => {
    expect(await verify({ time: text }, id + text + body)).toBe("malformed-header");
  });

  it("refuses a time that does not exist", async () => {
    const text = "2023-13-19T14:56:51Z";
    expect(await verify({ time: text }, id + text + body)).toBe("outside-tolerance");
  });
});
