import { EventEmitter, once } from "node:events";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import process from "node:process";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { idempotentExpress } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { type Client, clientOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { asText } from "./node-stand.ts";
import { opened, post } from "./stand.ts";

// Every public member of a response says and does what it says and does without the middleware, at each moment. The members
// are those of the running Node's own classes, so that a later Node's are asked, too.

// biome-ignore lint/suspicious/noExplicitAny: members are asked by name
type Any = any;
type Res = ServerResponse & Record<string, Any>;
/** What members have said, by their names, or by moment. */
type Said = Readonly<Record<string, unknown>>;

const at = opened();
let client: Client;
beforeAll(() => {
  client = clientOf(at.store);
});

const fresh = new ServerResponse(new IncomingMessage(new Socket())) as Res;
const names = new Set<string>();
for (let from: object = fresh; from !== Object.prototype; from = Object.getPrototypeOf(from)) {
  for (const name of Object.getOwnPropertyNames(from)) if (!/^(_|constructor$)/.test(name)) names.add(name);
}
const isMethod = (name: string) => typeof fresh[name] === "function";

const moments = ["begun", "head", "written", "ended", "finish", "close"] as const;
type Moment = (typeof moments)[number];

/** What methods are called with; others with nothing, and those of an emitter with a listener. */
const given: Readonly<Record<string, readonly unknown[]>> = {
  addTrailers: [{ "x-sum": "1" }],
  appendHeader: ["x-a", "2"],
  end: ["more"],
  getHeader: ["x-a"],
  hasHeader: ["x-a"],
  removeHeader: ["x-a"],
  setHeader: ["x-b", "1"],
  setHeaders: [new Map([["x-b", "1"]])],
  setMaxListeners: [20],
  setTimeout: [60_000],
  write: ["more"],
  writeEarlyHints: [{ link: "</a.css>; rel=preload" }],
  writeHead: [201, { "x-b": "1" }],
  writeHeader: [201, { "x-b": "1" }],
  writeInformation: [103],
};
/** The differences that there may be: of members, by what is asked and called; and of what arrives. */
const allowed: readonly [difference: RegExp, because: string][] = [
  [/^(socket|connection)$/, "it stands for the connection, whose own methods would end it before the answer"],
  [
    /^(writableHighWaterMark|writableLength|writableCorked|chunkedEncoding)$/,
    "a body is held without framing",
  ],
  [/^destroy (destroyed|errored|closed)$/, "the connection ends behind the answer that was given"],
  [/^writableFinished: true, held false$/, "Node 20 and 22 say it as soon as the system has the bytes"],
  [/^destroy headersSent$/, "nothing of it was sent"],
  [/^(un)?cork wire$/, "Node 22 sends corked bytes behind the end of the body"],
  [/^addTrailers wire$/, "they may be added until the answer is sent"],
  [
    /^write(Continue|Processing|EarlyHints|Information) wire$/,
    "they are sent at once: the answer comes behind",
  ],
  [/^(write|end) errors$/, "a held response takes longer to close, until when Node tells of late writes"],
];
const isAllowed = (difference: string) => allowed.some(([each]) => each.test(difference));

function stateOf(res: Res): Said {
  const values = [...names].filter((name) => !isMethod(name)).map((name) => [name, res[name]]);
  return Object.fromEntries(
    values.map(([name, value]) => [name, value === Object(value) ? value.constructor.name : value]),
  );
}

/** What a call returns or throws. */
function call(res: Res, name: string): unknown {
  const usual = name in EventEmitter.prototype ? ["x", () => undefined] : [];
  try {
    const result = res[name](...(given[name] ?? usual));
    return result === res ? "the response" : JSON.stringify(result);
  } catch (error) {
    return (error as Any).code;
  }
}

/** Serves one request, and looks at its response at each moment. `ended`: held, its record is being stored. */
async function respond(isHeld: boolean, isWhole: boolean, look: (res: Res, moment: Moment) => void) {
  const errors: unknown[] = [];
  const route = async (res: Res) => {
    res.on("error", (error: Any) => errors.push(error.code));
    res.once("finish", () => look(res, "finish"));
    res.once("close", () => look(res, "close"));
    res.setHeader("x-a", "1");
    look(res, "begun");
    if (!isWhole) {
      if (!res.headersSent) res.writeHead(202, "Fine");
      look(res, "head");
      res.write("a");
      look(res, "written");
    }
    const stored = gate();
    for (const link of client.links) link.fate = () => ({ before: () => stored.passed });
    res.end("b");
    const isStoring = () => client.links.every(({ pending }) => pending > 0) || res.destroyed;
    if (isHeld) await until(isStoring, "the answer to be stored");
    look(res, "ended");
    for (const link of client.links) link.fate = () => "delivered";
    stored.open();
  };
  const guard = idempotentExpress({ redlock: client.redlock });
  const server = createServer((req, res) => {
    const run = () => void route(res as Res);
    if (isHeld) guard(req, res, run);
    else req.resume().once("end", run);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(await asText(post(freshKey(), { headers: { connection: "close" } })));
  const wire = (await text(socket)).replace(/^Date: .*\r\n/gm, "");
  server.close();
  await once(server, "close");
  return { wire, errors };
}

/** What differs between two that have said something. */
function differences(plain: Said, held: Said, prefix = ""): string[] {
  const found: string[] = [];
  for (const key of new Set([...Object.keys(plain), ...Object.keys(held)])) {
    const [one, other] = [plain, held].map((said) => JSON.stringify(said[key]));
    const described = `${key}: ${one}, held ${other}`;
    if (one === other || [key, prefix + key, described].some(isAllowed)) continue;
    found.push(prefix + described);
  }
  return found;
}

/** Runs `work`, and returns the errors that would have ended the process. */
async function uncaughtIn(work: () => Promise<unknown>): Promise<unknown[]> {
  const others = process.rawListeners("uncaughtException") as NodeJS.UncaughtExceptionListener[];
  const uncaught: unknown[] = [];
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error: Any) => uncaught.push(error.code));
  try {
    await work();
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const each of others) process.on("uncaughtException", each);
  }
  return uncaught;
}

