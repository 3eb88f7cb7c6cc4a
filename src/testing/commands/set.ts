import type { Commands } from "./command.ts";

/** Commands on sets. */
export const setCommands: Commands = {
  SADD: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...members]) {
      const set = space.collection(key!, "set");
      const before = set.size;
      for (const member of members) set.add(member);
      return set.size - before;
    },
  },
  SREM: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...members]) {
      const set = space.value(key!, "set");
      const removed = members.filter((member) => set?.delete(member)).length;
      space.tidy(key!);
      return removed;
    },
  },
  SMEMBERS: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => [...(space.value(key!, "set") ?? [])] },
  SCARD: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "set")?.size ?? 0 },
  SISMEMBER: {
    arity: 3,
    keys: [0, 0, 1],
    run: (space, [key, member]) => (space.value(key!, "set")?.has(member!) ? 1 : 0),
  },
  SMISMEMBER: {
    arity: -3,
    keys: [0, 0, 1],
    run(space, [key, ...members]) {
      const set = space.value(key!, "set");
      return members.map((member) => (set?.has(member) ? 1 : 0));
    },
  },
};
