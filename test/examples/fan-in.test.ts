import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { standardDelivery } from "../../tools/deliveries.mjs";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const secret = `whsec_${Buffer.from("a key of at least 24 bytes").toString("base64")}`;
const parts = [1, 2, 3, 4, 5];

/** One instance of the function, with a module scope of its own. */
interface Instance {
  POST(request: Request): Promise<Response>;
}

const at = staged();

const start = () =>
  importInNode<Instance>("fan-in/handler.ts", {
    ...at.local.env(),
    IMPORT_WEBHOOK_SECRET: secret,
    WAREHOUSE_URL: at.service.url,
  });

/** A delivery as the sender signs it, each time with a new id. */
function delivery(name: string, part: number): Request {
  const { headers, body } = standardDelivery(
    secret,
    { import: name, part, rows: [part] },
    `msg_${randomUUID()}`,
  );
  return new Request("https://shop.example/imports", { method: "POST", headers, body });
}

it("examples/fan-in finishes once when all parts arrive twice and concurrently at three instances", async () => {
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
  const stored = parts.map((part) => `/imports/${name}/parts/${part}`);
  expect(at.service.calls.map(({ path }) => path).sort()).toEqual([`/imports/${name}/finished`, ...stored]);
});
