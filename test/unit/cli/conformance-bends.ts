import { type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import type { Bend, Execute, Words } from "./conformance-bent.ts";

// Ways in which a server can be bent.

type Command = NonNullable<Bend["command"]>;

export const refuse = (message: string): never => {
  throw new ReplyError(message);
};

/** Refuses the commands of which something is true. */
export const refusing = (pattern: RegExp, message = "ERR syntax error"): Bend => ({
  command: (words, execute) => (pattern.test(words.join(" ")) ? refuse(message) : execute(words)),
});

/** Does something else with the commands of one form, `SET … NX PX`, or with all. */
export const instead = (form: RegExp, other: Command): Bend => ({
  command: (words, execute) => (form.test(formOf(words)) ? other(words, execute) : execute(words)),
});

/** The words of a command that are in capital letters. */
const formOf = (words: Words) => words.filter((word) => /^[A-Z]+$/.test(word)).join(" ");

export const set = {
  any: /^SET/,
  nx: /^SET NX PX/,
  nxGet: /^SET NX GET/,
  ifeq: /^SET IFEQ/,
};

/** Words without some that follow on another. */
export function without(words: Words, option: string, count: number): Words {
  const at = words.indexOf(option);
  return at < 0 ? words : [...words.slice(0, at), ...words.slice(at + count)];
}

/** Gives each SET of a form another ttl. */
export const ttl = (form: RegExp, change: (ms: number) => number): Bend =>
  instead(form, (words, execute) => {
    const at = words.indexOf("PX") + 1;
    return execute(
      words.map((word, index) => (index === at && at > 0 ? String(change(Number(word))) : word)),
    );
  });

/** Executes a command, and answers something else. */
export const answering = (form: RegExp, answer: (reply: Reply, words: Words) => Reply): Bend =>
  instead(form, (words, execute) => answer(execute(words), words));

/** Changes every value of a SET. */
export const values = (change: (value: string) => string): Bend =>
  instead(set.any, (words, execute) =>
    execute(words.map((word, index) => (index === 2 ? change(word) : word))),
  );

/** Changes all texts of a reply. */
export function deep(reply: Reply, change: (item: string | number | null) => Reply): Reply {
  return reply !== null && typeof reply === "object"
    ? reply.map((item) => deep(item, change))
    : change(reply as string | number | null);
}

/** Does something more to the lock's key when a script, sent as text, does one of these operations: before or after it. */
export const scripts = (operations: RegExp, before: Alter | undefined, after?: Alter): Bend =>
  instead(/^EVAL\b/, (words, execute) => {
    const isMeant = words.some((word) => operations.test(word));
    if (isMeant) before?.(words[3]!, execute);
    const reply = execute(words);
    if (isMeant) after?.(words[3]!, execute);
    return reply;
  });

type Alter = (key: string, execute: Execute) => void;

/** Answers for a script with something else in one place of its reply. */
export const inReply = (place: number, change: (item: number) => Reply): Bend =>
  answering(/^EVAL\b/, (reply) =>
    Array.isArray(reply)
      ? reply.map((item, index) => (index === place && Number(item) > 0 ? change(Number(item)) : item))
      : reply,
  );
