import { type Commands, wrongNumberOfArguments } from "./command.ts";
import { Status } from "./reply.ts";

/** Commands that access no data. */
export const serverCommands: Commands = {
  PING: {
    arity: -1,
    run(_space, [message, ...more]) {
      if (more.length > 0) throw wrongNumberOfArguments("ping");
      return message ?? new Status("PONG");
    },
  },
  ECHO: { arity: 2, run: (_space, [message]) => message! },
  TIME: {
    arity: 1,
    run: (space) => [String(Math.floor(space.now / 1000)), String((space.now % 1000) * 1000)],
  },
};
