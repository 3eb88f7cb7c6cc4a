// The Worker of the tests: lock servers, and the program that uses them through their binding.
import { throughBinding } from "../../lock-server/test/binding.ts";
import lockServers, { type Env, LockServer } from "../../tools/lock-servers-worker.ts";

export { LockServer };

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (new URL(request.url).pathname !== "/binding") return lockServers.fetch(request, env);
    const outcome = throughBinding(env.LOCKS).then(() => "passed");
    return new Response(await outcome.catch((error: Error) => error.stack));
  },
};
