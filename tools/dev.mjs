// Runs the Worker and three local Redis endpoints: `npm run dev`. It needs no setup, and leaves nothing behind.
import { once } from "node:events";
import { createServer } from "node:net";
import process from "node:process";
import { devPageScript } from "./bundle.mjs";
import { load } from "./load.mjs";
import { randomSecrets, startWorker } from "./local-worker.mjs";

const usualPort = 8787;

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stop.abort());

const closers = [];
try {
  await run();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await Promise.all(closers.map((close) => close()));
}

async function run() {
  const { openPage, start } = await load("local/src/page/index.ts");
  const local = await start();
  closers.push(local.close);
  const endpointsPage = await openPage(local, { script: devPageScript });
  closers.push(endpointsPage.close);
  const secrets = randomSecrets();
  const port = (await isFree(usualPort)) ? usualPort : 0;
  const worker = await startWorker({
    bindings: { ...secrets, ...local.env() },
    port,
    onLog: (text) => process.stderr.write(text),
  });
  closers.push(worker.close);

  const [first] = local.endpoints;
  const engine =
    local.engine === "redis" ? "a redis-server each" : "the embedded engine: redis-server is not on PATH";
  console.log(`
redlock-edge: the Worker runs in workerd, with a D1 database of its own.

  page        ${worker.url}/     (name: journal, password: JOURNAL_SECRET from below)
  health      ${worker.url}/healthz
  endpoints   ${local.endpoints.map(({ url }) => url).join("  ")}
              (${engine})
  what they do ${endpointsPage.url}

The secrets of this run; the commands below need them:

${exports(secrets)}

Send a webhook of Stripe five times at once; of GitHub, and as a Standard Webhook:

node tools/send-webhook.mjs --url ${worker.url} --sender stripe
node tools/send-webhook.mjs --url ${worker.url} --sender github
node tools/send-webhook.mjs --url ${worker.url} --sender standard-webhooks

Break the first endpoint (-d '[]' fixes it); the two others keep working:

curl ${new URL(endpointsPage.url).origin}/api/endpoints/1/faults -H 'authorization: Bearer ${first.token}' \\
  -d '[{"fault":"down"}]'

Ctrl-C stops everything.
`);
  if (!stop.signal.aborted) await once(stop.signal, "abort");
}

function exports(variables) {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value}'`)
    .join("\n");
}

/** Whether the Worker can listen there, where the address of an earlier run stays true. */
function isFree(port) {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ host: "127.0.0.1", port }, () => server.close(() => resolve(true)));
  });
}
