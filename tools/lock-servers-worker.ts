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
    const shards = Number(request.headers.get("x-shards") ?? 1);
    if (url.pathname === "/flush") {
      for (let shard = 0; shard < shards; shard += 1)
        await env.LOCKS.get(env.LOCKS.idFromName(`${name}:${shard}`) as never).fetch(
          "https://lock-server/flush",
        );
      return new Response();
    }
    const app = lockServerApp<Env>({
      name,
      shards,
      locks: ({ LOCKS }) => LOCKS,
      tokens: ({ TOKEN }) => [TOKEN, undefined],
    });
    return app.fetch(request, env);
  },
};
