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
}

/** The target of a command: a resource that is locked, or a key. */
export type Target = { readonly resource: string } | KeyTarget;

type Given = Pick<Call, "values" | "access">;

/** A resource, or the key that `--key` names. */
export async function targetOf(call: Call): Promise<Target> {
  const { argument, values } = call;
  if (values.key !== undefined) return keyTarget(call);
  const given = keyOptions.find((name) => values[name]?.toString());
  if (given) throw new UsageError(`--${given} needs --key`);
  return { resource: argument };
}

/**
 * The key that a command line names. A webhook's key also has the sender and a tag of the secret in its scope.
 *
 * @throws UsageError if options contradict each other
 */
export async function keyTarget(given: Given): Promise<KeyTarget> {
  const { values } = given;
  const { key = "", http, webhook, flight, handler } = values;
  const isRequest = http || webhook !== undefined;
  if (flight && isRequest)
    throw new UsageError("--flight is not for keys of requests: leave out the other option");
  if (handler !== undefined && !isRequest) throw new UsageError("--handler needs --http or --webhook");
  const scope = [...(await senderOf(given)), ...values.scope];
  const isList = values["scope-list"] || scope.length > 1;
  return {
    key,
    options: {
      kind: flight ? "flight" : isRequest ? "http" : "run",
      ...(scope.length > 0 && { scope: isList ? scope : scope[0]! }),
      ...(handler !== undefined && { handler }),
    },
  };
}

/** What the sender of a webhook has in its scope. Without it nothing would be found, which must not look as if nothing had run. */
async function senderOf({ values, access: { variables } }: Given): Promise<string[]> {
  const { webhook, "secret-env": name } = values;
  if (webhook === undefined && name === undefined) return [];
  // A secret on the command line would be in the shell's history, so that it is not repeated either.
  const secret = name && variables[name];
  if (webhook && secret) return [webhook, await secretTag(keyMaterialOf(webhook, secret))];
  throw new UsageError(
    "--webhook needs a sender and --secret-env, the name of a variable with the sender's secret, in the shell or in the file of --read-env, because a tag of the secret is in the name of the record. If you gave your provider a `name`, use that: --http --scope <name> --scope-list",
  );
}

/** A secret as its provider uses it: as text, or decoded. */
function keyMaterialOf(provider: string, secret: string): string | Uint8Array {
  if (provider === "discord") return Buffer.from(secret, "hex");
  if (provider === "sendgrid") return Buffer.from(secret.replace(/-----[^-]+-----/g, ""), "base64");
  if (provider === "standard-webhooks")
    return Buffer.from(secret.replace(/^(?:v1a?,)?wh(?:sec|pk)_/, ""), "base64");
  return secret;
}
