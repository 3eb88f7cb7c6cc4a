import { sign } from "@octokit/webhooks-methods";
import { expect, test } from "vitest";
import {
  github,
  meta,
  paddle,
  slack,
  square,
  type WebhookProvider,
  zoom,
} from "../../../src/webhooks/index.ts";
import { type Arrival, outcome } from "./outcome.ts";
import { at, bytes, hash, hmac, leastOptions, makerOf, secondsOf, url, whole } from "./sender.ts";
import { senders } from "./senders.ts";

// Deliveries as the senders' documentation and packages sign them, and what is special of one sender. Those with tests of
// their own: GitHub, HubSpot, QStash, SendGrid, Shopify, Standard Webhooks, Stripe and Twilio.

const command =
  "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
  "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
  "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
  "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const transaction =
  '{"event_id":"evt_01hv8x29kz0t586xy6zn1a62ny","event_type":"transaction.paid","occurred_at":"2024-04-12T10:18:49.621022Z",' +
  '"notification_id":"ntf_01hv8x2az1t5xqh0pzw7n8b4m2","data":{"id":"txn_1"}}';
const meeting =
  '{"event":"meeting.started","event_ts":1658940994914,"payload":{"account_id":"AAAAAABBBB","object":{"id":"1234567890"}}}';
// Meta escapes what is not ASCII, and signs what it sends.
const message =
  '{"object":"whatsapp_business_account","entry":[{"changes":[{"value":{"text":"\\u00e4\\/\\ud83d\\udd12"}}]}]}';

