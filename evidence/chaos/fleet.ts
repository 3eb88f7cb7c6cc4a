import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Draw } from "../sim/draw.ts";
import type { ClientRecord, ClientSettings, Order } from "./records.ts";

export interface FleetOptions {
  /** How many clients run at a time. */
  readonly size: number;
  /** The bundled client program. */
  readonly program: string;
  /** Where clients write their logs. */
  readonly directory: string;
  readonly endpoints: ClientSettings["endpoints"];
  readonly draw: Draw;
}

interface Client {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  killed: boolean;
}

/** The client processes, by seat: a client that is killed is replaced by a new one in the same seat. */
export class Fleet {
  /** What went wrong with clients that were not killed. */
  readonly failures: string[] = [];
  readonly #options: FleetOptions;
  readonly #seats: Client[] = [];
  readonly #logFiles: string[] = [];

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#options.size;
  }

  /** Resolves when each client runs, or has failed. */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.size }, (_, seat) => this.respawn(seat)));
  }

  /** Stops a client, or lets it go on. */
  signal(seat: number, signal: "SIGSTOP" | "SIGCONT"): void {
    this.#seats[seat]!.child.kill(signal);
  }

  /** Kills a client with SIGKILL. Resolves when the process is gone. */
  kill(seat: number): Promise<void> {
    return killed(this.#seats[seat]!);
  }

  /** Starts a new client in a seat that has none, or whose client was killed. Resolves when it runs, or has failed. */
  respawn(seat: number): Promise<unknown> {
    return answerOf(this.#spawn(seat));
  }

  /** Sends an order to every client. Resolves when each has done it, or has failed. */
  async ask(order: Order): Promise<void> {
    for (const { child } of this.#seats) if (child.connected) child.send(order, () => undefined);
    await Promise.all(this.#seats.map(answerOf));
  }

  /** The logs of all clients, killed ones included; each client's records are in order. */
  records(): ClientRecord[] {
    return this.#logFiles.flatMap(readRecords);
  }

  async close(): Promise<void> {
    await Promise.all(this.#seats.map(killed));
  }

  #spawn(seat: number): Client {
    const { program, directory, endpoints, draw } = this.#options;
    const name = `${seat}.${this.#logFiles.length}`;
    const logFile = join(directory, `client-${name}.jsonl`);
    this.#logFiles.push(logFile);
    const settings: ClientSettings = { name, seed: draw.integer(0, 2 ** 31), logFile, endpoints };
    const child = fork(program, [JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
    });
    const client: Client = { child, exited: once(child, "exit"), killed: false };
    this.#seats[seat] = client;
    let errorOutput = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      errorOutput += bytes;
    });
    child.once("exit", (code, killer) => {
      if (client.killed) return;
      const output = errorOutput.slice(0, 1500);
      this.failures.push(`client ${name} ended by itself (${killer ?? code}): ${output}`);
    });
    return client;
  }
}

/** Resolves when a client says that it is done, or is gone. */
function answerOf({ child, exited }: Client): Promise<unknown> {
  return child.connected ? Promise.race([once(child, "message"), exited]) : exited;
}

async function killed(client: Client): Promise<void> {
  client.killed = true;
  client.child.kill("SIGKILL");
  await client.exited;
}

/** A client that was killed may have written half a line at the end. */
function readRecords(path: string): ClientRecord[] {
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as ClientRecord);
}
