import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type Script, upstashFlag } from "../../../../src/redis/script.ts";
import { announceScript } from "../../../../src/sync/debounce.ts";
import { arrivalScript } from "../../../../src/sync/internal/arrivals.ts";
import { freeScript } from "../../../../src/sync/internal/force-release.ts";
import { intervalScript } from "../../../../src/sync/internal/interval.ts";
import { memberScript } from "../../../../src/sync/internal/members.ts";
import { queueScript } from "../../../../src/sync/internal/queue-requests.ts";
import { slotScript } from "../../../../src/sync/internal/slots.ts";

const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");

test.each<[string, Script]>([
  ["announce", announceScript],
  ["arrival", arrivalScript],
  ["free", freeScript],
  ["interval", intervalScript],
  ["member", memberScript],
  ["queue", queueScript],
  ["slot", slotScript],
])("the script %s has the hash of the text that each dialect sends", (_, { source, sha }) => {
  expect(sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});
