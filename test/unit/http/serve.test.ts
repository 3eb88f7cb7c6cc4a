import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError } from "../../../src/errors.ts";
import { completeText, pendingText } from "../../../src/idempotency/record.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { allArrived, recordName, recordsOf } from "../../support/stores.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";
import { providerOf, requestOf, route, silence, store, text, types } from "./stand.ts";

// How a request is answered, what its caller gets to know of that, and which events tell of it.

describe("how a request was answered", () => {
  forbidUnhandledRejections();

  test("executed, then replayed", async () => {
    const { answer, events } = route();
    const key = freshKey();
    expect((await answer(requestOf(key))).status).toBe("executed");
    const again = await answer(requestOf(key));
    expect([again.status, await again.response.text()]).toEqual(["replayed", "run 1"]);
    expect(types(events)).toEqual(["executed", "replayed"]);
  });

  test.each<[what: string, handled: { response: Response; failed?: boolean }]>([
    ["an error's response", { response: new Response("sorry"), failed: true }],
    ["a response that is not stored", { response: new Response("later", { status: 503 }) }],
  ])("failed, with %s, and the key is free", async (_what, handled) => {
    const { answer, events } = route();
    const key = freshKey();
    const failed = await answer(requestOf(key), { handle: async () => handled });
    expect(failed).toEqual({ status: "failed", response: handled.response });
    expect(types(events)).toEqual(["failed"]);
    expect(await recordsOf(store, key, [], "http")).toEqual([null, null, null]);
    expect((await answer(requestOf(key))).status).toBe("executed");
  });

  test.each(["GET", "HEAD", "OPTIONS"])("unguarded, without a key: %s", async (method) => {
    const { answer, links } = route();
    expect((await answer(requestOf(null, { method }))).status).toBe("unguarded");
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });

  test("unguarded, where a key is not required", async () => {
    let given: unknown[] = [];
    const { status } = await route({ required: false }).answer(requestOf(null), {
      handle: async (...args) => {
        given = args;
        return { response: new Response() };
      },
    });
    expect([status, ...given]).toEqual(["unguarded"]);
  });

  test.each(["POST", "PUT", "DELETE", "GETS", "XHEAD"])("refused, without a key: %s", async (method) => {
    const { answer, events, runs } = route();
    const { status, response } = await answer(requestOf(null, { method }));
    expect([status, response.status, runs()]).toEqual(["refused", 400, 0]);
    expect(events).toEqual([
      { type: "refused", status: 400, code: "KEY_MISSING", key: undefined, error: undefined },
    ]);
  });

  test("refused, with a wrong key or too large a body", async () => {
    const { answer, events } = route({ maxRequestBody: 7 });
    const key = freshKey();
    let cap = 0;
    await answer(requestOf('"'));
    await answer(requestOf(key), {
      body: async (most) => {
        cap = most;
        return undefined;
      },
    });
    expect(cap).toBe(7);
    expect(events).toEqual([
      { type: "refused", status: 400, code: "KEY_INVALID", key: undefined, error: undefined },
      { type: "refused", status: 413, code: "BODY_TOO_LARGE", key, error: undefined },
    ]);
  });

  test("refused, while another request of the key is handled, with the error for the operator", async () => {
    const { answer, events } = route({ failOpen: true });
    const key = freshKey();
    await answer(requestOf(key), {
      handle: async () => {
        // Also where the handler would run without a store: there is one.
        const { status, response } = await answer(requestOf(key));
        expect([status, response.status]).toEqual(["refused", 409]);
        return { response: new Response() };
      },
    });
    expect(events).toMatchObject([
      { type: "busy" },
      { type: "refused", status: 409, code: "IN_PROGRESS", key, error: { code: "IN_PROGRESS" } },
      { type: "executed" },
    ]);
  });
});

