import { Buffer } from "node:buffer";
import { nearest } from "../check/check.ts";
import { Idempotency, inspectKey, type KeyOptions } from "../idempotency/index.ts";
import type { Redlock } from "../index.ts";
import * as webhooks from "../webhooks/index.ts";
import { type Access, type Call, quorumError } from "./access.ts";
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

/** What `inspect` is called with: a resource, or the key that `--key` names. */
export async function targetOf(call: Call, redlock: Redlock): Promise<Target> {
  const { argument, values } = call;
  if (values.key !== undefined) return keyTarget(call, redlock);
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
  { values, access: { variables } }: Pick<Call, "values" | "access">,
  redlock: Redlock,
): Promise<KeyTarget> {
  check(values, variables);
  const { key = "", webhook } = values;
  if (webhook === undefined) return { key, options: optionsOf(values), elsewhere: elsewhereOf(values) };
  const [exact, ...others] = await guessesOf(webhook, values, variables);
  const idempotency = new Idempotency(redlock);
  /** Those that have a record. If too few endpoints answer, the look that follows says so. */
  const storedOf = async (guesses: readonly Guess[]) => {
    const looks = guesses.map(({ options }) => inspectKey(idempotency, key, options).catch(quorumError));
    const found = await Promise.all(looks);
    return guesses.filter((_, index) => {
      const look = found[index]!;
      return "state" in look && (look.state !== "none" || look.attempts > 0);
    });
  };
  const stored = await storedOf([exact!]);
  const found = stored.length > 0 ? stored : await storedOf(others);
  if (found.length > 1) {
    throw new UsageError(
      `several records have this key; add: ${found.map(({ said }) => said).join(", or: ")}`,
    );
  }
  if (found.length === 0) mayBeMissing(webhook, values, variables);
  const { options, said } = found[0] ?? exact!;
  const elsewhere = elsewhereOf(values, others.length);
  return { key, options, elsewhere, ...(said && { found: `by ${said}` }) };
}

function optionsOf({
  http,
  flight,
  scope,
  handler,
  "scope-list": isNamedList,
}: Values): KeyTarget["options"] {
  const isList = isNamedList || scope.length > 1;
  return {
    kind: flight ? "flight" : http ? "http" : "run",
    ...(scope.length > 0 && { scope: isList ? scope : scope[0]! }),
    ...(handler !== undefined && { handler }),
  };
}

/** @throws UsageError if options contradict each other */
function check(values: Values, variables: Variables): void {
  const { scope, webhook, handler, http, flight, "scope-list": isNamedList, "secret-env": secret } = values;
  const isHttp = http || webhook !== undefined;
  const hasSecret = secret !== undefined;
  const mistakes: readonly (readonly [isMade: boolean, text: string])[] = [
    [flight && isHttp, "--flight is not for keys of requests: leave out the other option"],
    [handler !== undefined && !isHttp, "--handler needs --http or --webhook"],
    [scope.includes("") || webhook === "", "a scope must not be empty"],
    [isNamedList && scope.length === 0 && !webhook, "--scope-list needs --scope"],
    [hasSecret && webhook === undefined, "--secret-env needs --webhook"],
    // A secret on the command line would be in the shell's history.
    [
      hasSecret && !variables[secret],
      "--secret-env takes the name of a variable that has the secret, in the shell or in the file of --read-env",
    ],
  ];
  const mistake = mistakes.find(([isMade]) => isMade);
  if (mistake) throw new UsageError(mistake[1]);
}

/** Routes that receive the webhooks of a sender in many programs. */
const routes = "/webhooks/x /webhook/x /api/webhooks/x /api/webhook/x /x /webhooks /webhook".split(" ");

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
 * Nothing is found, which must not look as if nothing had run.
 *
 * @throws UsageError if a sender has a typo, or a sender's secret is not known, so that its record has an unknown name
 */
function mayBeMissing(sender: string, { "secret-env": secret }: Values, variables: Variables): void {
  const isKnown = senders.includes(sender);
  const near = isKnown ? undefined : nearest(sender, senders);
  // It may be a provider's `name` nevertheless. Its keys have no tag.
  if (near !== undefined) {
    throw new UsageError(
      `nothing is stored under ${sender}, which is no sender of this package; did you mean ${near}? If it is the \`name\` of your own provider: --http --scope-list --scope ${sender} instead of --webhook`,
    );
  }
  if (isKnown && secret === undefined && likelySecrets(sender, variables).length === 0) {
    throw new UsageError(
      `to find a delivery from ${sender}, its secret is needed, because a tag of it is in the name of the record; no variable has ${markOf(sender)} and SECRET in its name: set one in the shell or in the file of --read-env, or name the variable with --secret-env`,
    );
  }
}

/** The possible places of a delivery's record. The first is the one that the given options name. */
async function guessesOf(sender: string, values: Values, variables: Variables): Promise<Guess[]> {
  const { handler, scope, "secret-env": secret } = values;
  const likely = routes.map((route) => route.replace("x", sender));
  const handlers = handler === undefined ? [undefined, ...likely] : [handler];
  const names = secret === undefined ? [undefined, ...likelySecrets(sender, variables)] : [secret];
  const guesses = names.map(async (name) => {
    const material = name && variables[name];
    const tag = material ? [await webhooks.secretTag(keyMaterialOf(sender, material))] : [];
    return handlers.map((route): Guess => {
      const options = { kind: "http", scope: [sender, ...tag, ...scope] } as const;
      const added = [name !== secret && `--secret-env ${name}`, route !== handler && `--handler ${route}`];
      const said = added.filter(Boolean).join(" ");
      return { options: route === undefined ? options : { ...options, handler: route }, said };
    });
  });
  return (await Promise.all(guesses)).flat();
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
