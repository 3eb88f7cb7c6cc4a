import { type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import type { Bend, Words } from "./conformance-bent.ts";

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
  command: (words, execute, later) =>
    form.test(formOf(words)) ? other(words, execute, later) : execute(words),
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

/** Answers as an honest server, and then takes back what it has stored. */
export const undoing = (form: RegExp, isMeant: (words: Words) => boolean = () => true): Bend =>
  instead(form, (words, execute) => {
    const keys = words[0] === "SET" ? [words[1]!] : words.slice(3, 3 + Number(words[2]));
    const before = keys.map((key) => execute(["GET", key]));
    const reply = execute(words);
    if (!isMeant(words)) return reply;
    for (const [index, key] of keys.entries()) {
      execute(before[index] === null ? ["DEL", key] : ["SET", key, String(before[index])]);
    }
    return reply;
  });

/** Changes every key, or every value of a SET. */
export const keys = (change: (key: string) => string): Bend =>
  instead(/^(?!PUBLISH)/, (words, execute) =>
    execute(words.map((word) => (word.startsWith("p:") ? change(word) : word))),
  );
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

/** Runs scripts that are written in another way. EVALSHA runs the right ones. */
export const scripts = (change: (source: string) => string): Bend =>
  instead(/^EVAL\b/, (words, execute) => {
    const [name, source, ...rest] = words;
    execute(["SCRIPT", "LOAD", source!]);
    return execute([name!, change(source!), ...rest]);
  });
export const script = (text: string, other: string): Bend =>
  scripts((source) => source.replaceAll(text, other));
