import { createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { parseEnv } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorker } from "../../tools/local-worker.mjs";
import { type LocalStand, openStand } from "./local-stand.ts";

// Who may see what was delivered.

let stand: LocalStand;
/** What nobody may learn who is not signed in: about two deliveries, and which endpoints there are. */
let secrets: string[];

beforeAll(async () => {
  stand = await openStand();
  const delivered = [stand.standard("inv_private"), await stand.github("issues")];
  for (const delivery of delivered) {
    expect((await stand.send(delivery)).status).toBe(200);
    await stand.journal(delivery, 1);
  }
  const rows = await stand.query("SELECT delivery, event, entity, fence FROM deliveries");
  const hosts = stand.endpoints.map(({ url }) => new URL(url).host);
  secrets = [...rows.flatMap((row) => Object.values(row).map(String)), ...hosts];
  expect(secrets).toHaveLength(2 * 4 + 3);
});
afterAll(() => stand?.close());

const leaks = (text: string) => secrets.filter((secret) => text.includes(secret));

async function textOf(response: Response): Promise<string> {
  return JSON.stringify([...response.headers]) + (await response.text());
}

/** What the Worker itself says it answers. */
async function routesOf(entry: string): Promise<readonly { method: string; path: string }[]> {
  const loader = { ".css": "text", ".client.js": "text" } as const;
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    loader,
  });
  const code = Buffer.from(outputFiles[0]!.contents).toString("base64");
  const { default: app } = await import(`data:text/javascript;base64,${code}`);
  return app.routes;
}

/** A cookie as the Worker signs it. */
function cookie(until: number | string, secret = stand.secret): string {
  const signature = createHmac("sha256", secret).update(String(until)).digest("base64");
  return `__Host-journal=${encodeURIComponent(`${until}.${signature}`)}`;
}

function post(path: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  return fetch(stand.url + path, {
    method: "POST",
    body: new URLSearchParams(form),
    headers: { "sec-fetch-site": "same-origin", connection: "close", ...headers },
    redirect: "manual",
  });
}

describe("a stranger", () => {
  it("learns nothing of deliveries and endpoints from any route", async () => {
    const open = [];
    for (const { method, path } of await routesOf("worker/index.ts")) {
      const [verb, target] = [method === "ALL" ? "GET" : method, path.replaceAll("*", "anything")];
      const response = verb === "POST" ? await post(target, {}) : await fetch(stand.url + target);
      const { status } = response;
      if (status < 400) open.push(`${verb} ${target}`);
      expect(leaks(await textOf(response)), `${verb} ${target}`).toEqual([]);
    }
    expect(open).toEqual(["GET /page.css", "GET /live.js", "GET /healthz"]);
    const told = await Promise.all(
      ["/", "/deliveries", "/healthz"].map((path) => stand.get(path).then(textOf)),
    );
    expect(leaks(told.join())).toEqual(secrets);
    const valid = await fetch(stand.url, { headers: { cookie: cookie(Date.now() + 60_000) } });
    expect(valid.status).toBe(200);
  });

  it("is asked for the secret by the page and by the journal, and told only whether the Worker is healthy", async () => {
    for (const [path, type] of [
      ["/", "text/html"],
      ["/deliveries", "application/problem+json"],
    ] as const) {
      const { status, headers } = await fetch(stand.url + path);
      expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      expect(headers.get("content-type")).toContain(type);
    }
    const health = await fetch(`${stand.url}/healthz`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    // The version says how many deliveries there were.
    const { headers } = await stand.get("/");
    const version = headers.get("etag") ?? "";
    expect((await fetch(stand.url, { headers: { "if-none-match": version } })).status).toBe(401);
  });

  it.each<[string, () => Record<string, string>]>([
    ["another secret", () => ({ authorization: `Bearer ${randomBytes(32).toString("base64")}` })],
    ["the beginning of the secret", () => ({ authorization: `Bearer ${stand.secret.slice(0, -1)}` })],
    ["a cookie that has ended", () => ({ cookie: cookie(Date.now() - 1) })],
    ["a cookie signed with another secret", () => ({ cookie: cookie(Date.now() + 60_000, "x".repeat(32)) })],
    ["a cookie signed with nothing", () => ({ cookie: `__Host-journal=${Date.now() + 60_000}` })],
    [
      "a cookie whose time was changed",
      () => ({ cookie: cookie("1").replace("=1.", `=${Date.now() + 60_000}.`) }),
    ],
    ["the secret as a cookie", () => ({ cookie: `__Host-journal=${encodeURIComponent(stand.secret)}` })],
  ])("stays one with %s", async (_, headers) => {
    const answers = [
      await fetch(stand.url, { headers: headers() }),
      await fetch(`${stand.url}/deliveries`, { headers: headers() }),
      await post("/sign-out", {}, headers()),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401]);
  });
});

