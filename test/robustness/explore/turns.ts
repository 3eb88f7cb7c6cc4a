import type { Request } from "../sim/request.ts";
import { type Contents, entriesOf, scoreOf, textAt } from "./contents.ts";
import type { World } from "./world.ts";

/** Reports that an invariant does not hold. */
type Report = World["report"];

// Who is served when, of fair and read-write locks. A finite schedule has no fair share of anything, but every endpoint
// has to serve those that wait there in their turn, whatever was late before.

/** One execution of a request at an endpoint. */
interface Turn {
  /** The endpoint, and who asks. */
  readonly where: string;
  readonly granted: boolean;
  readonly before: Contents;
  readonly after: Contents;
  /** By the endpoint's clock, in ms since 1970. */
  readonly now: number;
}

/** Announcements of waiting writers stand for 500 ms at least, and all scenarios have shorter pauses and timeouts. */
const longestAnnouncement = 500;

/** Checks one execution of a request. Others than those of waiters are let pass. */
export function checkTurn(report: Report, request: Request, turn: Turn): void {
  if (request.operation !== "acquire") return;
  if (request.ticket) checkQueue(report, request, request.ticket, turn);
  if (request.passes !== undefined) checkReader(report, request, request.passes, turn);
  if (request.announces) checkAnnouncement(report, request.announces, turn);
}

/** The free lock is for the earliest of the living tickets, and for nobody else. */
function checkQueue(
  report: Report,
  { keys, value }: Request,
  { text, queue, tombstones }: NonNullable<Request["ticket"]>,
  { where, granted, before, now }: Turn,
): void {
  const holder = textAt(before, keys[0]!);
  // A second execution.
  if (holder === value) return;
  const living = (textAt(before, queue) ?? "")
    .split(",")
    .filter((entry) => Number(entry.split(":")[1]) > now);
  const isFirst = living.every((entry) => entry.split(":")[0]! >= text);
  const isOver = tombstones.some((key) => textAt(before, key) !== undefined);
  if (granted && !isFirst) report("served in order", `${where} comes before an earlier ticket`);
  if (!granted && isFirst && holder === undefined && !isOver) {
    report("waiters are served", `${where} is refused, and nobody holds the lock or was earlier`);
  }
}

/** A reader does not pass a writer that waits. */
function checkReader(
  report: Report,
  { keys, value }: Request,
  writers: string,
  { where, granted, before, now }: Turn,
): void {
  const isWaiting = entriesOf(before, writers).some(([, deadline]) => deadline > now);
  if (!granted || !isWaiting || scoreOf(before, keys[0]!, value)! > now) return;
  report("waiters are served", `${where} reads, and a writer was announced before`);
}

function checkAnnouncement(
  report: Report,
  { key, id }: NonNullable<Request["announces"]>,
  { where, after, now }: Turn,
): void {
  const stands = (scoreOf(after, key, id) ?? now) - now;
  if (stands > longestAnnouncement) report("the dead do not keep others out", `${where}, for ${stands} ms`);
}
