import { type FaultRule, Faults } from "../../faults/faults.ts";
import { accessOf } from "./authorize.ts";

/**
 * Answers `/_faults`: GET lists the fault rules, POST adds one rule or a JSON array of them, PUT replaces all rules by these,
 * and DELETE removes all. Nothing is changed if a rule is invalid. Each answers with the rules that are active afterwards.
 * Allowed from loopback only (403), and only with the endpoint's full token (401), so that no web page in a browser can set
 * faults.
 */
export async function answerFaults(
  request: Request,
  options: { faults: Faults; token: string; remoteAddress: string },
): Promise<Response> {
  const { faults, token, remoteAddress } = options;
  const { method } = request;
  if (!isLoopback(remoteAddress)) return refused(403, "ERR faults can be set from loopback only");
  if (accessOf(request, { token }) !== "full") return refused(401, "WRONGPASS invalid or missing auth token");
  if (!["GET", "POST", "PUT", "DELETE"].includes(method)) {
    return refused(405, `ERR Method not allowed: '${method}'`);
  }
  try {
    const hasRules = method === "POST" || method === "PUT";
    const rules: FaultRule[] = hasRules ? [await request.json()].flat() : [];
    // Throws before anything is changed.
    new Faults(rules);
    if (method === "PUT" || method === "DELETE") faults.clear();
    for (const rule of rules) faults.add(rule);
    return Response.json({ result: faults.list() });
  } catch (error) {
    return refused(400, `ERR ${(error as Error).message}`);
  }
}

/** An error as the REST API writes it. */
export const refused = (status: number, error: string): Response => Response.json({ error }, { status });

/** Whether an address is a loopback address: a peer's, or one to listen on. */
export function isLoopback(address: string): boolean {
  return /^(?:(?:::ffff:)?127\.[\d.]+|\[?::1\]?|localhost)$/i.test(address);
}
