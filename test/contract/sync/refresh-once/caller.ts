import process from "node:process";
import pg from "pg";
import { type HttpEndpointOptions, Redlock } from "../../../../src/index.ts";
import { refreshOnce } from "../../../../src/sync/index.ts";
import { patient } from "../../../support/beyond-tests.ts";

// A process that calls refreshOnce when its parent says so, with tokens in Postgres and a real token server.

/** What the process is started with. */
export interface CallerSettings {
  readonly endpoints: readonly HttpEndpointOptions[];
  readonly database: string;
  readonly server: string;
}

/** So many calls at once, and what goes wrong with the first refresh. */
export interface Order {
  readonly account: string;
  readonly calls: number;
  /**
   * Where the process dies: before the refresh is sent, when it is answered, in a second write after a failed one, or
   * when its tokens are written.
   */
  readonly dies?: "before" | "answered" | "written";
  /** The answer to the refresh does not arrive. */
  readonly loses?: boolean;
}

/** By call: the access token, or the error's code or message. */
export type Outcomes = readonly string[];

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_at: number;
}

const settings = JSON.parse(process.argv[2]!) as CallerSettings;
const redlock = new Redlock({ ...patient, endpoints: settings.endpoints, wait: Infinity });
const pool = new pg.Pool({ connectionString: settings.database, max: 10 });

async function read(account: string): Promise<Tokens> {
  const { rows } = await pool.query("SELECT * FROM tokens WHERE account = $1", [account]);
  return { ...rows[0], expires_at: Number(rows[0].expires_at) };
}

async function refresh({ refresh_token }: Tokens, signal: AbortSignal): Promise<Tokens> {
  const answer = await fetch(`${settings.server}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa("id:secret")}` },
    body: new URLSearchParams({ grant_type: "refresh_token", refresh_token }),
    signal,
  });
  const fresh = await answer.json();
  if (!answer.ok) throw new Error(fresh.error);
  return { ...fresh, expires_at: Date.now() + fresh.expires_in * 1_000 };
}

async function write(account: string, tokens: Tokens, fence: number): Promise<boolean> {
  const { access_token, refresh_token, expires_at } = tokens;
  const { rowCount } = await pool.query(
    "UPDATE tokens SET access_token = $2, refresh_token = $3, expires_at = $4, fence = $5 WHERE account = $1 AND fence < $5",
    [account, access_token, refresh_token, expires_at, fence],
  );
  return rowCount === 1;
}

function die(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => undefined);
}

function call({ account, dies, loses }: Order): Promise<string> {
  return refreshOnce<Tokens>(redlock, account, {
    read: () => read(account),
    isFresh: ({ expires_at }) => expires_at > Date.now(),
    async refresh(current, { signal }) {
      if (dies === "before") await die();
      const fresh = await refresh(current, signal);
      if (dies === "answered") await die();
      if (loses) throw new Error("lost");
      return fresh;
    },
    async write(fresh, { fence }) {
      const isWritten = await write(account, fresh, fence);
      if (dies === "written") await die();
      return isWritten;
    },
  }).then(
    ({ access_token }) => access_token,
    (error) => error.code ?? error.message,
  );
}

process.on("message", async (order: Order) => {
  const outcomes: Outcomes = await Promise.all(Array.from({ length: order.calls }, () => call(order)));
  process.send!(outcomes);
});