describe("who signs in", () => {
  it("gets a cookie that scripts cannot read, that ends, and that does not contain the secret; and signs out", async () => {
    const signedIn = await post("/sign-in", { secret: stand.secret });
    expect([signedIn.status, signedIn.headers.get("location")]).toEqual([303, "/"]);
    const [pair, ...attributes] = (signedIn.headers.get("set-cookie") ?? "").split("; ");
    expect(attributes.sort()).toEqual(["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure"]);
    expect(decodeURIComponent(pair!)).not.toContain(stand.secret);
    const headers = { cookie: pair! };
    const page = await (await fetch(stand.url, { headers })).text();
    expect(leaks(page)).not.toEqual([]);
    expect(page).toContain('action="/sign-out"');
    expect(await (await stand.get("/")).text()).not.toContain('action="/sign-out"');
    const until = Number(decodeURIComponent(pair!).split("=")[1]!.split(".")[0]);
    expect(until - Date.now()).toBeGreaterThan(11 * 3_600_000);
    expect(until - Date.now()).toBeLessThanOrEqual(12 * 3_600_000);

    const other = await post("/sign-out", {}, { ...headers, "sec-fetch-site": "cross-site" });
    expect([other.status, other.headers.get("set-cookie")]).toEqual([403, null]);
    const signedOut = await post("/sign-out", {}, headers);
    expect([signedOut.status, signedOut.headers.get("set-cookie")]).toEqual([
      303,
      expect.stringMatching(/^__Host-journal=; Max-Age=0;/),
    ]);
  });

  it("is refused with another secret, from another site, and with a large body", async () => {
    const attempts = [
      await post("/sign-in", { secret: `${stand.secret}x` }),
      await post("/sign-in", {}),
      await post("/sign-in", { secret: stand.secret }, { "sec-fetch-site": "cross-site" }),
      await post("/sign-in", { secret: stand.secret, more: "x".repeat(1_024) }),
    ];
    expect(attempts.map(({ status, headers }) => [status, headers.get("set-cookie")])).toEqual(
      [401, 401, 403, 413].map((status) => [status, null]),
    );
    expect(await attempts[0]!.text()).toContain("That is not the secret.");
  });
});

const { JOURNAL_SECRET: published = "" } = parseEnv(readFileSync(".dev.vars.example", "utf8"));

describe("a Worker without a secret, or with one that can be guessed", () => {
  const short = "0123456789abcdefghijklmnopqrstu";
  it.each(["", short, published, " ".repeat(40)])(
    "is closed, and says how to open it (%o)",
    async (secret) => {
      const closed = await startWorker({ bindings: { JOURNAL_SECRET: secret }, withDatabase: false });
      try {
        const headers = {
          authorization: `Bearer ${secret}`,
          cookie: cookie(Date.now() + 60_000, secret),
          "sec-fetch-site": "same-origin",
        };
        const body = new URLSearchParams({ secret });
        for (const response of [
          await fetch(closed.url, { headers }),
          await fetch(`${closed.url}/deliveries`, { headers }),
          await fetch(`${closed.url}/sign-in`, { method: "POST", headers, body }),
        ]) {
          expect([response.status, response.headers.get("set-cookie")]).toEqual([403, null]);
          expect(await response.text()).toContain("npx wrangler secret put JOURNAL_SECRET");
        }
        const health = await fetch(`${closed.url}/healthz`, { headers });
        expect([health.status, await health.json()]).toEqual([503, { status: "unavailable" }]);
        const delivery = await fetch(`${closed.url}/webhooks/github`, { method: "POST", headers });
        expect([delivery.status, await delivery.text()]).toEqual([
          501,
          expect.not.stringContaining("GITHUB_"),
        ]);
      } finally {
        await closed.close();
      }
    },
  );
});

describe("the Worker of `npm run dev`", () => {
  it("is open at a loopback address, and closed under another name that leads there", async () => {
    const local = await startWorker({ bindings: {}, samples: true });
    const { port } = new URL(local.url);
    /** The status, for a request to this host name; Node's fetch sends no other than the URL's. */
    const ask = (host: string, method = "GET", path = "/") =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { host: `${host}:${port}`, "sec-fetch-site": "same-origin" };
        const sent = request({ port, host: "127.0.0.1", method, path, headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on("error", reject).end();
      });
    try {
      for (const host of ["127.0.0.1", "localhost", "[::1]"]) expect(await ask(host)).toBe(200);
      for (const host of ["attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example"]) {
        expect(await ask(host)).toBe(403);
        expect(await ask(host, "POST", "/samples")).toBe(403);
      }
    } finally {
      await local.close();
    }
  });
});
