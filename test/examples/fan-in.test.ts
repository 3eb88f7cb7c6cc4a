import { createHmac, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const key = Buffer.from("a key of at least 24 bytes");
const parts = [1, 2, 3, 4, 5];

/** One instance of the function, with a module scope of its own. */
interface Instance {
  POST(request: Request): Promise<Response>;
}

const at = staged();

const start = () =>
  importInNode<Instance>("fan-in/handler.ts", {
    ...at.stage.local.env(),
    IMPORT_WEBHOOK_SECRET: `whsec_${key.toString("base64")}`,
    WAREHOUSE_URL: at.service.url,
  });

/** A delivery as the sender signs it, each time with a new id. */
function delivery(name: string, part: number): Request {
  const body = JSON.stringify({ import: name, part, rows: [part] });
  const id = `msg_${randomUUID()}`;
  const time = Math.floor(Date.now() / 1_000);
  const signature = createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64");
  return new Request("https://shop.example/imports", {
    method: "POST",
    headers: { "webhook-id": id, "webhook-timestamp": `${time}`, "webhook-signature": `v1,${signature}` },
    body,
  });
}

const paths = () => at.service.calls.map(({ path }) => path).sort();
const storedOnce = (name: string) => parts.map((part) => `/imports/${name}/parts/${part}`);
const all = (name: string) => [`/imports/${name}/finished`, ...storedOnce(name)];

describe("examples/fan-in", () => {
  it("finishes once when all parts arrive twice and concurrently at three instances", async () => {
    const instances = await Promise.all([start(), start(), start()]);
    const name = randomUUID();
    const answers = await Promise.all(
      [...parts, ...parts].map(async (part, index) => {
        // On a busy machine another instance may process the same part for longer than a delivery waits.
        for (;;) {
          const answer = await instances[index % 3]!.POST(delivery(name, part));
          if (answer.status !== 503) return answer;
        }
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const results = (await Promise.all(answers.map((answer) => answer.json()))) as { finished: boolean }[];
    expect(results.some(({ finished }) => finished)).toBe(true);
    expect(paths()).toEqual(all(name));
  });

  it("lets the sender retry after a failure or an outage", async () => {
    const instance = await start();
    const name = randomUUID();
    for (const part of parts.slice(1)) await instance.POST(delivery(name, part));
    at.service.rule = ({ path }) => (path.endsWith("/finished") ? 500 : 201);
    // The part is stored and counted, but the import is not finished.
    expect((await instance.POST(delivery(name, 1))).status).toBe(502);
    at.service.rule = () => 201;
    const end = at.stage.outage();
    expect((await instance.POST(delivery(name, 1))).status).toBe(503);
    end();
    expect(await (await instance.POST(delivery(name, 2))).json()).toEqual({ finished: true });
    expect(paths()).toEqual([`/imports/${name}/finished`, ...all(name)]);
  });
});
