import type { FaultRule, Faults } from "../../testing/faults.ts";
import { accessOf } from "./authorize.ts";

/**
 * `/_faults` over HTTP: GET lists the rules, POST adds one (or a JSON array of them), DELETE clears them. Each
 * answers with the list that is active then. Only from loopback, and only with the endpoint's full token, so
 * that a page in a browser cannot reach it.
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
      try {
        const sent = (await request.json()) as FaultRule | readonly FaultRule[];
        for (const rule of Array.isArray(sent) ? sent : [sent]) faults.add(rule);
        return Response.json({ result: faults.list() });
      } catch (error) {
        return Response.json({ error: `ERR ${(error as Error).message}` }, { status: 400 });
      }
    default:
      return Response.json({ error: `ERR Method not allowed: '${request.method}'` }, { status: 405 });
  }
}

/** Whether an address, of a peer or to bind to, is this machine's own. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\.|^(?:\[?::1\]?|localhost)$/i.test(address);
}
