import { createRequire } from "node:module";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

// What the search of the site answers. Its index is made of the pages here, as VitePress makes it.

interface Result {
  readonly id: string;
}
let search: (question: string) => string[];

beforeAll(async () => {
  npmCi("docs/site");
  const MiniSearch = createRequire(join(project, "docs/site/package.json"))("minisearch");
  const { anchorOf, programsBegin, readPages } = await import("../../docs/site/pages.mjs");
  const { miniSearch, sectionsOf } = await import("../../docs/site/search.mjs");
  const index = new MiniSearch({
    fields: ["title", "titles", "text"],
    storeFields: ["title", "titles"],
    searchOptions: miniSearch.searchOptions,
    ...miniSearch.options,
  });
  for (const { path, text, isSource } of readPages().values()) {
    if (isSource) continue;
    const address = `/${path.replace(/index\.md$/, "").replace(/md$/, "html")}`;
    for (const { anchor, titles, text: words } of sectionsOf(text.split(programsBegin)[0]!, anchorOf))
      index.add({
        id: `${address}#${anchor}`,
        title: titles.at(-1),
        titles: titles.slice(0, -1),
        text: words,
      });
  }
  search = (question) => index.search(question).map(({ id }: Result) => id.slice(1));
}, 120_000);

it.each([
  ["what happens when Redis is down", "outages"],
  ["test code that locks", "testing"],
  ["install", "getting-started"],
  ["who holds a lock", "who-holds"],
  ["webhook", "webhooks"],
  ["fence", "fencing"],
  ["ttl", "options.html#ttl"],
  ["cron", "cron"],
  ["price", "choosing.html#cost"],
  ["mock", "testing"],
  ["leader", "sync.html#singleton"],
  ["rate limit", "concurrency"],
  ["lambda", "platforms.html#lambda"],
  ["express", "frameworks"],
  ["idempotency key", "idempotency-key"],
  ["lock expired", "errors.html#LOCK_LOST"],
  ["release", "lock.html#hold-it-without-a-function"],
  ["rotate secret", "rotate-secret"],
  ["postgres", "inbox"],
  ["conversation turn", "mailbox"],
])("answers %j within its first three results", (question, page) => {
  const first = search(question).slice(0, 3);
  const address = page.includes(".html") ? page : `${page}.html`;
  expect(
    first.some((id) => id.startsWith(address)),
    first.join(", "),
  ).toBe(true);
});
