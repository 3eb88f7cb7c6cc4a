import { createHmac } from "node:crypto";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const secret = "github-example";
const at = staged();
beforeEach(() => at.stage.each("FLUSHALL"));

async function load(): Promise<(request: Request) => Promise<Response>> {
  const env = { ...at.stage.local.env(), GITHUB_WEBHOOK_SECRET: secret, DEPLOYMENTS_URL: at.service.url };
  return (await importInNode<{ POST(request: Request): Promise<Response> }>("vercel/api/github.ts", env))
    .POST;
}

/** A push as GitHub sends it: the parts of the payload that matter here. */
function push(after: string, ref = "refs/heads/main", signedWith = secret): Request {
  const body = JSON.stringify({ ref, before: "0".repeat(40), after, repository: { full_name: "octo/demo" } });
  const signature = createHmac("sha256", signedWith).update(body).digest("hex");
  return new Request("https://shop.example/api/github", {
    method: "POST",
    headers: {
      "x-github-event": "push",
      "x-github-delivery": crypto.randomUUID(),
      "x-hub-signature-256": `sha256=${signature}`,
    },
    body,
  });
}

describe("examples/vercel/api/github", () => {
  it("deploys a push once, however often it is redelivered", async () => {
    const POST = await load();
    const first = await POST(push("a1"));
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([204, null]);
    const again = await POST(push("a1"));
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([204, "true"]);
    expect(at.service.calls).toMatchObject([{ method: "PUT", path: "/a1" }]);
  });

  it("deploys nothing for another branch, and nothing that GitHub has not signed", async () => {
    const POST = await load();
    expect((await POST(push("b1", "refs/heads/next"))).status).toBe(204);
    expect((await POST(push("b2", "refs/heads/main", "other"))).status).toBe(401);
    expect(at.service.calls).toEqual([]);
  });
});

describe("examples/vercel/api/report", () => {
  const load = async () => {
    const env = { ...at.stage.local.env(), CRON_SECRET: "0123456789abcdef", REPORTS_URL: at.service.url };
    const { GET } = await importInNode<{ GET(request: Request): Promise<Response> }>(
      "vercel/api/report.ts",
      env,
    );
    return (authorization = "Bearer 0123456789abcdef") =>
      GET(new Request("https://shop.example/api/report", { headers: { authorization } }));
  };
  const statusOf = async (response: Response) => ((await response.json()) as { status: string }).status;

  it("makes one report of a tick that is delivered again, at the same time or later", async () => {
    const tick = await load();
    at.service.rule = () => undefined;
    const first = tick();
    const call = await at.service.next();
    expect(await statusOf(await tick())).toBe("in progress");
    call.answer(204);
    expect(await statusOf(await first)).toBe("executed");
    expect(await statusOf(await tick())).toBe("replayed");
    const today = new Date().toISOString().slice(0, 10);
    expect(at.service.calls).toMatchObject([{ method: "PUT", path: `/${today}` }]);
  });

  it("does nothing for anybody who does not know the secret", async () => {
    const tick = await load();
    expect((await tick("Bearer undefined")).status).toBe(401);
    vi.stubEnv("CRON_SECRET", "");
    expect((await tick("Bearer ")).status).toBe(401);
    expect(at.service.calls).toEqual([]);
  });
});
