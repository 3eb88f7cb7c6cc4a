import { Miniflare } from "miniflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../support/until.ts";
import { bundleForWorkerd } from "./bundle.ts";
import { openService, openStage, type Service, type Stage } from "./stage.ts";

vi.setConfig({ testTimeout: 60_000 });

let stage: Stage;
let partner: Service;
let workers: readonly Miniflare[];
beforeAll(async () => {
  [stage, partner] = await Promise.all([openStage(), openService()]);
  const script = await bundleForWorkerd("partner-calls/worker.ts");
  // The first two wait for their turn for as long as it takes, the third for a moment.
  workers = ["60000", "60000", "200"].map(
    (wait) =>
      new Miniflare({
        modules: true,
        script,
        compatibilityDate: "2026-04-01",
        bindings: { ...stage.local.env(), PARTNER_URL: partner.url, WAIT_MS: wait },
      }),
  );
  await Promise.all(workers.map(({ ready }) => ready));
}, 60_000);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.dispose()));
  await partner.close();
  await stage.local.close();
});
beforeEach(() => stage.each("FLUSHALL"));

const ask = (worker: number, path: string) => workers[worker]!.dispatchFetch(`http://worker${path}`);

describe("examples/partner-calls", () => {
  it("lets four calls through at once, from two Workers together, and the others in their turn", async () => {
    partner.rule = () => undefined;
    const answers = Array.from({ length: 10 }, (_, index) => ask(index % 2, `/quotes/${index}?currency=EUR`));
    let most = 0;
    for (let answered = 0; answered < 10; answered += 1) {
      const call = await partner.next();
      // As many as may be are there before one of them is answered.
      if (answered < 6) await until(() => partner.calls.length >= answered + 4, "four calls", 30_000);
      most = Math.max(most, partner.calls.length - answered);
      call.answer(200);
    }
    expect(most).toBe(4);
    const replies = await Promise.all(answers);
    expect(replies.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect((await replies[0]!.json()) as object).toHaveProperty("call");
    const paths = Array.from({ length: 10 }, (_, index) => `/quotes/${index}?currency=EUR`);
    expect(partner.calls.map(({ path }) => path).sort()).toEqual(paths);
    await until(async () => (await slotsTaken()) === 0, "all permits free");
  });

  it("tells whoever waits in vain to come again, and calls nobody for it", async () => {
    partner.rule = () => undefined;
    const before = partner.calls.length;
    const answers = Array.from({ length: 4 }, () => ask(0, "/long"));
    await until(() => partner.calls.length === before + 4, "four calls", 30_000);
    const refused = await ask(2, "/one-more");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.text()).toContain("four calls are under way");
    expect(partner.calls.length).toBe(before + 4);
    for (const call of partner.calls.slice(before)) call.answer(404);
    // What the partner says is handed on, whatever it is.
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  });

  it("calls nobody while nobody can say how many are", async () => {
    partner.rule = () => 200;
    const before = partner.calls.length;
    const end = stage.outage();
    const refused = await ask(2, "/unknown");
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining("nobody can say")]);
    expect(partner.calls.length).toBe(before);
    end();
    expect((await ask(2, "/known")).status).toBe(200);
  });
});

/** How many permits an endpoint has given out, at most. */
async function slotsTaken(): Promise<number> {
  const keys = (await stage.each("KEYS", "redlock:slot:*")) as string[][];
  return Math.max(...keys.map(({ length }) => length));
}
