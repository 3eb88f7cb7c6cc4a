import { expect, it } from "vitest";
import { bundleForNode } from "./bundle.ts";
import { startNode } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

/** What Nest requires if it is there. */
const optional = ["@nestjs/microservices", "@nestjs/websockets", "class-transformer", "class-validator"];

/** Starts the application as a replica of its own, and returns what sends a request to it. */
async function startReplica(): Promise<(customer: string) => Promise<{ status: number; body: unknown }>> {
  const example = await bundleForNode("nest/app.ts", {
    external: optional.flatMap((name) => [name, `${name}/*`]),
  });
  const replica = startNode([example], { ...at.local.env(), REPORTS_URL: at.service.url, PORT: "0" });
  const [, port] = await replica.printed(/listening on \S+:(\d+)/);
  return async (customer) => {
    const response = await fetch(`http://127.0.0.1:${port}/reports/${customer}`, { method: "POST" });
    return { status: response.status, body: await response.json() };
  };
}

it("examples/nest: of all replicas, one at a time runs a method with @Locked, for each customer", async () => {
  at.service.rule = () => undefined;
  const [one, other] = await Promise.all([startReplica(), startReplica()]);
  const first = one("acme");
  const building = await at.service.next();
  expect(await other("acme")).toEqual({ status: 409, body: expect.objectContaining({ error: "Conflict" }) });
  // Another customer's is built meanwhile.
  const another = other("zeta");
  (await at.service.next()).answer(500);
  expect(await another).toEqual({ status: 502, body: expect.objectContaining({ error: "Bad Gateway" }) });
  building.answer(201);
  expect(await first).toEqual({ status: 201, body: { built: "acme" } });
  const later = other("acme");
  (await at.service.next()).answer(201);
  expect(await later).toEqual({ status: 201, body: { built: "acme" } });
  const fences = at.service.calls
    .filter(({ path }) => path.startsWith("/acme"))
    .map(({ path }) => Number(path.split("=")[1]));
  expect(fences).toHaveLength(2);
  expect(fences[1]).toBeGreaterThan(fences[0]!);
});
