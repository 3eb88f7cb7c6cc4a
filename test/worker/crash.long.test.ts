import { expect, it, vi } from "vitest";
import { start } from "../../local/src/index.ts";
import { standardDelivery } from "../../tools/deliveries.mjs";
import { crashAfterEffects } from "../../tools/demo/crash.mjs";
import { PhaseCounts } from "../../tools/demo/senders.mjs";
import { randomSecrets, startWorker } from "../../tools/local-worker.mjs";
import { bestEngine } from "../support/redis-servers.ts";

// Each kill costs the rest of the run's lease.
vi.setConfig({ testTimeout: 120_000 });

it("killed between an effect and its result in Redis, the Worker has one effect in the end", async () => {
  const local = await start({ count: 3, engine: bestEngine });
  const secrets = randomSecrets();
  const bindings = { ...secrets, ...local.env() };
  const worker = await startWorker({ bindings });
  try {
    const payload = { type: "invoice.paid", data: { id: "inv_crash" } };
    const delivery = await standardDelivery(secrets.STANDARD_WEBHOOKS_SECRET, payload, "msg_crash");
    const answers: string[] = [];
    const kills = await crashAfterEffects({ worker, local, bindings }, [delivery], {
      counts: new PhaseCounts("killed"),
      signal: new AbortController().signal,
      onAnswer: (_, body) => answers.push(body),
    });
    expect(kills).toBe(1);
    const { results } = await worker.database
      .prepare("SELECT delivery_key, entity, fence FROM effects")
      .all();
    expect(results).toHaveLength(1);
    const [{ entity, fence }] = results;
    expect(answers.map((body) => JSON.parse(body))).toEqual([
      { delivery: "msg_crash", event: "invoice.paid", entity, fence, events: 1 },
    ]);
  } finally {
    await worker.close();
    await local.close();
  }
});
