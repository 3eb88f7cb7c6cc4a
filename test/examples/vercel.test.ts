import { createHmac } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { importInNode } from "./bundle.ts";
import { openService, openStage, type Service, type Stage } from "./stage.ts";

vi.setConfig({ testTimeout: 60_000 });

const secret = "github-example";
let stage: Stage;
let service: Service;
beforeAll(async () => {
  [stage, service] = await Promise.all([openStage(), openService()]);
});
afterAll(async () => {
  await service.close();
  await stage.local.close();
});
beforeEach(() => stage.each("FLUSHALL"));

async function load(): Promise<(request: Request) => Promise<Response>> {
  const env = { ...stage.local.env(), GITHUB_WEBHOOK_SECRET: secret, DEPLOYMENTS_URL: service.url };
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

describe("examples/vercel", () => {
  it("deploys a push once, however often it is redelivered", async () => {
    const POST = await load();
    const before = service.calls.length;
    const first = await POST(push("a1"));
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([204, null]);
    const again = await POST(push("a1"));
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([204, "true"]);
    expect(service.calls.slice(before)).toMatchObject([{ method: "PUT", path: "/a1" }]);
  });

  it("deploys nothing for another branch, and nothing that GitHub has not signed", async () => {
    const POST = await load();
    const before = service.calls.length;
    expect((await POST(push("b1", "refs/heads/next"))).status).toBe(204);
    expect((await POST(push("b2", "refs/heads/main", "other"))).status).toBe(401);
    expect(service.calls).toHaveLength(before);
  });

  it("can be redelivered after a failure", async () => {
    const POST = await load();
    service.rule = () => 500;
    expect((await POST(push("c1"))).status).toBe(502);
    service.rule = () => 204;
    const again = await POST(push("c1"));
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([204, null]);
  });
});
