import { Buffer } from "node:buffer";
import { nearest } from "../check/check.ts";
import { Idempotency, inspectKey, type KeyOptions } from "../idempotency/index.ts";
import { QuorumError, type Redlock } from "../index.ts";
import * as webhooks from "../webhooks/index.ts";
import type { Access, Call } from "./access.ts";
import { UsageError } from "./environment.ts";
import { keyOptions, type Values } from "./options.ts";

/** A key of idempotent runs. */
export interface KeyTarget {
  readonly key: string;
  readonly options: Pick<KeyOptions, "scope" | "kind" | "handler">;
  /** Under which other name its record may be. */
  readonly elsewhere: string;
  /** The options under which a record was found, if they were not given. */
  readonly found?: string;
}

/** The target of a command: a resource that is locked, or a key. */
export type Target = { readonly resource: string } | KeyTarget;

/** What `inspect` and `watch` are called with: a resource, or the key that `--key` names. */
export async function targetOf(call: Call, redlock: Redlock): Promise<Target> {
  const { argument, values, access } = call;
  if (values.key !== undefined) return keyTarget(values.key, values, access.variables, redlock);
  const given = keyOptions.find((name) => (name === "scope" ? values.scope.length > 0 : values[name]));
  if (given) throw new UsageError(`--${given} needs --key`);
  return { resource: argument };
}

type Variables = Access["variables"];

/** Where the record of a key may be. `said`: the options that name it. */
interface Guess {
  readonly options: KeyTarget["options"];
  readonly said: string;
}

/**
 * The key that a command line names. A webhook's key also has a tag of its secret, and the name of its route: if one of them
 * is not given, the record is looked for under the likely ones.
 *
 * @throws UsageError if options contradict each other, or several records have the key
 */
export async function keyTarget(
  key: string,
  values: Values,
  variables: Variables,
  redlock: Redlock,
): Promise<KeyTarget> {
  check(values, variables);
  const { webhook, http, flight, scope, handler, "scope-list": isNamedList } = values;
  if (webhook === undefined) {
    const kind = flight ? "flight" : http ? "http" : "run";
    const isList = isNamedList || scope.length > 1;
    const scoped = scope.length > 0 && { scope: isList ? scope : scope[0]! };
    const options = { kind, ...scoped, ...(handler !== undefined && { handler }) } as const;
    return { key, options, elsewhere: elsewhereOf(values) };
  }
  const [exact, ...others] = await guessesOf(webhook, values, variables);
  const stored = await storedOf([exact!], redlock);
  const found = stored.length > 0 ? stored : await storedOf(others, redlock);
  if (found.length > 1) {
    throw new UsageError(
      `several records have this key; add: ${found.map(({ said }) => said).join(", or: ")}`,
    );
  }
  if (found.length === 0) {
    mustBeSender(webhook);
    mustHaveSecret(webhook, values, variables);
  }
  const { options, said } = found[0] ?? exact!;
  return {
    key,
    options,
    elsewhere: elsewhereOf(values, others.length),
    ...(said && { found: `by ${said}` }),
  };

  /** The guesses that have a record. If too few endpoints answer, the look that follows says so. */
  async function storedOf(guesses: readonly Guess[], client: Redlock): Promise<Guess[]> {
    const idempotency = new Idempotency(client);
    const states = await Promise.all(
      guesses.map((guess) => inspectKey(idempotency, key, guess.options).catch(undefinedIfUnknown)),
    );
    return guesses.filter((_, index) => {
      const { state = "none", attempts = 0 } = states[index] ?? {};
      return state !== "none" || attempts > 0;
    });
  }
}

function undefinedIfUnknown(error: unknown): undefined {
  if (!(error instanceof QuorumError)) throw error;
}

/** @throws UsageError if options contradict each other */
function check(values: Values, variables: Variables): void {
  const { scope, webhook, handler, http, flight, "scope-list": isNamedList, "secret-env": secret } = values;
  const isHttp = http || webhook !== undefined;
  if (flight && isHttp)
    throw new UsageError("--flight is not for keys of requests: leave out the other option");
  if (handler !== undefined && !isHttp) throw new UsageError("--handler needs --http or --webhook");
  if (scope.includes("") || webhook === "") throw new UsageError("a scope must not be empty");
  if (isNamedList && scope.length === 0 && !webhook) throw new UsageError("--scope-list needs --scope");
  if (secret === undefined) return;
  if (webhook === undefined) throw new UsageError("--secret-env needs --webhook");
  // A secret on the command line would be in the shell's history.
  if (!variables[secret]) {
    throw new UsageError(
      "--secret-env takes the name of a variable that has the secret, in the shell or in the file of --read-env",
    );
  }
}

