import type { Script } from "../../../src/redis/script.ts";
import { arrivalScript } from "../../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../../src/sync/internal/interval.lua.ts";
import { mailboxScript } from "../../../src/sync/internal/mailbox.lua.ts";
import { memberScript } from "../../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../../src/sync/internal/slot.lua.ts";
import { readMail } from "./mailboxes.ts";
import { type Request, requestOf } from "./request.ts";

// The scripts of synchronizers, whose arguments say what they do.

/** Says what a script does with its keys and arguments. */
export type Read = (keys: readonly string[], args: readonly string[]) => Request;

/** Each of these scripts replies first with the value, where it is done. */
function valueRequest(
  operation: Request["operation"],
  keys: readonly string[],
  value: string,
  more: Partial<Request> = {},
): Request {
  const isDone: Request["isDone"] = (reply) => Array.isArray(reply) && reply[0] === value;
  return requestOf(operation, keys, value, { ...more, isDone });
}

const readSlots: Read = ([limit, ...slots], [value = "", , , span]) => {
  const operation = span === "0" ? "keep" : "claim";
  const keys = span === "0" ? slots : slots.slice(0, Number(span));
  return valueRequest(operation, keys, value, { about: limit! });
};

/** What the scripts of synchronizers call it. */
const operations: Readonly<Record<string, Request["operation"]>> = {
  acquire: "claim",
  extend: "keep",
  release: "end",
};

const readMember: Read = ([key, tombstone, waiting], [operation = "", value = "", , id]) =>
  valueRequest(operations[operation]!, [key!], value, {
    tombstone,
    isMember: true,
    announces: operation === "acquire" && waiting && id ? { key: waiting, id } : undefined,
  });

const readTicket: Read = ([lock, , tombstone], [operation, value = ""]) =>
  valueRequest(operation === "acquire" ? "claim" : "end", [lock!], value, {
    // That of the ticket refuses no other value.
    tombstone: operation === "leave" ? undefined : tombstone,
  });

/** A call is announced as a generation without arrivals; with ttl 0 it is withdrawn. */
const readArrival: Read = (keys, [nonce = "", to = "", , ttl]) => {
  if (!/:(?:debounce|singleton):/.test(keys[0]!)) return valueRequest("peek", keys, nonce);
  const isDone: Request["isDone"] = (reply) => Array.isArray(reply) && reply[1] === to;
  return requestOf("announce", keys, to, { ttl: Number(ttl), isDone });
};

const readMailbox: Read = (keys, args) =>
  valueRequest("mail", keys.slice(0, 1), args[1]!, { mail: readMail(keys, args) });

/** Arrivals and announcements acquire nothing: they stay, or stand until a later one replaces them. */
export const synchronizers: readonly (readonly [Script, Read])[] = [
  [slotScript, readSlots],
  [memberScript, readMember],
  [arrivalScript, readArrival],
  [queueScript, readTicket],
  [mailboxScript, readMailbox],
  [
    intervalScript,
    ([key, , , tombstone], [value = "", operation = ""]) =>
      valueRequest(operations[operation]!, [key!], value, { tombstone }),
  ],
];