test.each(["ended", "finish", "close"] as const)(
  "a write behind the end ends no process: %s",
  async (moment) => {
    const late = (res: Res, now: Moment) => {
      if (now !== moment) return;
      res.removeAllListeners("error");
      if (!res.finished) res.write("heartbeat");
      res.write("more");
    };
    let wire = "";
    const uncaught = await uncaughtIn(async () => {
      wire = (await respond(true, true, late)).wire;
    });
    expect([uncaught, wire]).toEqual([[], (await respond(false, true, () => undefined)).wire]);
  },
);

describe.each([
  ["whole", true],
  ["in pieces", false],
])("a response that is written %s", (_, isWhole) => {
  const own = isWhole ? (["begun", "ended", "finish", "close"] as const) : moments;

  test("says the same", async () => {
    const [plain, held] = [new Map<Moment, Said>(), new Map<Moment, Said>()];
    const { wire } = await respond(false, isWhole, (res, moment) => plain.set(moment, stateOf(res)));
    expect((await respond(true, isWhole, (res, moment) => held.set(moment, stateOf(res)))).wire).toBe(wire);
    expect([...held.keys()]).toEqual(own);
    for (const moment of own)
      expect.soft(differences(plain.get(moment)!, held.get(moment)!), moment).toEqual([]);
  });

  test.each([...names].filter(isMethod))("%s does the same", async (name) => {
    for (const moment of own) {
      const observe = async (isHeld: boolean) => {
        let said: Said = {};
        const arrived = await respond(isHeld, isWhole, (res, now) => {
          if (now === moment) said = { result: call(res, name), ...stateOf(res) };
        });
        return { ...said, ...arrived };
      };
      expect.soft(differences(await observe(false), await observe(true), `${name} `), moment).toEqual([]);
    }
  });
});
