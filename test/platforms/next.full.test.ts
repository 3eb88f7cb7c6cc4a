import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { transformSync } from "esbuild";
import { beforeAll, expect, test } from "vitest";
import { pinnedRuntime } from "../../evidence/runtimes/matrix/pinned.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";
import { startNode } from "../examples/node-process.ts";
import { staged } from "../examples/stage.ts";
import { delivery, secret } from "../http/stand.ts";
import { freePort } from "../support/free-port.ts";
import { freshKey } from "../support/fresh-key.ts";
import { pack } from "../support/packed.ts";
import { until } from "../support/until.ts";

// `next build && next start`, with the packed package. Next.js is not among this repository's dependencies, because every
// `npm ci` would bring its 300 MB: the app is installed when this is first run, and again when its lock file changes.

const source = "test/platforms/next";
const app = resolve("node_modules/.cache/next");
const next = join(app, "node_modules/next/dist/bin/next");
const offline = { NEXT_TELEMETRY_DISABLED: "1", CI: "1" };

/** The route handlers by name: their code, and a request. */
const routes = {
  webhook: { file: `${source}/webhook.js`, request: (key: string) => delivery(key, { body: bodyOf(key) }) },
  payments: { file: "examples/next/app/api/payments/route.ts", request: payment },
  "hono/payments": { file: `${source}/hono.js`, request: payment },
};
const runtimes = ["nodejs", "edge"];
const paths = runtimes.flatMap((runtime) => Object.keys(routes).map((name) => `${runtime}/${name}`));

function bodyOf(key: string): string {
  return JSON.stringify({ key });
}

function payment(key: string): Request {
  const headers = { "idempotency-key": key, authorization: "Bearer of-the-shop" };
  return new Request("https://shop.example/", { method: "POST", headers, body: bodyOf(key) });
}

function unpack(tarball: string): void {
  const folder = join(app, "node_modules/redlock-edge");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  execFileSync("tar", ["-xzf", tarball, "-C", folder, "--strip-components", "1"]);
}

/** Writes every route handler for both runtimes. As JavaScript: for TypeScript, Next.js would install a compiler. */
function writeRoutes(): void {
  for (const runtime of runtimes) {
    for (const [name, { file }] of Object.entries(routes)) {
      const { code } = transformSync(readFileSync(file, "utf8"), { loader: "ts" });
      const folder = join(app, "app", runtime, name);
      mkdirSync(folder, { recursive: true });
      // The hardest: Next.js's own fetch answers every request from its cache.
      const settings = `export const runtime = "${runtime}", fetchCache = "force-cache";\n`;
      writeFileSync(join(folder, "route.js"), `${code}\n${settings}`);
    }
  }
}

const at = staged();

beforeAll(async () => {
  const { redlockEdge } = await pack();
  for (const made of ["app", ".next"]) rmSync(join(app, made), { recursive: true, force: true });
  for (const name of ["package.json", "package-lock.json", "next.config.js", "proxy.js"]) {
    cpSync(join(source, name), join(app, name));
  }
  npmCi(app);
  unpack(redlockEdge.tarball);
  writeRoutes();
  execFileSync(process.execPath, [next, "build"], { cwd: app, env: { ...process.env, ...offline } });
}, 600_000);

/** Starts the app. Returns its address, and what it has printed. */
async function startNext(env: Readonly<Record<string, string>>, node?: string) {
  const port = await freePort();
  const given = {
    ...offline,
    ...at.local.env(),
    API_KEYS: '{"of-the-shop":"shop"}',
    GITHUB_WEBHOOK_SECRET: secret,
    LEDGER_URL: at.service.url,
    ...env,
  };
  const args = [next, "start", "--hostname", "127.0.0.1", "--port", `${port}`];
  const server = startNode(args, given, { ...(node && { node }), cwd: app });
  await until(() => /Ready/.test(server.output()), "Next.js to be ready");
  return { url: `http://127.0.0.1:${port}`, output: server.output };
}

test.each([
  ["this Node", () => process.execPath],
  ["Node 24", () => pinnedRuntime("node-24")],
])(
  "in both runtimes on %s, every route handler acts once for two requests",
  async (_name, command) => {
    const server = await startNext({}, command());
    const sent: string[] = [];
    for (const path of paths) {
      const request = routes[path.replace(/^\w+\//, "") as keyof typeof routes].request(freshKey());
      const { method, headers } = request;
      const body = await request.text();
      sent.push(body);
      for (const replayed of [null, "true"]) {
        const response = await fetch(`${server.url}/${path}`, { method, headers, body });
        const answer = [response.status, response.headers.get("idempotent-replayed"), await response.text()];
        expect(answer, `${path}\n${server.output()}`).toEqual([201, replayed, `{"call":${sent.length}}`]);
      }
    }
    expect(at.service.calls.map(({ body }) => body)).toEqual(sent);
  },
  600_000,
);

test.each(runtimes)(
  "on %s, a body that Next.js may have cut is refused, until its limit is raised",
  async (runtime) => {
    const path = `${runtime}/hono/payments`;
    const headers = { "idempotency-key": freshKey() };
    const body = "x".repeat(11_000_000);
    // Without Content-Length.
    const post = async (url: string) => {
      const chunked = new Blob([body]).stream();
      const init = { method: "POST", headers, body: chunked, duplex: "half" } as RequestInit;
      const response = await fetch(`${url}/${path}`, init);
      await response.arrayBuffer();
      return [response.status, response.headers.get("idempotent-replayed")];
    };
    const cutting = await startNext({});
    expect(await post(cutting.url), cutting.output()).toEqual([500, null]);
    expect(cutting.output()).toContain("set proxyClientMaxBodySize to maxRequestBody + 65536");
    expect(at.service.calls).toEqual([]);
    const whole = await startNext({ BODY_LIMIT: `${12_000_000 + 65_536}` });
    for (const replayed of [null, "true"])
      expect(await post(whole.url), whole.output()).toEqual([201, replayed]);
    expect(at.service.calls.map((call) => call.body.length)).toEqual([body.length]);
  },
  600_000,
);