describe("where no quorum answers", () => {
  forbidUnhandledRejections();

  test("the request is refused, and with failOpen the handler runs unguarded, with the body", async () => {
    for (const failOpen of [false, true]) {
      const { answer, events, links } = route({ failOpen });
      silence(links);
      let given: unknown[] = [];
      const { status, response } = await answer(requestOf("k"), {
        handle: async (...args) => {
          given = args;
          return { response: new Response("open") };
        },
      });
      expect([status, response.status]).toEqual(failOpen ? ["unguarded", 200] : ["refused", 503]);
      expect(given).toEqual(failOpen ? [undefined, text("body"), undefined] : []);
      expect(types(events)).toEqual(["unavailable", failOpen ? "unguarded" : "refused"]);
      expect(events[1]).toMatchObject({ key: "k", error: { code: "NO_QUORUM" } });
    }
  });

  test.each([
    new QuorumError("acquire", ["r"], []),
    new LockHeldError(["r"], 1),
    new Error("the handler's own"),
  ])("an error that the handler throws is its own: %s", async (error) => {
    const { answer, events } = route({ failOpen: true });
    const key = freshKey();
    const thrown = await outcomeOf(answer(requestOf(key), { handle: () => Promise.reject(error) }));
    expect(thrown.error).toBe(error);
    expect(types(events)).toEqual(["failed"]);
    expect(await recordsOf(store, key, [], "http")).toEqual([null, null, null]);
  });

  test("an error that is none of this package's is thrown", async () => {
    const error = new Error("no such fingerprint");
    const { answer } = route({ fingerprint: () => Promise.reject(error) });
    expect((await outcomeOf(answer(requestOf(freshKey())))).error).toBe(error);
    const backoff = () => {
      throw error;
    };
    const waiting = route({ wait: 1_000, backoff });
    const key = freshKey();
    await waiting.answer(requestOf(key), {
      handle: async () => {
        expect((await outcomeOf(waiting.answer(requestOf(key)))).error).toBe(error);
        return { response: new Response() };
      },
    });
  });
});

describe("a client that has gone", () => {
  test("is refused, for whatever reason", async () => {
    const { answer, events, runs } = route();
    const reason = new Error("its own");
    const { status, response } = await answer(requestOf(freshKey(), { signal: AbortSignal.abort(reason) }));
    expect([status, response.status, runs()]).toEqual(["refused", 499, 0]);
    expect(events).toMatchObject([
      { type: "aborted", error: reason },
      { type: "refused", code: "ABORTED", error: reason },
    ]);
  });

  test("changes no other refusal", async () => {
    const { answer, links } = route();
    silence(links);
    const controller = new AbortController();
    const { response } = await answer(requestOf(freshKey(), { signal: controller.signal }));
    expect(response.status).toBe(503);
  });

  test("is not known where the platform's requests have no signal", async () => {
    const { answer, links } = route();
    silence(links);
    const request = Object.defineProperty(requestOf(freshKey()), "signal", { value: undefined });
    expect((await answer(request)).response.status).toBe(503);
  });
});

describe("a run that was lost", () => {
  forbidUnhandledRejections();

  /** A request whose handler ends when this text stands at its key instead. */
  async function lost(taken: string, webhook = false) {
    const { answer, events, links } = route({ wait: 0 }, webhook);
    const key = freshKey();
    let cancelled = false;
    const provider = webhook ? providerOf({ id: key }) : undefined;
    const result = await answer(requestOf(key), {
      provider,
      handle: async () => {
        await allArrived(links);
        const name = await recordName(key, webhook ? ["acme"] : [], "http");
        for (let index = 0; index < 3; index += 1) await store.execute(index, ["SET", name, taken]);
        const cancel = () => {
          cancelled = true;
          throw new Error("the source's own");
        };
        const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(text("mine"));
        const headers = { "content-type": "text/event-stream" };
        return { response: new Response(new ReadableStream({ pull, cancel }), { headers }) };
      },
    });
    return { ...result, events, cancelled };
  }
  const other = { token: "tother", fingerprint: "-" };

  test("gets the response of the run that took over, and its own is given up", async () => {
    const stored = completeText({ ...other, completedAt: Date.now(), result: "t202{}\ntheirs" });
    const { status, response, events, cancelled } = await lost(stored);
    expect([status, response.status, await response.text()]).toEqual(["replayed", 202, "theirs"]);
    expect(cancelled).toBe(true);
    expect(types(events)).toEqual(["lost", "replayed"]);
  });

  test.each([
    [false, 409],
    [true, 503],
  ])("is refused while that one is under way; webhook: %s", async (webhook, code) => {
    const pending = pendingText({ ...other, startedAt: Date.now() });
    const { status, response, events } = await lost(pending, webhook);
    expect([status, response.status]).toEqual(["refused", code]);
    expect(types(events)).toEqual(["lost", "busy", "refused"]);
  });
});

