// The Worker of the tests: lock servers, and the cases that run beside them.
import { runCase } from "../../lock-server/test/cases.ts";
import lockServers, { type Env, LockServer } from "../../tools/lock-servers-worker.ts";

export { LockServer };

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const isCase = new URL(request.url).pathname === "/case";
    return isCase ? runCase(await request.text(), env.LOCKS) : lockServers.fetch(request, env);
  },
};
