import { randomBytes } from "node:crypto";

// A D1 database from outside of workerd. Miniflare has a proxy for that, which blocks its thread until each answer is
// there; where the operating system takes the core away between two of its steps, it takes one answer for another's.

/** Executes the statements of a request on its database, and answers with what D1 returns. */
const script = `export default {
  async fetch(request, { DB, TOKEN }) {
    if (request.headers.get("authorization") !== TOKEN) return new Response(null, { status: 401 });
    try {
      const statements = (await request.json()).map(({ sql, values }) => DB.prepare(sql).bind(...values));
      const isOne = statements.length === 1;
      return Response.json(isOne ? [await statements[0].all()] : await DB.batch(statements));
    } catch (error) {
      return Response.json({ message: error.message }, { status: 500 });
    }
  },
};`;

const name = "database";

/**
 * A second Worker, with the same database, and what reads it.
 *
 * @param {object} options of the Worker: `compatibilityDate`, `d1Databases`
 */
export function databaseWorker(options) {
  // Only this process may execute statements: pages of other sites can reach loopback as well.
  const token = randomBytes(32).toString("hex");
  const worker = {
    ...options,
    name,
    modules: true,
    script,
    bindings: { TOKEN: token },
    unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
  };
  return {
    worker,
    /** @param {import("miniflare").Miniflare} miniflare */
    open: async (miniflare) => databaseAt(String(await miniflare.unsafeGetDirectURL(name)), token),
  };
}

/** What the scripts and tests use of a `D1Database`. */
function databaseAt(url, token) {
  async function execute(statements) {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: token },
      body: JSON.stringify(statements.map(({ sql, values }) => ({ sql, values }))),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.message);
    return answer;
  }
  const prepare = (sql, values = []) => {
    const statement = {
      sql,
      values,
      bind: (...given) => prepare(sql, given),
      all: async () => (await execute([statement]))[0],
      first: async () => (await statement.all()).results[0] ?? null,
    };
    return { ...statement, run: statement.all };
  };
  return { prepare: (sql) => prepare(sql), batch: execute };
}
