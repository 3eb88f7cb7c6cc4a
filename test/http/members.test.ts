import { once } from "node:events";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import process from "node:process";
import { text } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { idempotentExpress } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { type Client, clientOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { asText } from "./node-stand.ts";
import { opened, post } from "./stand.ts";

// What a response says of itself it says without the middleware, too, at each moment. The properties are those of the running
// Node's own classes, so that a later Node's are asked, too.

// biome-ignore lint/suspicious/noExplicitAny: members are asked by name
type Any = any;
type Res = ServerResponse & Record<string, Any>;
/** What properties have said, by their names. */
type Said = Readonly<Record<string, unknown>>;

const at = opened();
let client: Client;
beforeAll(() => {
  client = clientOf(at.store);
});

const fresh = new ServerResponse(new IncomingMessage(new Socket())) as Res;
const names = new Set<string>();
for (let from: object = fresh; from !== Object.prototype; from = Object.getPrototypeOf(from)) {
  for (const name of Object.getOwnPropertyNames(from)) {
    if (!/^(_|constructor$)/.test(name) && typeof fresh[name] !== "function") names.add(name);
  }
}

const moments = ["begun", "head", "written", "ended", "finish", "close"] as const;
type Moment = (typeof moments)[number];

/** The differences that there may be. */
const allowed: readonly [difference: RegExp, because: string][] = [
  [/^(socket|connection):/, "it stands for the connection, whose own methods would end it before the answer"],
  [
    /^(writableHighWaterMark|writableLength|writableCorked|chunkedEncoding):/,
    "a body is held without framing",
  ],
  [/^writableFinished: true, held false$/, "Node 20 and 22 say it as soon as the system has the bytes"],
];

function stateOf(res: Res): Said {
  const values = Array.from(names, (name) => [name, res[name]]);
  return Object.fromEntries(
    values.map(([name, value]) => [name, value === Object(value) ? value.constructor.name : value]),
  );
}

/** Serves one request, and looks at its response at each moment. `ended`: held, its record is being stored. */
async function respond(isHeld: boolean, isWhole: boolean, look: (res: Res, moment: Moment) => void) {
  const route = async (res: Res) => {
    res.on("error", () => undefined);
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
  return wire;
}

/** What differs between two that have said something. */
function differences(plain: Said, held: Said): string[] {
  const described = Array.from(names, (name) => {
    const [one, other] = [plain, held].map((said) => JSON.stringify(said[name]));
    return one === other ? "" : `${name}: ${one}, held ${other}`;
  });
  return described.filter((each) => each && !allowed.some(([difference]) => difference.test(each)));
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
      wire = await respond(true, true, late);
    });
    expect([uncaught, wire]).toEqual([[], await respond(false, true, () => undefined)]);
  },
);

test.each([
  ["whole", true, ["begun", "ended", "finish", "close"]],
  ["in pieces", false, moments],
] as const)("a response that is written %s says the same", async (_, isWhole, own) => {
  const [plain, held] = [new Map<Moment, Said>(), new Map<Moment, Said>()];
  const wire = await respond(false, isWhole, (res, moment) => plain.set(moment, stateOf(res)));
  expect(await respond(true, isWhole, (res, moment) => held.set(moment, stateOf(res)))).toBe(wire);
  expect([...held.keys()]).toEqual(own);
  for (const moment of own)
    expect.soft(differences(plain.get(moment)!, held.get(moment)!), moment).toEqual([]);
});
