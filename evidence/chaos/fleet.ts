import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Draw } from "../sim/draw.ts";
import type { ClientRecord, ClientSettings, FromClient, Phase, ToClient } from "./records.ts";

/** Handles the messages of clients. */
export interface FleetListener {
  /** A client sends a request to the ledger. */
  onLedgerRequest(
    message: Extract<FromClient, { type: "request" }>,
    answer: (balance: number | null) => void,
  ): void;
  onDelivered(delivery: number): void;
  /** Deliveries that a client had not completed when it was killed. */
  onLost(deliveries: readonly number[]): void;
}

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

/** A client that is about to write: its seat, and the ttl of its hold in ms. */
export interface AboutToWrite {
  readonly seat: number;
  readonly ttl: number;
}

/** Starts `size` client processes. Resolves when all of them run, or one has failed. */
export async function startFleet(options: FleetOptions, listener: FleetListener): Promise<Fleet> {
  const fleet = new Fleet(options, listener);
  await fleet.start();
  return fleet;
}

interface Client {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly deliveries: Set<number>;
  phase: Phase | undefined;
  killed: boolean;
}

/** The client processes, by seat: a client that is killed is replaced by a new one in the same seat. */
export class Fleet {
  /** What went wrong with clients that were not killed. */
  readonly failures: string[] = [];
  readonly #options: FleetOptions;
  readonly #listener: FleetListener;
  readonly #seats: Client[] = [];
  readonly #logFiles: string[] = [];
  readonly #watchers = new Set<() => void>();
  #onAboutToWrite: ((client: AboutToWrite) => void) | undefined;

  constructor(options: FleetOptions, listener: FleetListener) {
    this.#options = options;
    this.#listener = listener;
  }

  get size(): number {
    return this.#options.size;
  }

  async start(): Promise<void> {
    for (let seat = 0; seat < this.size; seat++) this.#spawn(seat);
    await this.#until(() => this.#seats.every(({ phase }) => phase !== undefined));
  }

  /** Stops a client with SIGSTOP. */
  stop(seat: number): void {
    this.#client(seat).child.kill("SIGSTOP");
  }

  /** Lets a stopped client go on. */
  resume(seat: number): void {
    this.#client(seat).child.kill("SIGCONT");
  }

  /** Kills a client with SIGKILL. Resolves when the process is gone. */
  async kill(seat: number): Promise<void> {
    const client = this.#client(seat);
    await killed(client);
    this.#listener.onLost([...client.deliveries]);
    client.deliveries.clear();
  }

  /** Starts a new client in the seat of one that was killed. Resolves when it runs. */
  async respawn(seat: number): Promise<void> {
    this.#spawn(seat);
    await this.#until(() => this.#client(seat).phase !== undefined);
  }

  deliver(seat: number, delivery: number, event: string): void {
    const client = this.#client(seat);
    if (client.killed) {
      this.#listener.onLost([delivery]);
      return;
    }
    client.deliveries.add(delivery);
    send(client, { type: "deliver", delivery, event });
  }

  /** Sends a command to every client. Resolves when all have reached `phase`, or one has failed. */
  async reach(phase: Phase, command: ToClient): Promise<void> {
    for (const client of this.#seats) send(client, command);
    await this.#until(() => this.#seats.every((client) => client.phase === phase));
  }

  /** Resolves with the next client that is about to write; null once `signal` aborts. */
  nextWrite(signal: AbortSignal): Promise<AboutToWrite | null> {
    return new Promise((resolve) => {
      const end = (client: AboutToWrite | null) => {
        this.#onAboutToWrite = undefined;
        signal.removeEventListener("abort", giveUp);
        resolve(client);
      };
      const giveUp = () => end(null);
      if (signal.aborted) return resolve(null);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#onAboutToWrite = end;
    });
  }

  /** The logs of all clients, killed ones included; each client's records are in order. */
  records(): ClientRecord[][] {
    return this.#logFiles.map(readRecords);
  }

  async close(): Promise<void> {
    await Promise.all(this.#seats.map(killed));
  }

  #client(seat: number): Client {
    const client = this.#seats[seat];
    if (!client) throw new RangeError(`no seat ${seat}`);
    return client;
  }

  #spawn(seat: number): void {
    const { program, directory, endpoints, draw } = this.#options;
    const name = `${seat}.${this.#logFiles.length}`;
    const logFile = join(directory, `client-${name}.jsonl`);
    this.#logFiles.push(logFile);
    const settings: ClientSettings = { name, seed: draw.integer(0, 2 ** 31), logFile, endpoints };
    const child = fork(program, [JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
    });
    const client: Client = {
      child,
      exited: once(child, "exit"),
      deliveries: new Set(),
      phase: undefined,
      killed: false,
    };
    this.#seats[seat] = client;
    let errorOutput = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      errorOutput += bytes;
    });
    child.once("exit", (code, killer) => {
      if (!client.killed) {
        const output = errorOutput.slice(0, 1500);
        this.failures.push(`client ${name} ended by itself (${killer ?? code}): ${output}`);
      }
      this.#changed();
    });
    child.on("message", (message: FromClient) => this.#receive(seat, client, message));
  }

  #receive(seat: number, client: Client, message: FromClient): void {
    switch (message.type) {
      case "request":
        this.#listener.onLedgerRequest(message, (balance) =>
          send(client, { type: "answer", id: message.id, balance }),
        );
        break;
      case "about-to-write":
        this.#onAboutToWrite?.({ seat, ttl: message.ttl });
        break;
      case "delivered":
        client.deliveries.delete(message.delivery);
        this.#listener.onDelivered(message.delivery);
        break;
      case "phase":
        client.phase = message.phase;
        this.#changed();
    }
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /** Resolves when `holds`, or when a client has failed. */
  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.failures.length === 0 && !holds()) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }
}

/** A killed client gets no messages any more. */
function send({ child }: Client, message: ToClient): void {
  if (child.connected) child.send(message, () => undefined);
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
