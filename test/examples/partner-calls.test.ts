import { Miniflare } from "miniflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { bundleForWorkerd } from "./bundle.ts";
import { openService, openStage, type Service, type Stage } from "./stage.ts";

let stage: Stage;
let partner: Service;
let workers: readonly Miniflare[];
beforeAll(async () => {
  [stage, partner] = await Promise.all([openStage(), openService()]);
  const script = await bundleForWorkerd("partner-calls/worker.ts");
  // The first two wait up to a minute for a permit, the third only 200 ms.
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
  it("allows four calls at once from two Workers together, and runs the others afterwards", async () => {
    partner.rule = () => undefined;
    const answers = Array.from({ length: 10 }, (_, index) => ask(index % 2, `/quotes/${index}?currency=EUR`));
    let most = 0;
    for (let answered = 0; answered < 10; answered += 1) {
      const call = await partner.next();
      // The limit is reached before one of the calls is answered.
      if (answered < 6) await until(() => partner.calls.length >= answered + 4, "four calls");
      most = Math.max(most, partner.calls.length - answered);
      call.answer(200);
    }
    expect(most).toBe(4);
    const replies = await Promise.all(answers);
    expect(replies.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect((await replies[0]!.json()) as object).toHaveProperty("call");
    const paths = Array.from({ length: 10 }, (_, index) => `/quotes/${index}?currency=EUR`);
    expect(partner.calls.map(({ path }) => path).sort()).toEqual(paths);
    await until(async () => (await slotsInUse()) === 0, "all permits free");
  });

  it("does not call the partner while the permits cannot be counted", async () => {
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

/** The largest number of permits that are stored on one endpoint. */
async function slotsInUse(): Promise<number> {
  const keys = (await stage.each("KEYS", "redlock:slot:*")) as string[][];
  return Math.max(...keys.map(({ length }) => length));
}
