import { arrivalTwin } from "./arrival-twin.ts";
import { cellTwin } from "./cell-twin.ts";
import { freeTwin } from "./free-twin.ts";
import { intervalTwin } from "./interval-twin.ts";
import { mailboxTwin } from "./mailbox-twin.ts";
import { memberTwin } from "./member-twin.ts";
import { peekTwin } from "./peek-twin.ts";
import { queueTwin } from "./queue-twin.ts";
import { slotTwin } from "./slot-twin.ts";
import type { Twin } from "./twin.ts";

const all = [
  arrivalTwin,
  cellTwin,
  freeTwin,
  intervalTwin,
  mailboxTwin,
  memberTwin,
  peekTwin,
  queueTwin,
  slotTwin,
];

/** The twins of all scripts, by the SHA-1 of the script that each replaces. */
export const twins: ReadonlyMap<string, Twin> = new Map(all.map((twin) => [twin.sha, twin]));
