import { EndpointError } from "../errors/errors.ts";
import { onAbort } from "../runtime/abort.ts";
import { type Command, type Endpoint, unsentError } from "./endpoint.ts";
import { Room } from "./room.ts";

// A client executes every command that it was given, however late, and the application's own commands wait behind them.
// So it gets no more than it answers in time.

const sentFirst = "others were sent first";

/** All endpoints over a client share its queue. */
const rooms = new WeakMap<object, Room>();

export function roomOf(client: object): Room {
  const room = rooms.get(client) ?? new Room();
  rooms.set(client, room);
  return room;
}

export interface ClientWay {
  readonly room: Room;
  /** Undefined: it is connected. */
  whenReady?(signal: AbortSignal): Promise<void> | undefined;
  call(command: readonly string[], signal: AbortSignal): Promise<unknown>;
  /** The client's error must not be the cause, because it may quote the command. */
  errorOf(error: unknown, command: Command): EndpointError;
}

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
      // A command that is executed late must be rolled back.
      return await call(command.map(String), signal);
    } catch (error) {
      if (isSent) throw errorOf(error, command);
      const { message } = error as Error;
      throw signal.aborted ? notSent(message) : new EndpointError(name, "network", message, { unsent: true });
    } finally {
      room.leave(isSent ? (signal.aborted ? "never" : "early") : undefined);
    }
  };
}
