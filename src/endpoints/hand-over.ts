import { EndpointError } from "../errors/errors.ts";
import { onAbort } from "../runtime/abort.ts";
import { type Command, type Endpoint, unsentError } from "./endpoint.ts";
import { Room } from "./room.ts";

// A client of another package executes all that it was given, however late, and the application's own commands wait behind
// that. So it is given no more than it answers in time.

/** Why a command is not handed over. */
const sentFirst = "others were sent first";

/** By client: all endpoints over a client share its queue. */
const rooms = new WeakMap<object, Room>();

/** The room for commands that a client has. */
export function roomOf(client: object): Room {
  const room = rooms.get(client) ?? new Room();
  rooms.set(client, room);
  return room;
}

/** How commands are given to a client. */
export interface ClientWay {
  readonly room: Room;
  /** Resolves when the client may be connected, and rejects with the reason if it is not. Undefined: it is connected. */
  whenReady?(signal: AbortSignal): Promise<void> | undefined;
  call(command: readonly string[], signal: AbortSignal): Promise<unknown>;
  /** What an error of the client means. The client's error must not be the cause, because it may quote the command. */
  errorOf(error: unknown, command: Command): EndpointError;
}

/** A function that sends commands through a client in their order, as soon as it is connected and there is room for them. */
export function sendThrough(name: string, { room, whenReady, call, errorOf }: ClientWay): Endpoint["send"] {
  const notSent = (reason: string) => unsentError(name, `not sent in time: ${reason}`);
  return async (command, signal, onSent) => {
    if (!room.take() && (signal.aborted || !(await room.wait(true, (giveUp) => onAbort(signal, giveUp)))))
      throw notSent(sentFirst);
    let isSent = false;
    try {
      for (let wait = whenReady?.(signal); wait; wait = whenReady?.(signal)) await wait;
      if (signal.aborted) throw new Error(sentFirst);
      isSent = true;
      onSent?.(1);
      // Not given up at the timeout: a command that is executed late must be known, so that it can be rolled back.
      return await call(command.map(String), signal);
    } catch (error) {
      if (isSent) throw errorOf(error, command);
      const { message } = error as Error;
      throw signal.aborted ? notSent(message) : new EndpointError(name, "network", message, { unsent: true });
    } finally {
      // If its caller has given up, it was in the client's queue until now.
      room.leave(isSent ? (signal.aborted ? "never" : "early") : undefined);
    }
  };
}
