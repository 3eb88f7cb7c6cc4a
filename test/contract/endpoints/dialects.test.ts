import { expect, onTestFinished, test } from "vitest";
import { start } from "../../../local/src/index.ts";
import { httpEndpoint, Redlock } from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { engines } from "../../support/redis-servers.ts";

// Which commands a server of each dialect has: local/test.

const kinds = engines.flatMap((engine) =>
  (["redis", "redis-8.4"] as const).map((dialect) => ({ engine, dialect })),
);

test.each(kinds)(
  "$dialect on $engine fails at once where it is used as Upstash",
  async ({ engine, dialect }) => {
    const local = await start({ count: 1, engine, dialect });
    onTestFinished(() => local.close());
    const { url, token } = local.endpoints[0]!;
    const endpoint = httpEndpoint({ url, token, dialect: "upstash" });
    const acquired = new Redlock({ ...patient, endpoints: [endpoint], wait: Infinity }).acquire("a", {
      fencing: true,
    });
    await expect(acquired).rejects.toMatchObject({ votes: [{ cause: { permanent: true } }] });
  },
);
