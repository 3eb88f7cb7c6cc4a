import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClientRecord, ClientSettings, FromClient, Phase, ToClient } from "./records.ts";

/** Who hears what clients send. */
export interface Listener {
  onQuestion(
    question: Extract<FromClient, { type: "question" }>,
    answer: (balance: number | null) => void,
  ): void;
  onDelivered(delivery: number): void;
  /** What a client was to deliver, and did not before it was killed. */
  onLost(deliveries: readonly number[]): void;
}

/** The client processes, by seat: when one is killed, another takes its seat. */
export interface Fleet {
  readonly size: number;
  /** What went wrong with processes that nobody killed. */
  readonly failures: readonly string[];
  /** Processes started so far. */
  readonly started: number;
  stop(seat: number): void;
  resume(seat: number): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(seat: number): Promise<void>;
  respawn(seat: number): Promise<void>;
  deliver(seat: number, delivery: number, event: string): void;
  /** Tells every client, and resolves when each is done with it, or one has failed. */
  reach(phase: Phase, command?: ToClient): Promise<void>;
  /** Resolves with the seat and the ttl of the next client that is about to write; null once `signal` aborts. */
  nextCheck(signal: AbortSignal): Promise<{ seat: number; ttl: number } | null>;
  /** What all clients, dead ones included, wrote down; each client's records in order. */
  records(): ClientRecord[][];
  close(): Promise<void>;
}

interface Client {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly deliveries: Set<number>;
  phase: Phase | undefined;
  killed: boolean;
}

/** Starts `size` clients from the bundle `program`, which log into `directory`. */
export async function startFleet(
  options: {
    readonly size: number;
    readonly program: string;
    readonly directory: string;
    readonly endpoints: ClientSettings["endpoints"];
    readonly random: () => number;
  },
  listener: Listener,
): Promise<Fleet> {
  const { size, program, directory, endpoints, random } = options;
  const seats: Client[] = [];
  const logFiles: string[] = [];
  const failures: string[] = [];
  const watchers = new Set<() => void>();
  let onCheck: ((check: { seat: number; ttl: number }) => void) | undefined;

  function changed(): void {
    for (const watcher of watchers) watcher();
  }

  function whenever(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      function look(): void {
        if (failures.length === 0 && !holds()) return;
        watchers.delete(look);
        resolve();
      }
      watchers.add(look);
      look();
    });
  }

  function spawn(seat: number): void {
    const name = `${seat}.${logFiles.length}`;
    const logFile = join(directory, `client-${name}.jsonl`);
    logFiles.push(logFile);
    const settings: ClientSettings = { name, seed: Math.floor(random() * 2 ** 31), logFile, endpoints };
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
    seats[seat] = client;
    let said = "";
    child.stderr!.on("data", (bytes: Buffer) => {
      said += bytes;
    });
    child.once("exit", (code, killer) => {
      if (!client.killed)
        failures.push(`client ${name} ended by itself (${killer ?? code}): ${said.slice(0, 1500)}`);
      changed();
    });
    child.on("message", (message: FromClient) => receive(seat, client, message));
  }

  function receive(seat: number, client: Client, message: FromClient): void {
    switch (message.type) {
      case "question":
        listener.onQuestion(message, (balance) => send(client, { type: "answer", id: message.id, balance }));
        break;
      case "checked":
        onCheck?.({ seat, ttl: message.ttl });
        break;
      case "delivered":
        client.deliveries.delete(message.delivery);
        listener.onDelivered(message.delivery);
        break;
      case "phase":
        client.phase = message.phase;
        changed();
    }
  }

  /** A client that has been killed hears nothing any more, and need not. */
  function send({ child }: Client, message: ToClient): void {
    if (child.connected) child.send(message, () => undefined);
  }

  async function kill(client: Client): Promise<void> {
    client.killed = true;
    client.child.kill("SIGKILL");
    await client.exited;
  }

  for (let seat = 0; seat < size; seat++) spawn(seat);
  await whenever(() => seats.every(({ phase }) => phase !== undefined));

  return {
    size,
    failures,
    get started() {
      return logFiles.length;
    },
    stop: (seat) => void seats[seat]!.child.kill("SIGSTOP"),
    resume: (seat) => void seats[seat]!.child.kill("SIGCONT"),
    async kill(seat) {
      const client = seats[seat]!;
      await kill(client);
      listener.onLost([...client.deliveries]);
      client.deliveries.clear();
    },
    async respawn(seat) {
      spawn(seat);
      await whenever(() => seats[seat]!.phase !== undefined);
    },
    deliver(seat, delivery, event) {
      const client = seats[seat]!;
      if (client.killed) return listener.onLost([delivery]);
      client.deliveries.add(delivery);
      send(client, { type: "deliver", delivery, event });
    },
    async reach(phase, command) {
      if (command) for (const client of seats) send(client, command);
      await whenever(() => seats.every((client) => client.phase === phase));
    },
    nextCheck(signal) {
      return new Promise((resolve) => {
        function end(check: { seat: number; ttl: number } | null): void {
          onCheck = undefined;
          signal.removeEventListener("abort", giveUp);
          resolve(check);
        }
        const giveUp = () => end(null);
        if (signal.aborted) return resolve(null);
        signal.addEventListener("abort", giveUp, { once: true });
        onCheck = (check) => end(check);
      });
    },
    records: () => logFiles.map(readRecords),
    async close() {
      await Promise.all(seats.map(kill));
    },
  };
}

/** A client that was killed may have left half a line at the end. */
function readRecords(path: string): ClientRecord[] {
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as ClientRecord);
}
