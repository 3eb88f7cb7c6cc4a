// Lock servers by name, which can be emptied, as one Worker.
import {
  LockServer,
  type LockServerNamespace,
  type LockServerState,
  lockServerApp,
} from "../lock-server/src/index.ts";

/** A lock server that can be emptied, as by FLUSHALL. */
export class EmptiedLockServer extends LockServer {
  readonly #sql: LockServerState["storage"]["sql"];

  constructor(state: LockServerState) {
    super(state);
    this.#sql = state.storage.sql;
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname !== "/flush") return super.fetch(request);
    this.#sql.exec("DELETE FROM entries");
    return new Response();
  }
}

export interface Env {
  readonly LOCKS: LockServerNamespace;
  readonly TOKEN: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const name = request.headers.get("x-server") ?? "locks";
    if (url.pathname === "/flush") {
      return env.LOCKS.get(env.LOCKS.idFromName(name) as never).fetch("https://lock-server/flush");
    }
    const app = lockServerApp<Env>({
      name,
      locks: ({ LOCKS }) => LOCKS,
      tokens: ({ TOKEN }) => [TOKEN, undefined],
    });
    return app.fetch(request, env);
  },
};
