import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Engine } from "../../local/src/engine/engine.ts";
import { Redlock } from "../../src/index.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { claimOf, parseCommand } from "./claims.ts";
import { type Distortion, distortion, filled } from "./garbage.ts";
import { everythingOf, expectNoSecret, expectTyped } from "./messages.ts";
import { execute } from "./network.ts";
import { startOddServer } from "./odd-server.ts";

const token = "rest-token-5ecret5ecret5ecret";

/** Everything that a stub can answer, and what only a real connection can. */
const odd = fc.oneof(
  { weight: 6, arbitrary: distortion },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Distortion>(
      { execute: true, kind: "truth", headers: { "content-length": "4" } },
      { execute: true, kind: "truth", headers: { "content-length": "4000" } },
      { execute: true, kind: "truth", headers: { "content-length": "-1" } },
      { execute: true, kind: "truth", headers: { "content-encoding": "gzip" } },
      { execute: true, kind: "truth", headers: { "content-encoding": "br" } },
      { execute: true, kind: "truth", headers: { "transfer-encoding": "chunked" } },
      { execute: true, kind: "truth", headers: { "content-type": "\u00ff" } },
      { execute: true, kind: "endless" },
    ),
  },
);

describe.each(["redis", "upstash"] as const)("over real HTTP, in the %s dialect", (dialect) => {
  forbidUnhandledRejections();
  const engine = new Engine({ dialect });
  let reply: readonly Distortion[] = [];
  /** How often this run's requests were granted, by the bodies that were sent. */
  let granted = 0;
  const secrets = new Set([token]);
  let server: Awaited<ReturnType<typeof startOddServer>>;

  beforeAll(async () => {
    let asked = 0;
    server = await startOddServer((command) => {
      const odd = reply[asked++ % reply.length]!;
      for (const nonce of command.join(" ").match(/t[0-9a-f]{32}/g) ?? []) secrets.add(nonce);
      const truth = odd.execute ? execute(engine, command) : { status: 200, body: "" };
      const body = odd.kind === "body" ? filled(odd.body ?? "", command, token) : truth.body;
      const parsed = parseCommand(command);
      if (["acquire", "extend", "release"].includes(parsed.op) && says(body, parsed)) granted += 1;
      return { ...odd, status: odd.status ?? truth.status, body };
    });
  });
  afterAll(() => server.close());

  function says(body: string, parsed: ReturnType<typeof parseCommand>): boolean {
    try {
      return claimOf(parsed, JSON.parse(body).result).said === "yes";
    } catch {
      return false;
    }
  }

  test("grants nothing that no endpoint granted, and never hangs", { timeout: 60_000 }, async () => {
    const endpoints = [{ url: server.url, token, dialect, name: "odd" }];
    await fc.assert(
      fc.asyncProperty(
        fc.array(odd, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (answers, fencing) => {
          engine.flush();
          reply = answers;
          granted = 0;
          const emitted: unknown[] = [];
          const redlock = new Redlock({
            endpoints,
            fencing,
            // For endpoints that never answer. On a busy machine a true answer may come too late as well.
            timeout: 60,
            wait: 0,
            onEvent: (event) => emitted.push(event),
          });
          const lock = await redlock.tryAcquire("a").catch((error: unknown) => {
            expectTyped(error, "NO_QUORUM");
            emitted.push(error);
            return null;
          });
          if (lock) expect(granted, "granted, and nobody said so").toBeGreaterThan(0);
          for (const step of lock ? (["extend", "release"] as const) : []) {
            const before = granted;
            const done = await lock![step]().catch((error: unknown) => {
              expectTyped(error, "NO_QUORUM", "LOCK_LOST");
              emitted.push(error);
              return false;
            });
            if (done) expect(granted, `${step}: ${everythingOf(done)}`).toBeGreaterThan(before);
          }
          expectNoSecret(emitted, secrets);
        },
      ),
      seeded<[Distortion[], boolean]>(25, [
        // Node's HTTP parser quotes unreadable bytes in its error.
        [
          [
            {
              execute: true,
              kind: "body",
              status: 200,
              body: '{"result":["<value>","<secret>"]}',
              headers: { "content-length": "1e9" },
            },
          ],
          false,
        ],
      ]),
    );
  });
});