/** Routes that receive the webhooks of a sender in many programs. */
const routes = [
  "/webhooks/x",
  "/webhook/x",
  "/api/webhooks/x",
  "/api/webhook/x",
  "/x",
  "/webhooks",
  "/webhook",
];

/** The part of a variable's name that stands for a sender. */
const markOf = (sender: string) => sender.toUpperCase().replaceAll("-", "_");

/** The variables that look like the secret of a sender. */
function likelySecrets(sender: string, variables: Variables): string[] {
  const names = Object.keys(variables).filter((name) => variables[name]);
  return names.filter((name) => name.includes(markOf(sender)) && /SECRET|KEY/.test(name));
}

/** The senders that this package knows, as they are written in a scope: `lemon-squeezy`. */
const senders = Object.keys(webhooks)
  .filter((name) => !/Challenge$|Error$|^secretTag$/.test(name))
  .map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));

/**
 * A typo finds nothing, which must not look as if nothing had run.
 *
 * @throws UsageError if it is almost a sender. It may be a provider's `name` nevertheless
 */
function mustBeSender(given: string): void {
  const near = senders.includes(given) ? undefined : nearest(given, senders);
  if (near === undefined) return;
  throw new UsageError(
    `nothing is stored under ${given}, which is no sender of this package; did you mean ${near}? If it is the \`name\` of your own provider: --http --scope-list --scope ${given} instead of --webhook`,
  );
}

/**
 * Without the secret, the record of a delivery has an unknown name, so nobody can say that there is none.
 *
 * @throws UsageError if the secret of a sender that has one is not known
 */
function mustHaveSecret(sender: string, { "secret-env": secret }: Values, variables: Variables): void {
  // Another name is a provider's `name`. Its keys have no tag.
  const hasTag = senders.includes(sender);
  if (!hasTag || secret !== undefined || likelySecrets(sender, variables).length > 0) return;
  throw new UsageError(
    `to find a delivery from ${sender}, its secret is needed, because a tag of it is in the name of the record; no variable has ${markOf(sender)} and SECRET in its name: set one in the shell or in the file of --read-env, or name the variable with --secret-env`,
  );
}

/** The possible places of a delivery's record. The first is the one that the given options name. */
async function guessesOf(sender: string, values: Values, variables: Variables): Promise<Guess[]> {
  const { handler, scope, "secret-env": secret } = values;
  const likely = likelySecrets(sender, variables);
  const handlers =
    handler === undefined ? [undefined, ...routes.map((x) => x.replace("x", sender))] : [handler];
  const guesses: Guess[] = [];
  for (const name of secret === undefined ? [undefined, ...likely] : [secret]) {
    const material = name === undefined ? undefined : variables[name];
    const tag = material ? [await webhooks.secretTag(keyMaterialOf(sender, material))] : [];
    for (const route of handlers) {
      const options = { kind: "http", scope: [sender, ...tag, ...scope] } as const;
      const added = [name !== secret && `--secret-env ${name}`, route !== handler && `--handler ${route}`];
      const said = added.filter(Boolean).join(" ");
      guesses.push({ options: route === undefined ? options : { ...options, handler: route }, said });
    }
  }
  return guesses;
}

/** The message if nothing is found. `tried`: under how many likely names the record was looked for. */
function elsewhereOf(
  { webhook, http, flight, scope, handler, "secret-env": secret }: Values,
  tried: number = 0,
): string {
  const isRequest = http || webhook !== undefined;
  const missing = [
    webhook && secret === undefined && "--secret-env, the variable with the sender's secret",
    isRequest && handler === undefined && "--handler, the option `handler` of the route or else its pattern",
    scope.length === 0 && "--scope, if there is one in your code",
    isRequest || flight || "--http, if it is the key of a request",
    isRequest || flight || "--webhook, if it is the id of a delivery",
  ].filter((each) => typeof each === "string");
  const also = tried > 0 ? `Nor is there one under ${tried} likely names. ` : "";
  const rest = missing.length > 0 ? `check ${missing.join("; ")}` : "compare the options with your code";
  return `${also}If you expected one, ${rest}`;
}

/** A secret as its provider uses it: as text, or decoded. */
function keyMaterialOf(provider: string, secret: string): string | Uint8Array {
  if (provider === "discord") return Buffer.from(secret, "hex");
  if (provider === "sendgrid") return Buffer.from(secret.replace(/-----[^-]+-----/g, ""), "base64");
  if (provider === "standard-webhooks")
    return Buffer.from(secret.replace(/^(?:v1a?,)?wh(?:sec|pk)_/, ""), "base64");
  return secret;
}
