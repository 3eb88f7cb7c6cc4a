import { Buffer } from "node:buffer";
import type { KeyOptions } from "../idempotency/index.ts";
import { secretTag } from "../webhooks/index.ts";
import type { Access } from "./access.ts";
import { UsageError } from "./environment.ts";
import { keyOptions, type Values } from "./options.ts";

/** A key of idempotent runs. */
export interface KeyTarget {
  readonly key: string;
  readonly options: Pick<KeyOptions, "scope" | "kind" | "handler">;
}

/** What a command looks at: a resource that is locked, or a key. */
export type Target = { readonly resource: string } | KeyTarget;

/** The one argument of `inspect` and `watch`, a resource, or what `--key` names. */
export async function targetOf(
  argument: string,
  values: Values,
  variables: Access["variables"],
): Promise<Target> {
  if (values.key !== undefined) return keyTarget(values.key, values, variables);
  const given = keyOptions.find((name) => (name === "scope" ? values.scope.length > 0 : values[name]));
  if (given) throw new UsageError(`--${given} needs --key`);
  return { resource: argument };
}

/** The key that a command line names. `variables` has the secret that `--secret-env` names. */
export async function keyTarget(
  key: string,
  values: Values,
  variables: Access["variables"],
): Promise<KeyTarget> {
  const { scope: names, webhook, handler, http, flight, "scope-list": isNamedList } = values;
  const tags = await tagsOf(values, variables);
  const isHttp = http || webhook !== undefined;
  if (flight && isHttp) {
    throw new UsageError("--flight is not for keys of requests: leave out the other option");
  }
  if (handler !== undefined && !isHttp) throw new UsageError("--handler needs --http or --webhook");
  const parts = webhook === undefined ? names : [webhook, ...tags, ...names];
  if (parts.includes("")) throw new UsageError("a scope must not be empty");
  const isList = isNamedList || webhook !== undefined || parts.length > 1;
  if (isList && parts.length === 0) throw new UsageError("--scope-list needs --scope");
  const kind = flight ? "flight" : isHttp ? "http" : "run";
  const scope = parts.length > 0 && { scope: isList ? parts : parts[0]! };
  return { key, options: { kind, ...scope, ...(handler !== undefined && { handler }) } };
}

/** The tag of a webhook's secret, as it is in the scope of its keys; or none. */
async function tagsOf(values: Values, variables: Access["variables"]): Promise<string[]> {
  const name = values["secret-env"];
  if (name === undefined) return [];
  if (values.webhook === undefined) throw new UsageError("--secret-env needs --webhook");
  const secret = variables[name];
  // A secret on the command line would be in the shell's history.
  if (!secret) throw new UsageError("--secret-env takes the name of a variable that has the secret");
  return [await secretTag(keyMaterialOf(values.webhook, secret))];
}

/** A secret as its provider uses it: as text, or decoded. */
function keyMaterialOf(provider: string, secret: string): string | Uint8Array {
  if (provider === "discord") return Buffer.from(secret, "hex");
  if (provider === "sendgrid") return Buffer.from(secret.replace(/-----[^-]+-----/g, ""), "base64");
  if (provider === "standard-webhooks")
    return Buffer.from(secret.replace(/^(?:v1a?,)?wh(?:sec|pk)_/, ""), "base64");
  return secret;
}
