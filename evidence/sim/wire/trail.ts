import type { Reply } from "../../../local/src/memory/index.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { Snapshot } from "./standing.ts";

/** One execution of a request. */
export interface Execution {
  readonly granted: boolean;
  readonly reply: Reply;
  /** Which execution of the same message it is; the first is 0. */
  readonly copy: number;
  /** Whether the value stood there before, and stands there now, of requests that extend or release it. */
  readonly stood: boolean;
  readonly stands: boolean;
  /** What a request to inspect or free met. */
  readonly found: Snapshot | undefined;
}

/** What one execution of a request to inspect met. */
export interface Look extends Snapshot {
  readonly process: Process;
  readonly server: Server;
  readonly key: string;
  readonly at: number;
}

/** All requests of one nonce from one client to one endpoint. */
export class RequestTrail {
  readonly process: Process;
  readonly server: Server;
  /** Requests sent. */
  acquires = 0;
  fenceRaises = 0;
  extensions = 0;
  releases = 0;
  /** A release was executed. Its order matters only in relation to acquires. */
  releaseExecuted = false;
  /** An acquire was executed and left the value there, and no later one was refused because it is lost. */
  acquireExecuted = false;
  /** The same, and no release was executed since. */
  standing = false;
  /** The client knows that the value stands there, or will get the answer that says so, and has sent no release since. */
  releaseDue = false;
  /** Until when the client waits for the answer to its acquire; undefined: it has sent none. */
  answerAwaitedUntil: number | undefined;
  /** The last answer to an acquire, or to what puts it in the place of another nonce; undefined: the client got none. */
  acquireGranted: boolean | undefined;
  /** That answer was a refusal for a lock that the run needs. */
  refusedByLock = false;
  /** A release was answered with "freed", and with "gone". */
  answeredFreed = false;
  answeredGone = false;
  /** An operator's request to free was answered. */
  answeredFree = false;
  /** The keys that its releases have left, to refuse what comes late. */
  readonly tombstones = new Set<string>();
  /** A release removed the value, and a release did not find it, whatever was replied. */
  freed = false;
  foundGone = false;
  /** A request to extend or verify was answered with "gone". */
  answeredLost = false;
  /** When a release that leaves a tombstone removed the value: another execution of it says the same. */
  freedAt = Number.NEGATIVE_INFINITY;
  /** When a request to extend or verify last found the value; undefined: never. */
  stoodAt: number | undefined;
  /** When the endpoint executed an extension for the first time. */
  firstExtended: number | undefined;
  /** The holder put the value back where it was lost. */
  restored = false;
  /** It was put in the place of another nonce: the lock was handed over. */
  succeeds = false;
  /** A completed record replaced the pending one, or was sent to do so. */
  completed = false;

  /** Whether the holder knows that nothing stands there, and asks nothing: its claim was refused, or never sent. */
  get isOwedNothing(): boolean {
    return this.releases === 0 && (this.acquires === 0 || this.acquireGranted === false);
  }

  constructor(process: Process, server: Server) {
    this.process = process;
    this.server = server;
  }
}
