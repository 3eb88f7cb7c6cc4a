// Locks in a Worker, through the binding of a lock server.
import { Redlock } from "../../dist/index.js";
import { durableEndpoint, LockServer } from "../../lock-server/dist/index.js";

let rows = 0;

/** A lock server that counts the rows that it writes, which the platform bills. */
export class Counted extends LockServer {
  constructor({ storage }) {
    const exec = (...words) => {
      const cursor = storage.sql.exec(...words);
      const found = cursor.toArray();
      rows += cursor.rowsWritten;
      return { toArray: () => found };
    };
    super({
      storage: {
        sql: { exec },
        transactionSync: (run) => storage.transactionSync(run),
        getAlarm: () => storage.getAlarm(),
        setAlarm: (time) => storage.setAlarm(time),
      },
    });
  }

  async fetch(request) {
    return new URL(request.url).pathname === "/rows" ? Response.json(rows) : super.fetch(request);
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/rows") return env.LOCKS.get(env.LOCKS.idFromName("locks:0")).fetch("https://o/rows");
    const redlock = new Redlock({
      endpoints: [durableEndpoint(env.LOCKS)],
      timeout: 10_000,
      fencing: searchParams.has("fence"),
    });
    for (let left = Number(searchParams.get("cycles")); left > 0; left -= 1) {
      const lock = await redlock.acquire(crypto.randomUUID());
      await lock.release();
    }
    return new Response("done");
  },
};
