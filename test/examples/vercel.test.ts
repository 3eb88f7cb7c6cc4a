import { expect, it } from "vitest";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const at = staged();

it("examples/vercel/api/report makes one report a day, for who knows the secret", async () => {
  await Promise.all(at.local.endpoints.map((endpoint) => endpoint.execute(["FLUSHALL"])));
  const env = { ...at.local.env(), CRON_SECRET: "0123456789abcdef", REPORTS_URL: at.service.url };
  type Report = { GET(request: Request): Promise<Response> };
  const { GET } = await importInNode<Report>("vercel/api/report.ts", env);
  const tick = (secret: string) =>
    GET(new Request("https://shop.example/api/report", { headers: { authorization: `Bearer ${secret}` } }));
  const statusOf = async (response: Response) => ((await response.json()) as { status: string }).status;

  expect((await tick("undefined")).status).toBe(401);
  at.service.rule = () => undefined;
  const first = tick(env.CRON_SECRET);
  const call = await at.service.next();
  expect(await statusOf(await tick(env.CRON_SECRET))).toBe("in progress");
  call.answer(204);
  expect(await statusOf(await first)).toBe("executed");
  expect(await statusOf(await tick(env.CRON_SECRET))).toBe("replayed");
  expect(at.service.calls).toHaveLength(1);
});
