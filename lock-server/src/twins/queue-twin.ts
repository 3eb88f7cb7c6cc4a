import { type Found, type Twin, timeOf, whole } from "./twin.ts";

/** The twin of `queueScript`, which says what it does. */
export const queueTwin: Twin = {
  sha: "b492e52daa5cf948cb3fc1658fdc671cf019f18e",
  run({ call, keys, args }) {
    const [op, value, ticket, ms, expiry, channel] = args as [
      string,
      string,
      string,
      string,
      string,
      string?,
    ];
    const [lock, queueKey, tombstone] = keys as [string, string, string?];
    const [holder, queued, ...tombstones] = call("MGET", ...keys) as Found;
    const queue = queued ?? "";
    const [isOwn, isFree] = [holder === value, holder === null];
    const done = [isOwn ? value : 0, 0];
    const acquire = () => {
      call("SET", lock, value, "PX", ms, "GET");
      return [value, 0];
    };
    if (op === "acquire") {
      if (isOwn || tombstones.some((found) => found !== null)) return done;
      if (isFree && queue === "") return acquire();
    } else {
      if (isOwn) call("DEL", lock);
      if (tombstone !== undefined) call("SET", tombstone, 1, "PX", ms);
      if (op === "rollBack" && (!isOwn || tombstones[1] !== null)) return done;
      if (op === "leave" && queue === "") return done;
    }
    const now = timeOf(call);
    const all = ticketsOf(queue);
    const live = all.filter(({ name, ends }) => name !== ticket && ends > now);
    const ahead = live.filter(({ name }) => name < ticket).length;
    const [first] = live.map(({ name }) => name).sort();
    const acquires = op === "acquire" && isFree && ahead === 0;
    if (expiry !== "0" && !acquires) {
      const own = all.filter(({ name }) => name === ticket).map(({ ends }) => ends);
      live.push({ name: ticket, ends: Math.max(now + whole(expiry), ...own) });
    }
    const rest = live.map(({ name, ends }) => `${name}:${ends}`).join(",");
    if (rest === "" && queue !== "") call("DEL", queueKey);
    else if (rest !== queue) {
      call("SET", queueKey, rest, "PX", Math.max(...live.map(({ ends }) => ends)) - now, "GET");
    }
    if (acquires) return acquire();
    if (op === "acquire") return [0, ahead];
    if (channel !== undefined && first !== undefined && (isFree || isOwn)) call("PUBLISH", channel, first);
    return done;
  },
};

function ticketsOf(queue: string): { readonly name: string; readonly ends: number }[] {
  const found = queue.matchAll(/([A-Za-z0-9]+):(\d+)/g);
  return [...found].map(([, name, ends]) => ({ name: name!, ends: whole(ends!) }));
}
