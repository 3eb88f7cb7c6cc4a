// An import is delivered in five parts: five signed webhooks, in any order, some of them twice, to any instances.
// Each part is stored once. When all five are stored, one instance finishes the import, once.
//
// - A part is stored before it is counted by the latch, so every counted part is stored.
// - A part that arrives twice counts once. So if an instance dies after storing a part, the redelivery counts it.
// - Several instances may find the latch open, at the same moment or later. The last step is an idempotent run of its
//   own, so it has one effect.
// - One of three databases may be down at any time. With two down the answer is 503, and the sender tries again.

import { endpointsFromEnv, isRedlockError, Redlock } from "redlock-edge";
import { Idempotency } from "redlock-edge/idempotency";
import { CountDownLatch } from "redlock-edge/sync";
import { standardWebhooks } from "redlock-edge/webhooks";

/** The body of a webhook: one part of an import. */
interface Part {
  readonly import: string;
  readonly part: number;
  readonly rows: readonly unknown[];
}

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const idempotency = new Idempotency(redlock, { retention: 7 * 86_400_000, wait: 5_000 });
const provider = standardWebhooks({ secret: process.env.IMPORT_WEBHOOK_SECRET ?? "" });
const warehouse = process.env.WAREHOUSE_URL ?? "https://warehouse.example";

export async function POST(request: Request): Promise<Response> {
  const body = new Uint8Array(await request.arrayBuffer());
  try {
    await provider.verify(request, body);
    const part = JSON.parse(new TextDecoder().decode(body)) as Part;
    return Response.json({ finished: await receive(part) });
  } catch (error) {
    if (!isRedlockError(error)) return new Response(null, { status: 502 });
    // After any status but 2xx the sender delivers again.
    return new Response(null, { status: error.code === "WEBHOOK_INVALID" ? 401 : 503 });
  }
}

/** Stores a part, and finishes the import after the last one. Returns whether the import is finished. */
async function receive({ import: id, part, rows }: Part): Promise<boolean> {
  // The part's number, not the delivery's id: a sender that sends twice makes two deliveries of one part.
  await idempotency.run(`${part}`, { scope: ["import-part", id] }, () =>
    put(`/imports/${encodeURIComponent(id)}/parts/${part}`, rows),
  );
  const parts = new CountDownLatch(redlock, `import:${id}`, { count: 5, ttl: 7 * 86_400_000 });
  const { open } = await parts.arrive(`${part}`);
  if (!open) return false;
  await idempotency.run(id, { scope: "import" }, () =>
    put(`/imports/${encodeURIComponent(id)}/finished`, {}),
  );
  return true;
}

async function put(path: string, content: unknown): Promise<void> {
  const answer = await fetch(`${warehouse}${path}`, { method: "PUT", body: JSON.stringify(content) });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`the warehouse answered ${answer.status}`);
}
