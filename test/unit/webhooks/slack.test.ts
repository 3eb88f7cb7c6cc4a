import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { slack } from "../../../src/webhooks/index.ts";

// Slack's own example: https://docs.slack.dev/authentication/verifying-requests-from-slack
const secret = "8f742231b10e8888abcd99yyyzzz85a5";
const seconds = 1_531_420_618;
const command =
  "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
  "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
  "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
  "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

const bytes = (text: string) => new TextEncoder().encode(text);

function request(signed: string, time: string | number = seconds): Request {
  const headers = { "X-Slack-Signature": signed, "X-Slack-Request-Timestamp": String(time) };
  return new Request("https://example.com/slack", { method: "POST", headers });
}

const provider = slack({ secret, now: () => seconds * 1_000 });

function verify(text: string) {
  const digest = createHmac("sha256", secret).update(`v0:${seconds}:${text}`).digest("hex");
  return provider.verify(request(`v0=${digest}`), bytes(text));
}

describe("slack", () => {
  it("accepts the slash command from Slack's documentation, with its body's hash as id", async () => {
    expect(await provider.verify(request(signature), bytes(command))).toMatchObject({
      id: createHash("sha256").update(command).digest("hex"),
      timestamp: seconds * 1_000,
      idSigned: true,
    });
  });

  it("distinguishes events by event_id, even if the rest is equal", async () => {
    const event = (id: string) =>
      JSON.stringify({ type: "event_callback", event_id: id, event: { type: "message" } });
    expect((await verify(event("Ev0PV52K25"))).id).toBe("Ev0PV52K25");
    expect((await verify(event("Ev0PV52K26"))).id).toBe("Ev0PV52K26");
  });

  it("accepts url_verification, which has no id of its own", async () => {
    const challenge = JSON.stringify({
      token: "Jhj5dZrVaK7Z",
      challenge: "3eZbrw1aBm2r",
      type: "url_verification",
    });
    expect((await verify(challenge)).id).toBe(createHash("sha256").update(challenge).digest("hex"));
  });

  it.each(["153142061", "01531420618", "1531420618.0", "1531420618 ", "-531420618", "1e9", "x"])(
    "refuses the time %o",
    async (time) => {
      // HTTP removes the space around a header's value.
      const refused = time.trim() === String(seconds) ? undefined : "malformed-header";
      const outcome = provider.verify(request(signature, time), bytes(command)).then(
        () => undefined,
        (error) => error.reason,
      );
      expect(await outcome).toBe(refused);
    },
  );

  it("refuses another time than the signed one", async () => {
    const later = provider.verify(request(signature, seconds + 1), bytes(command));
    await expect(later).rejects.toMatchObject({ reason: "bad-signature" });
  });
});
