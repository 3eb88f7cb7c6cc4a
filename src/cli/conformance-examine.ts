import { setMaxListeners } from "node:events";
import type { Dialect, Endpoint, HttpEndpointOptions } from "../index.ts";
import * as probe from "./conformance-probe.ts";
import { ConformanceSession, type ConformanceSettings, type Seen } from "./conformance-session.ts";
import { isRefusal } from "./doctor-advice.ts";
import { candidateOf, type Failure, readClock } from "./doctor-probe.ts";

// One conformance check: what is asked in which order, and what is not, because it would say nothing.

/** What the library needs of a server. */
export type Need =
  | "rest"
  | "token"
  | "nx"
  | "nx-get"
  | "ifeq"
  | "delex"
  | "eval"
  | "evalsha"
  | "noscript"
  | "flag"
  | "pexpireat"
  | "once"
  | "replies"
  | "pipeline"
  | "request"
  | "reply"
  | "subscribe"
  | "clock"
  | "reads"
  | "eviction"
  | "wait";

/** What was seen at one endpoint. A need that is absent was not asked. */
export interface Conformance {
  /** Its host; where the URL cannot be used: `endpoint 2`. */
  readonly endpoint: string;
  /** From 1. */
  readonly number: number;
  readonly dialect?: Dialect | undefined;
  readonly requests: number;
  /** Whether what it wrote is deleted. */
  readonly isClean: boolean;
  readonly seen: Readonly<Partial<Record<Need, Seen>>>;
  readonly clock?: { readonly ahead: number; readonly within: number } | undefined;
}

/** Checks all endpoints, side by side. Rejects once all have deleted what they wrote. */
export async function examineConformance(
  endpoints: readonly HttpEndpointOptions[],
  settings: ConformanceSettings,
): Promise<Conformance[]> {
  // Every open request listens to it; Node warns of more than ten.
  setMaxListeners(0, settings.stop);
  const examined = await Promise.allSettled(
    endpoints.map((options, index) => examine(options, index + 1, settings)),
  );
  return examined.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

async function examine(
  options: HttpEndpointOptions,
  number: number,
  settings: ConformanceSettings,
): Promise<Conformance> {
  const candidate = candidateOf(options);
  if ("failure" in candidate) return unusable(number, candidate.failure);
  const { name, dialect } = candidate.endpoint;
  const open = (): Endpoint => (candidateOf(options) as { endpoint: Endpoint }).endpoint;
  // Of two variables for one database, each has its own keys.
  const session = new ConformanceSession(open, { ...settings, id: `${settings.id}:${number}` });
  let answers: Awaited<ReturnType<typeof askAll>>;
  let isClean = false;
  try {
    answers = await askAll(session);
  } finally {
    isClean = await session.clean();
  }
  // Who may not write has written nothing.
  const { failure } = answers.seen.token ?? {};
  isClean ||= failure !== undefined && isRefusal(failure);
  return { endpoint: name, number, dialect, requests: session.requests, isClean, ...answers };
}

function unusable(number: number, failure: Failure): Conformance {
  return { endpoint: `endpoint ${number}`, number, requests: 0, isClean: true, seen: { rest: { failure } } };
}

async function askAll(session: ConformanceSession): Promise<Pick<Conformance, "seen" | "clock">> {
  const seen: Partial<Record<Need, Seen>> = {};
  const ask = async (need: Need, look: (session: ConformanceSession) => Promise<Seen>): Promise<boolean> => {
    seen[need] = await session.observe(() => look(session));
    return seen[need].works === true;
  };
  if (!(await ask("rest", probe.askRest)) || !(await ask("token", probe.askToken))) return { seen };
  await ask("nx", probe.askNx);
  await ask("nx-get", probe.askNxGet);
  await ask("ifeq", probe.askIfEqual);
  await ask("delex", probe.askDelex);
  await askScripts(ask, seen);
  await ask("replies", probe.askReplies);
  await ask("pipeline", probe.askPipeline);
  await ask("request", probe.askRequests);
  await ask("reply", probe.askLargeReplies);
  await ask("subscribe", probe.askStream);
  await ask("reads", () => probe.askReads(session, seen.eval?.works === true));
  await ask("eviction", probe.askEviction);
  await ask("wait", probe.askWait);
  const { clock } = await readClock(session.endpoint, session);
  return { seen, clock };
}

async function askScripts(
  ask: (need: Need, look: (session: ConformanceSession) => Promise<Seen>) => Promise<boolean>,
  seen: Readonly<Partial<Record<Need, Seen>>>,
): Promise<void> {
  if (await ask("eval", (session) => probe.askScript(session, "EVAL"))) {
    const isKnown = await ask("evalsha", (session) => probe.askScript(session, "EVALSHA"));
    await ask("flag", probe.askFlag);
    await ask("pexpireat", probe.askDeadline);
    await ask("once", (session) => probe.askExecutions(session, isKnown ? "EVALSHA" : "EVAL"));
  }
  // A server that has no EVALSHA refuses this one for another reason.
  const { failure } = seen.evalsha ?? {};
  if (!failure || failure.message.includes("NOSCRIPT")) await ask("noscript", probe.askNoscript);
}