const vectors: [what: string, WebhookProvider, Arrival & { body: string }, id: string, timestamp?: number][] =
  [
    [
      "GitHub's documentation",
      github({ secret: "It's a Secret to Everybody" }),
      {
        headers: {
          "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        },
        body: "Hello, World!",
      },
      hash("Hello, World!"),
    ],
    [
      "Slack's documentation",
      slack({ secret: "8f742231b10e8888abcd99yyyzzz85a5", now: () => 1_531_420_618_000 }),
      {
        headers: {
          "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
          "X-Slack-Request-Timestamp": "1531420618",
        },
        body: command,
      },
      hash(command),
      1_531_420_618_000,
    ],
    [
      "@paddle/paddle-node-sdk 3.10.0, by one of two signatures, as while Paddle rotates the key",
      paddle({ secret: "pdl_ntfset_01hz_abcdefghijklmnop", now: () => 1_763_714_567_000 }),
      {
        headers: {
          "Paddle-Signature": `ts=1763714567;h1=${"0".repeat(64)};h1=06ddde73f10a7b0698a918f156c441294ac387787638287a1f7e146fd6c0f464`,
        },
        body: transaction,
      },
      "evt_01hv8x29kz0t586xy6zn1a62ny",
      1_763_714_567_000,
    ],
    [
      "square 46.0.0",
      square({ secret: "asdf1234", url: "https://example.com/webhook" }),
      {
        headers: { "x-square-hmacsha256-signature": "2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og=" },
        body: '{"hello":"world"}',
        url: "http://10.0.0.1/",
      },
      hash('{"hello":"world"}'),
    ],
    [
      "@zoom/rivet 0.4.0",
      zoom({ secret: "qlb5CvrHSAm9zI7EX2U6tA", now: () => 1_658_940_994_000 }),
      {
        headers: {
          "x-zm-signature": "v0=eca0b4ff4534d01d630c4d0bbba8f9ea1e5309a85e62db34e796caea539ee1d1",
          "x-zm-request-timestamp": "1658940994",
        },
        body: meeting,
      },
      hash(meeting),
      1_658_940_994_000,
    ],
    [
      "GitHub's package, by the scheme that it took over from Meta",
      meta({ secret: "app-secret-of-Meta" }),
      { headers: { "X-Hub-Signature-256": await sign("app-secret-of-Meta", message) }, body: message },
      hash(message),
    ],
  ];

test.each(vectors)("the delivery of %s is accepted, and no other body", async (_, by, arrival, id, time) => {
  const expected = { id, idSigned: true, ...(time !== undefined && { timestamp: time }) };
  expect(await outcome(by, arrival)).toMatchObject(expected);
  const other = { ...arrival, body: `${arrival.body} ` };
  expect(await outcome(by, other)).toBe("bad-signature");
});

/** Signs a text as a sender does, changes headers or body on the way, and returns what its provider makes of it. */
function send(title: string, text: string, changed: Partial<Arrival> & { at?: number } = {}, options = {}) {
  const sender = senders[title]!;
  const { headers, body } = sender.sign(sender.secrets[0], changed.at ?? at, text);
  const clock = sender.takesTolerance ? { now: () => at } : {};
  const provider = makerOf(title)({ ...leastOptions(title, sender), ...clock, name: "n", ...options });
  return outcome(provider, { body, url, ...changed, headers: { ...headers, ...changed.headers } });
}

const seconds = secondsOf(at);

test.each<[title: string, text: string, Arrival]>([
  ["discord", '0{"id":"1"}', { headers: { "x-signature-timestamp": `${seconds}0` }, body: '{"id":"1"}' }],
  [
    "discord",
    '0{"id":"1"}',
    {
      headers: { "x-signature-timestamp": seconds.slice(0, -1) },
      body: `${seconds.at(-1)}0{"id":"1"}`,
    },
  ],
  ["discord", "", { headers: { "x-signature-timestamp": "1e9" } }],
  ["zoom", "{}", { headers: { "x-zm-request-timestamp": `${seconds}000` } }],
  ["paddle", "{}", { headers: { "paddle-signature": `ts=${seconds};ts=1;h1=${"0".repeat(64)}` } }],
  ["paddle", "{}", { headers: { "paddle-signature": `ts=${seconds};h2=${"0".repeat(64)}` } }],
])(
  "%s's genuine delivery of %j is malformed where its parts are divided otherwise: %j",
  async (title, text, changed) => {
    expect(await send(title, text, changed)).toBe("malformed-header");
  },
);

test("Discord's public key may be in upper case", async () => {
  const publicKey = senders.discord!.secrets[0].toUpperCase();
  expect(await send("discord", "{}", {}, { publicKey })).toMatchObject({ id: hash("{}") });
});

test("a replay of Paddle's has the event's id, not the notification's", async () => {
  for (const notification of [1, 2]) {
    const text = JSON.stringify({ event_id: "evt_1", notification_id: `ntf_${notification}` });
    expect(await send("paddle", text)).toMatchObject({ id: "evt_1", timestamp: whole });
  }
});

test("Meta and Square have older signatures, which count for nothing", async () => {
  const headers = { "x-hub-signature": `sha1=${"0".repeat(40)}`, "x-square-signature": "AAAA" };
  for (const title of ["meta", "square"]) {
    const provider = senders[title]!.make(senders[title]!.secrets[0]);
    expect(await outcome(provider, { headers, body: "{}" })).toBe("missing-header");
  }
});

test("Lemon Squeezy takes neither event nor id from a header", async () => {
  const headers = { "X-Event-Name": "order_refunded", "X-Request-Id": "7" };
  expect(await send("lemon squeezy", "{}", { headers })).toEqual({ id: hash("{}"), idSigned: true });
});

test("Square's request does not decide where the body begins", async () => {
  const text = '{"a":{"event_id":"1"}}';
  const moved = { headers: {}, body: text.slice(1), url: `${url}{` };
  expect(await send("square", text, moved)).toBe("bad-signature");
  const atProxy = { headers: {}, url: url.replace("https:", "http:") };
  const own = ({ url: given }: Request) => given.replace("http:", "https:");
  expect(await send("square", text, atProxy, { url: own })).toMatchObject({ idSigned: true });
  for (const given of [
    undefined,
    "",
    "example.com",
    "ftp://a.example",
    "https://a.example/ x",
    5,
    new URL(url),
  ]) {
    expect(() => square({ secret: "s3cret", url: given as string })).toThrow(/^url must be the URL/);
  }
  await expect(send("square", text, {}, { url: () => undefined })).rejects.toThrow(TypeError);
});

test.each([undefined, String(at), null, Math.floor(at / 1_000)])(
  "Linear's time is ms in the body, and not %j",
  async (webhookTimestamp) => {
    const text = JSON.stringify({ action: "update", webhookTimestamp });
    expect(await send("linear", text)).toBe("outside-tolerance");
  },
);

test("Linear's event is recognised by its body when it is sent at another time", async () => {
  const sent = (time: number, action = "update") =>
    send("linear", JSON.stringify({ action, webhookTimestamp: time }), { at: time });
  const first = (await sent(at)) as { id: string };
  expect(await sent(at + 30_000)).toEqual({ ...first, timestamp: at + 30_000 });
  expect(await sent(at, "remove")).not.toMatchObject({ id: first.id });
});

test("Twitch's id is signed, and no genuine delivery can be split at other places", async () => {
  const { headers } = senders.twitch!.sign(senders.twitch!.secrets[0]);
  const text = '{"event":{}}';
  const [id, time] = [headers["twitch-eventsub-message-id"]!, headers["twitch-eventsub-message-timestamp"]!];
  const signed = id + time + text;
  let refused = 0;
  for (let from = 0; from < id.length + 8; from += 1) {
    for (let to = from; to < signed.length; to += 1) {
      if (from === id.length && to === from + time.length) continue;
      const parts = {
        "twitch-eventsub-message-id": signed.slice(0, from),
        "twitch-eventsub-message-timestamp": signed.slice(from, to),
      };
      expect(await send("twitch", text, { headers: parts, body: bytes(signed.slice(to)) })).toBeTypeOf(
        "string",
      );
      refused += 1;
    }
  }
  expect(refused).toBeGreaterThan(100);
});

test.each<[time: string, expected: number | string]>([
  ["2023-07-19T14:56:51Z", 51_000],
  ["2023-07-19T14:56:51.6Z", 51_600],
  ["2023-07-19T14:56:51.12Z", 51_120],
  ["2023-07-19T14:56:51.999999999Z", 51_999],
  ["2023-07-19T14:56:51+00:00", "malformed-header"],
  ["2023-07-19 14:56:51Z", "malformed-header"],
  ["2023-07-19T14:56:51.1234567890Z", "malformed-header"],
  ["2023-07-19T14:56:51.Z", "malformed-header"],
  ["1689778611", "malformed-header"],
  ["x2023-07-19T14:56:51Z", "malformed-header"],
  ["2023-07-19T14:56:51Zx", "malformed-header"],
  ["2023-13-19T14:56:51Z", "outside-tolerance"],
])("Twitch's time %s, which was signed, is %s", async (time, expected) => {
  const minute = Date.parse("2023-07-19T14:56Z");
  const headers = {
    "twitch-eventsub-message-timestamp": time,
    "twitch-eventsub-message-signature": `sha256=${hmac(senders.twitch!.secrets[0], `tw-1${time}{}`).digest("hex")}`,
  };
  const found = await send("twitch", "{}", { headers }, { now: () => minute + 52_000 });
  if (typeof expected === "string") expect(found).toBe(expected);
  else expect(found).toMatchObject({ id: "tw-1", timestamp: minute + expected });
});
