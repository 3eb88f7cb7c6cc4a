import type { Commands } from "./command.ts";
import { atLeastOne } from "./options.ts";
import { syntaxError } from "./reply.ts";

/** How many bytes each string, number and collection counts for besides its own. */
const overhead = 16;

/** Subcommands of MEMORY. */
export const memorySubcommands: Commands = {
  // MEMORY USAGE key [SAMPLES count]: a rough figure, of which Redis says as well that it depends on the implementation.
  USAGE: {
    arity: -3,
    keys: [1, 1, 1],
    run(space, [, key, option, count, ...more]) {
      if (option !== undefined) {
        if (option.toUpperCase() !== "SAMPLES" || count === undefined || more.length > 0) throw syntaxError();
        if (count !== "0") atLeastOne("samples", count);
      }
      const entry = space.entry(key!);
      return entry ? bytesOf(key) + bytesOf(entry.value) : null;
    },
  },
};

function bytesOf(value: unknown): number {
  if (typeof value === "string") return overhead + value.length;
  if (typeof value !== "object" || value === null) return overhead;
  const items = value instanceof Map || value instanceof Set ? [...value] : Object.values(value);
  return items.reduce<number>((sum, item) => sum + bytesOf(item), overhead);
}
