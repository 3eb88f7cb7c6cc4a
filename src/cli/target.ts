import { Buffer } from "node:buffer";
import type { KeyOptions } from "../idempotency/index.ts";
import { secretTag } from "../webhooks/index.ts";
import type { Call } from "./access.ts";
import { UsageError } from "./environment.ts";
import { keyOptions } from "./options.ts";

/** A key of idempotent runs. */
export interface KeyTarget {
  readonly key: string;
  readonly options: Pick<KeyOptions, "scope" | "kind" | "handler">;
  /** Which options may be missing or wrong if it has no record. */
  readonly elsewhere: string;
}

/** The target of a command: a resource that is locked, or a key. */
export type Target = { readonly resource: string } | KeyTarget;

type Given = Pick<Call, "values" | "access">;

/** A resource, or the key that `--key` names. */
export async function targetOf(call: Call): Promise<Target> {
  const { argument, values } = call;
  if (values.key !== undefined) return keyTarget(call);
  const given = keyOptions.find((name) => (name === "scope" ? values.scope.length > 0 : values[name]));
  if (given) throw new UsageError(`--${given} needs --key`);
  return { resource: argument };
}

/**
 * The key that a command line names. A webhook's key also has the sender and a tag of the secret in its scope.
 *
 * @throws UsageError if options contradict each other
 */
export async function keyTarget(given: Given): Promise<KeyTarget> {
  check(given);
  const { values, access } = given;
  const { key = "", webhook, flight, handler, "secret-env": variable } = values;
  const secret = variable && access.variables[variable];
  const sender = webhook && secret ? [webhook, await secretTag(keyMaterialOf(webhook, secret))] : [];
  const scope = [...sender, ...values.scope];
  const isList = values["scope-list"] || scope.length > 1;
  const isRequest = values.http || webhook !== undefined;
  const missing = [
    webhook && "--webhook and --secret-env",
    isRequest && handler === undefined && "--handler, the option `handler` of the route or else its pattern",
    values.scope.length === 0 && "--scope, if there is one in your code",
    isRequest || flight || "--http, if it is the key of a request",
    isRequest || flight || "--webhook, if it is the id of a delivery",
  ].filter((each) => typeof each === "string");
  const rest = missing.length > 0 ? `check ${missing.join("; ")}` : "compare the options with your code";
  return {
    key,
    options: {
      kind: flight ? "flight" : isRequest ? "http" : "run",
      ...(scope.length > 0 && { scope: isList ? scope : scope[0]! }),
      ...(handler !== undefined && { handler }),
    },
    elsewhere: `If you expected one, ${rest}`,
  };
}

/** @throws UsageError if options contradict each other */
function check({ values, access: { variables } }: Given): void {
  const { scope, webhook, handler, http, flight, "secret-env": secret } = values;
  const isRequest = http || webhook !== undefined;
  const mistakes: readonly (readonly [isMade: unknown, text: string])[] = [
    [flight && isRequest, "--flight is not for keys of requests: leave out the other option"],
    [handler !== undefined && !isRequest, "--handler needs --http or --webhook"],
    [scope.includes("") || webhook === "", "a scope must not be empty"],
    [secret !== undefined && webhook === undefined, "--secret-env needs --webhook"],
    // Nothing would be found without the tag, which must not look as if nothing had run.
    [
      webhook !== undefined && secret === undefined,
      `--webhook needs --secret-env, the variable with the sender's secret, because a tag of it is in the name of the record. If you gave your provider a \`name\`, use it: --http --scope ${webhook} --scope-list`,
    ],
    // A secret on the command line would be in the shell's history.
    [
      secret !== undefined && !variables[secret],
      "--secret-env takes the name of a variable that has the secret, in the shell or in the file of --read-env",
    ],
  ];
  const mistake = mistakes.find(([isMade]) => isMade);
  if (mistake) throw new UsageError(mistake[1]);
}

/** A secret as its provider uses it: as text, or decoded. */
function keyMaterialOf(provider: string, secret: string): string | Uint8Array {
  if (provider === "discord") return Buffer.from(secret, "hex");
  if (provider === "sendgrid") return Buffer.from(secret.replace(/-----[^-]+-----/g, ""), "base64");
  if (provider === "standard-webhooks")
    return Buffer.from(secret.replace(/^(?:v1a?,)?wh(?:sec|pk)_/, ""), "base64");
  return secret;
}
