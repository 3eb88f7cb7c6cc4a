import { describe, expect, test } from "vitest";
import { EndpointError } from "../../../src/errors/errors.ts";
import { classifyBegin as classify } from "../../../src/idempotency/begin.ts";
import { noFingerprint, parseRecord, recordText } from "../../../src/idempotency/record.ts";
import type { Failure } from "../../../src/quorum/round.ts";
import type { RoundResult } from "../../../src/quorum/tally.ts";
import type { CellAnswer } from "../../../src/redis/cell.ts";

type Given = CellAnswer | Failure | undefined;

const classifyBegin = (answers: readonly Given[], result: RoundResult, fingerprint: string) =>
  classify(
    answers.map((answer) => ({ answer })),
    result,
    { fingerprint, isAlone: true },
  );

const failure = (message: string): Failure => ({
  outcome: "error",
  cause: new EndpointError("endpoint-1", "redis", message),
});
const held = (other: string): CellAnswer => ({ outcome: "held", other });
const pending = (token: string, fingerprint = noFingerprint) =>
  recordText({ state: "pending", token, at: 1, fingerprint });
const complete = (fingerprint = noFingerprint) =>
  recordText({ state: "complete", token: "t9", at: 2, fingerprint, result: "1" });

const granted: CellAnswer = { outcome: "granted" };
const silent: Given = undefined;
const down = failure("connect ECONNREFUSED");
const wrongType = failure("WRONGTYPE Operation against a key holding the wrong kind of value");
const [p1, p2] = [held(pending("t1")), held(pending("t2"))];
const done = held(complete());
const [otherDone, otherPending] = [held(complete("bb")), held(pending("t1", "bb"))];
const run = { kind: "run" };
const mismatch = { kind: "mismatch", complete: true };
const splitVote = { kind: "split-vote" };
const unclear = { kind: "unclear" };
const corrupt = { kind: "corrupt" };
const busy = { kind: "busy", record: parseRecord(pending("t1")) };
const replay = {
  kind: "replay",
  record: parseRecord(complete()),
  text: complete(),
  decided: false,
};

describe("classifyBegin", () => {
  type Row = [what: string, answers: Given[], result: RoundResult, expected: object, fingerprint?: string];
  test.each<Row>([
    ["the only endpoint grants", [granted], "granted", run],
    ["a quorum grants, one is silent", [granted, granted, silent], "granted", run],
    ["a quorum grants, one has another run", [granted, granted, p1], "granted", run],
    ["a quorum grants, one has no record", [granted, granted, held("x")], "granted", run],
    ["a quorum grants, one has a complete record", [granted, done, granted], "granted", replay],
    ["a quorum has another run", [granted, p1, p1], "refused", busy],
    ["each of three runs has a part", [granted, p1, p2], "refused", splitVote],
    ["two runs have a part each, one endpoint is down", [granted, p1, down], "unavailable", splitVote],
    ["one of three grants, two are down", [granted, down, down], "unavailable", unclear],
    ["one of three refuses, two are down", [p1, down, down], "unavailable", unclear],
    ["one of three refuses, two are silent", [p1, silent, silent], "unavailable", unclear],
    ["all are down", [down, down, down], "unavailable", unclear],
    ["one of three is complete, two are down", [done, down, down], "unavailable", replay],
    ["one of two refuses, one is silent", [p1, silent], "refused", splitVote],
    ["one of two refuses, one grants", [granted, p1], "refused", splitVote],
    ["the only value is not a string", [wrongType], "unavailable", corrupt],
    ["two of three values are no strings", [wrongType, granted, wrongType], "unavailable", corrupt],
    ["one of three values is not a string", [wrongType, granted, down], "unavailable", unclear],
    ["one of three values is not a string, two runs", [wrongType, granted, p1], "unavailable", splitVote],
    ["one is complete with another fingerprint", [granted, granted, otherDone], "granted", mismatch, "aa"],
    ["one is pending with another fingerprint", [granted, granted, otherPending], "granted", run, "aa"],
  ])("%s", (_what, answers, result, expected, fingerprint = noFingerprint) => {
    expect(classifyBegin(answers, result, fingerprint)).toEqual(expected);
  });
});
