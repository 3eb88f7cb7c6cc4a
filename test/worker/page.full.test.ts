import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, faintTexts, openBrowser, openPage, overflows } from "../support/browser.ts";
import { type LocalStand, openStand } from "./local-stand.ts";

const views = [1280, 390].flatMap((width) =>
  (["light", "dark"] as const).map((scheme) => ({ width, scheme })),
);

describe.skipIf(chromiumPath === undefined)("the page in Chromium", () => {
  let stand: LocalStand;
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  beforeAll(async () => {
    [stand, browser] = await Promise.all([openStand(), openBrowser()]);
    const delivery = await stand.github("issues");
    await stand.send(delivery);
    await stand.endpoints[0]!.stop();
    await stand.send(delivery);
    await stand.journal(delivery, 2);
  });
  afterAll(async () => {
    await browser?.close();
    await stand?.close();
  });

  it.each(views)("can be read, and shows what is new by itself ($width px, $scheme)", async (view) => {
    const { host } = new URL(stand.url);
    const url = `http://journal:${stand.secrets.JOURNAL_SECRET}@${host}/`;
    const { page, problems, close } = await openPage(browser, url, view);
    await page.getByText("issues.edited of github:Codertocat/Hello-World#1").first().waitFor();
    expect(await overflows(page)).toBe(false);
    expect(await faintTexts(page)).toEqual([]);
    const delivery = stand.standard(`inv_${view.width}_${view.scheme}`);
    await stand.send(delivery);
    await stand.journal(delivery, 1);
    await page.getByText(delivery.key).waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
