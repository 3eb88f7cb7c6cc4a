import { type Browser, chromium, type Page } from "playwright-core";
import { chromiumPath, requireInCi } from "./programs.ts";

export { chromiumPath };

requireInCi(chromiumPath, "Chromium");

/** Starts Chromium; its profile is temporary. Close it when the tests of a file have ended. */
export function openBrowser(): Promise<Browser> {
  // Chromium's sandbox does not work for root, as which containers run tests.
  return chromium.launch({ executablePath: chromiumPath!, args: ["--no-sandbox"] });
}

/** How a page is looked at. */
export interface Look {
  /** px. Default 1280. */
  readonly width?: number;
  /** px. Default 800. */
  readonly height?: number;
  /** Default `light`. */
  readonly scheme?: "light" | "dark";
}

/** A page, and what it must not do. */
export interface ObservedPage {
  readonly page: Page;
  /** Errors and warnings of the console, uncaught errors, and requests to anywhere but the page's own origin. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/**
 * Opens a URL, and records what goes wrong.
 *
 * @example
 * const { page, problems, close } = await openPage(browser, url, { width: 390, scheme: "dark" });
 */
export async function openPage(browser: Browser, url: string, look: Look = {}): Promise<ObservedPage> {
  const { width = 1_280, height = 800, scheme = "light" } = look;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  // Only the test's own time-out ends what waits for the page.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  const problems: string[] = [];
  const own = (other: string) => /^(data|blob):/.test(other) || new URL(other).origin === new URL(url).origin;
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
  page.on("request", (request) => {
    if (!own(request.url())) problems.push(`request to ${request.url()}`);
  });
  page.on("websocket", (socket) => {
    if (!own(socket.url().replace(/^ws/, "http"))) problems.push(`web socket to ${socket.url()}`);
  });
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}

/** Whether something of the page is cut off or must be scrolled to sideways. */
export function overflows(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

/**
 * Texts of HTML in view that are smaller than 11 px, or whose contrast with what is behind them is less than 4.5. `within`: of this
 * element, for example a dialog that covers the others.
 */
export function faintTexts(page: Page, within = "body"): Promise<string[]> {
  return page.evaluate((root) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
    // The layers from the lowest to the uppermost, as one colour.
    const painted = (colours: readonly string[]) => {
      canvas.fillStyle = "#fff";
      for (const colour of ["#fff", ...colours]) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
    const luminance = (colour: readonly number[]) => {
      const [red, green, blue] = colour.map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      }) as [number, number, number];
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const layersAt = (x: number, y: number) =>
      document
        .elementsFromPoint(x, y)
        .map((other) => getComputedStyle(other).backgroundColor)
        .reverse();
    const found: string[] = [];
    const walker = document.createTreeWalker(document.querySelector(root)!, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement!;
      const text = node.textContent!.trim();
      if (text === "" || element.closest("script, style, :disabled")) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const [box] = range.getClientRects();
      if (!box || box.width === 0) continue;
      const [x, y] = [box.left + Math.min(4, box.width / 2), box.top + box.height / 2];
      if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
      // What has been scrolled out of its box is not there.
      if (!document.elementsFromPoint(x, y).includes(element)) continue;
      const { fontSize, color } = getComputedStyle(element);
      const under = layersAt(x, y);
      const [ink, ground] = [painted([...under, color]), painted(under)];
      const [dark, bright] = [luminance(ink), luminance(ground)].sort((one, other) => one - other);
      const contrast = (bright! + 0.05) / (dark! + 0.05);
      if (contrast < 4.5 || Number.parseFloat(fontSize) < 11) {
        found.push(`${text}: ${fontSize}, contrast ${contrast.toFixed(2)}, ${ink} on ${ground}`);
      }
    }
    return found;
  }, within);
}
