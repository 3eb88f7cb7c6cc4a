import { type FaultRule, Faults } from "../../faults/faults.ts";
import { accessOf } from "./authorize.ts";

/**
 * Answers `/_faults`: GET lists the fault rules, POST adds one rule or a JSON array of them, PUT replaces all rules by
 * these unless one is invalid, and DELETE removes all. Each answers with the rules that are active afterwards. Allowed from loopback only (403), and only with the endpoint's
 * full token (401), so that no web page in a browser can set faults.
 */
export async function answerFaults(
  request: Request,
  options: { faults: Faults; token: string; remoteAddress: string },
): Promise<Response> {
  const { faults, token, remoteAddress } = options;
  if (!isLoopback(remoteAddress)) {
    return Response.json({ error: "ERR faults can be set from loopback only" }, { status: 403 });
  }
  if (accessOf(request, { token }) !== "full") {
    return Response.json({ error: "WRONGPASS invalid or missing auth token" }, { status: 401 });
  }
  switch (request.method) {
    case "GET":
      return Response.json({ result: faults.list() });
    case "DELETE":
      faults.clear();
      return Response.json({ result: faults.list() });
    case "POST":
    case "PUT":
      try {
        const sent = (await request.json()) as FaultRule | readonly FaultRule[];
        const rules: readonly FaultRule[] = Array.isArray(sent) ? sent : [sent];
        if (request.method === "PUT") {
          // Throws before anything is changed.
          new Faults(rules);
          faults.clear();
        }
        for (const rule of rules) faults.add(rule);
        return Response.json({ result: faults.list() });
      } catch (error) {
        return Response.json({ error: `ERR ${(error as Error).message}` }, { status: 400 });
      }
    default:
      return Response.json({ error: `ERR Method not allowed: '${request.method}'` }, { status: 405 });
  }
}

/** Whether an address is a loopback address: a peer's, or one to listen on. */
export function isLoopback(address: string): boolean {
  return /^(?:(?:::ffff:)?127\.[\d.]+|\[?::1\]?|localhost)$/i.test(address);
}
