import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import process from "node:process";
import { promisify } from "node:util";
import type { Peer } from "../rest/observe.ts";

// Who sends the requests: the process at the other end of a connection, as the operating system knows it. If it does not
// tell (the process has ended, or is on another machine), the client is what it calls itself.

const most = 2_000;

/** Names of clients: `node 4711`, by the process id; `curl`. */
export class Clients {
  readonly #byConnection = new Map<string, string>();
  readonly #byToken = new Map<string, Peer>();
  #last: Promise<unknown> = Promise.resolve();

  /** Takes note of a request at an endpoint's port, with the random names that it sends. */
  see(peer: Peer, port: number, tokens: readonly string[]): void {
    const connection = connectionOf(peer);
    // The first who sends a token has made it: one that is handed over belongs to two.
    for (const token of tokens) if (!this.#byToken.has(token)) remember(this.#byToken, token, peer);
    if (this.#byConnection.has(connection)) return;
    const kind = /^[\w.-]{1,16}/.exec(peer.agent)?.[0] ?? "client";
    remember(this.#byConnection, connection, kind);
    // One after another: each may look through all processes.
    this.#last = this.#last
      .then(() => processAt(peer.port, port))
      .then((id) => id && this.#byConnection.set(connection, `${kind} ${id}`))
      // Not everybody may see all processes.
      .catch(() => undefined);
  }

  nameOf(peer: Peer): string {
    return this.#byConnection.get(connectionOf(peer)) ?? "";
  }

  /** The name of the client that made a random name. */
  nameOfToken(token: string): string | undefined {
    const peer = this.#byToken.get(token);
    return peer && this.nameOf(peer);
  }
}

const connectionOf = ({ address, port }: Peer): string => `${address} ${port}`;

function remember<Value>(map: Map<string, Value>, id: string, value: Value): void {
  map.set(id, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

/** The id of the process whose socket is at a port of this machine, connected to another port of it. */
async function processAt(port: number, to: number): Promise<string | undefined> {
  if (process.platform === "linux") return processOnLinux(port, to);
  if (process.platform === "win32") return undefined;
  const { stdout } = await promisify(execFile)("lsof", ["-nP", `-iTCP:${port}`, "-Fpn"]);
  // A line `p<id>`, then `n<from>-><to>` for each of its sockets.
  const [, id] = new RegExp(`^p(\\d+)(?:\\n[^p].*)*?\\nn\\S*:${port}->\\S*:${to}\\b`, "m").exec(stdout) ?? [];
  return id;
}

/** Where the process of the last connection was found: most connections are of few processes. */
let recent = "";

async function processOnLinux(port: number, to: number): Promise<string | undefined> {
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  const hex = (value: number) => value.toString(16).toUpperCase().padStart(4, "0");
  const socket = new RegExp(`^ *\\d+: \\w+:${hex(port)} \\w+:${hex(to)} (?:\\S+ +){6}(\\d+)`, "m");
  const [, inode] = socket.exec(tables.join("\n")) ?? [];
  if (inode === undefined) return undefined;
  const all = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const id of [recent, ...all.reverse()].filter((each) => each !== "")) {
    const folder = `/proc/${id}/fd`;
    const files = await readdir(folder).catch(() => []);
    const targets = await Promise.all(files.map((file) => readlink(`${folder}/${file}`).catch(() => "")));
    if (!targets.includes(`socket:[${inode}]`)) continue;
    recent = id;
    return id;
  }
  return undefined;
}
