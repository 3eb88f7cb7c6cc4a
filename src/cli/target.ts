import { Buffer } from "node:buffer";
import { Idempotency, inspectKey, type KeyInspection, type KeyOptions } from "../idempotency/index.ts";
import { type Inspection, inspect, QuorumError } from "../index.ts";
import { secretTag } from "../webhooks/index.ts";
import type { Client } from "./client.ts";
import { onlyArgument, UsageError } from "./command.ts";
import type { Cost } from "./cost.ts";
import { type KeyReport, keyLines, keyReport } from "./explain-key.ts";
import { type LockReport, lockLines, lockReport } from "./explain-lock.ts";
import { shellWord } from "./text.ts";

// What a command looks at: a resource that is locked, or a key of idempotent runs.

/** Options that say which key is meant. */
export const scopeOptions = {
  scope: { type: "string", multiple: true },
  "scope-list": { type: "boolean" },
  http: { type: "boolean" },
  flight: { type: "boolean" },
  webhook: { type: "string" },
  "secret-env": { type: "string" },
} as const;

/** Their part of `--help`. */
export const scopeHelp = `  --scope <name>       the scope of the key; several times for a scope that is a list
  --scope-list         the scope is a list, also where it has one name only
  --http               a key of withIdempotency() or idempotent(), not of run()
  --flight             a key of singleFlight()
  --webhook <name>     the same for webhooks of this provider, e.g. stripe; --scope for what follows in their scope
  --secret-env <name>  the variable with the webhook's secret: a tag of the secret is part of the scope, unless the
                       provider has a name of its own
`;

/** Values of {@link scopeOptions}. */
export interface ScopeValues {
  readonly scope?: readonly string[] | undefined;
  readonly "scope-list"?: boolean | undefined;
  readonly http?: boolean | undefined;
  readonly flight?: boolean | undefined;
  readonly webhook?: string | undefined;
  readonly "secret-env"?: string | undefined;
}

/** A key of idempotent runs. */
export interface KeyTarget {
  readonly key: string;
  readonly options: Pick<KeyOptions, "scope" | "kind">;
}

/** A resource or a key. */
export type Target = { readonly resource: string } | KeyTarget;

/** The key that a command line names. `variables` has the secret that `--secret-env` names. */
export async function keyTarget(
  key: string,
  values: ScopeValues,
  variables: Client["variables"],
): Promise<KeyTarget> {
  const { scope: names = [], webhook, http, flight } = values;
  const tags = await tagsOf(values, variables);
  const isHttp = http || webhook !== undefined;
  if (flight && isHttp)
    throw new UsageError("--flight is not for keys of requests: leave out the other option");
  const kind = flight ? "flight" : isHttp ? "http" : "run";
  const parts = webhook === undefined ? names : [webhook, ...tags, ...names];
  if (parts.includes("")) throw new UsageError("a scope must not be empty");
  const isList = values["scope-list"] || webhook !== undefined || parts.length > 1;
  if (isList && parts.length === 0) throw new UsageError("--scope-list needs --scope");
  return { key, options: { kind, ...(parts.length > 0 && { scope: isList ? parts : parts[0]! }) } };
}

/** The tag of a webhook's secret, as it is in the scope of its keys; or none. */
async function tagsOf(values: ScopeValues, variables: Client["variables"]): Promise<string[]> {
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
  if (provider === "standard-webhooks") return Buffer.from(secret.replace(/^wh(?:sec|pk)_/, ""), "base64");
  return secret;
}

/** The one argument of `inspect` and `watch`, a resource, or what `--key` names. */
export async function targetOf(
  { key, ...values }: ScopeValues & { readonly key?: string | undefined },
  positionals: readonly string[],
  variables: Client["variables"],
): Promise<Target> {
  if (key !== undefined) {
    if (positionals.length > 0) throw new UsageError("either a resource or --key, not both");
    return keyTarget(onlyArgument([key], "the key"), values, variables);
  }
  const given = Object.keys(scopeOptions).find((name) => values[name as keyof ScopeValues] !== undefined);
  if (given) throw new UsageError(`--${given} needs --key`);
  return { resource: onlyArgument(positionals, "a resource, or --key,") };
}

/** The options that name a key, as words of a command line. */
export function scopeWords({ scope: names = [], webhook, http, flight, ...values }: ScopeValues): string {
  return [
    ...names.map((name) => ` --scope ${shellWord(name)}`),
    values["scope-list"] ? " --scope-list" : "",
    http ? " --http" : "",
    flight ? " --flight" : "",
    webhook === undefined ? "" : ` --webhook ${shellWord(webhook)}`,
    values["secret-env"] === undefined ? "" : ` --secret-env ${shellWord(values["secret-env"])}`,
  ].join("");
}

/** What was found, as a report. */
export type Finding =
  | { readonly kind: "lock"; readonly report: LockReport; readonly cost: Cost }
  | { readonly kind: "key"; readonly report: KeyReport; readonly cost: Cost };

/** Inspects a resource or a key. Too few answers are a finding as well. */
export async function look(client: Client, target: Target): Promise<Finding> {
  if ("resource" in target) {
    const { resource } = target;
    const { value, cost } = await client.run(() => orQuorumError(inspect(client.redlock, resource)));
    return { kind: "lock", report: lockReport(resource, value, Date.now()), cost };
  }
  const { value, cost } = await client.run(() => inspectTarget(client, target));
  return { kind: "key", report: keyReport(target.key, value, target.options.kind), cost };
}

/** Inspects a key. */
export function inspectTarget(
  client: Client,
  { key, options }: KeyTarget,
): Promise<KeyInspection | QuorumError> {
  const idempotency = new Idempotency(client.redlock);
  return orQuorumError(inspectKey(idempotency, key, options));
}

async function orQuorumError<Found extends Inspection | KeyInspection>(
  found: Promise<Found>,
): Promise<Found | QuorumError> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof QuorumError) return error;
    throw error;
  }
}

/** A finding as lines for people. */
export function findingLines(finding: Finding): string[] {
  return finding.kind === "lock"
    ? lockLines(finding.report, finding.cost)
    : keyLines(finding.report, finding.cost);
}