describe("a run that was lost to one that has ended since", () => {
  /** Another run's claim stands there when the handler ends, until this run has found it, and then nothing. */
  async function outrun(init: RequestInit = {}, during: () => void = () => undefined) {
    const { answer, events, links } = route({ wait: 5_000, backoff: { min: 5, max: 10 } });
    const key = freshKey();
    const name = await recordName(key, [], "http");
    const onAll = (...command: Parameters<typeof store.execute>[1]) =>
      Promise.all([0, 1, 2].map((index) => store.execute(index, command)));
    const ended = until(() => types(events).includes("lost"), "the run to be lost").then(() =>
      onAll("DEL", name),
    );
    const result = await answer(requestOf(key, init), {
      handle: async () => {
        await allArrived(links);
        await onAll("SET", name, pendingText({ token: "tother", fingerprint: "-", startedAt: Date.now() }));
        during();
        return { response: new Response(null, { status: 204 }) };
      },
    });
    await ended;
    return { ...result, records: await recordsOf(store, key, [], "http") };
  }

  test("is refused, and its handler does not run once more: the key is free", async () => {
    const { status, response, records } = await outrun();
    expect([status, response.status, records]).toEqual(["refused", 409, [null, null, null]]);
  });

  test("is refused for that, also where its client has gone meanwhile", async () => {
    const controller = new AbortController();
    const { response } = await outrun({ signal: controller.signal }, () => controller.abort());
    expect(response.status).toBe(409);
  });
});

describe("waitUntil", () => {
  const names = ["rules", "exchange", "client"] as const;

  test.each([
    [["rules", "exchange", "client"], "rules"],
    [["exchange", "client"], "exchange"],
    [["client"], "client"],
  ] as const)("of %j is that of the %s", async (present, expected) => {
    const kept: Record<(typeof names)[number], unknown[]> = { rules: [], exchange: [], client: [] };
    const keeping = (name: (typeof names)[number]) =>
      (present as readonly string[]).includes(name)
        ? (work: Promise<unknown>) => void kept[name].push(work)
        : undefined;
    const { answer } = route({ waitUntil: keeping("rules") }, false, { waitUntil: keeping("client") });
    await answer(requestOf(freshKey()), { waitUntil: keeping("exchange") });
    for (const name of names) expect(kept[name].length > 0).toBe(name === expected);
  });

  test("keeps the whole run from its beginning, also where it fails", async () => {
    const kept: Promise<unknown>[] = [];
    const { answer } = route({ waitUntil: (work) => void kept.push(work) });
    let before = 0;
    const call = outcomeOf(
      answer(requestOf(freshKey()), {
        handle: async () => {
          before = kept.length;
          throw new Error("no");
        },
      }),
    );
    await call;
    expect(before).toBeGreaterThan(0);
    await expect(Promise.all(kept)).resolves.toBeDefined();
  });
});

test("the handler gets the run and the body, and the fingerprint the request and the body", async () => {
  const key = freshKey();
  const request = requestOf(key);
  const prints: unknown[][] = [];
  const { answer } = route({ fingerprint: (...args) => void prints.push(args) });
  const deadline = Date.now() + 5_000;
  await answer(request, {
    deadline,
    handle: async (run, body) => {
      expect([run!.key, body]).toEqual([key, text("body")]);
      expect(run!.remaining()).toBeLessThanOrEqual(5_000);
      return { response: new Response() };
    },
  });
  expect(prints).toEqual([[request, text("body")]]);
});
