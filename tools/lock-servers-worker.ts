// Lock servers as one Worker: each request names its own.
import { type LockServerNamespace, lockServerApp } from "../lock-server/src/index.ts";

export { LockServer } from "../lock-server/src/index.ts";

export interface Env {
  readonly LOCKS: LockServerNamespace;
  readonly TOKEN: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const app = lockServerApp<Env>({
      name: request.headers.get("x-server") ?? "locks",
      locks: ({ LOCKS }) => LOCKS,
      tokens: ({ TOKEN }) => [TOKEN, undefined],
    });
    return app.fetch(request, env);
  },
};
