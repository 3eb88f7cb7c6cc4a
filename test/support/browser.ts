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
  const own = (other: string) => {
    if (/^(data|blob):/.test(other)) return true;
    // Files have no origin: only the page's own is allowed.
    return url.startsWith("file:")
      ? other.split("#")[0] === url.split("#")[0]
      : new URL(other).origin === new URL(url).origin;
  };
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

/** Pairs of texts of SVG pictures that are written over each other. */
export function overlappingTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const texts = Array.from(document.querySelectorAll("svg text"), (element) => ({
      text: element.textContent ?? "",
      box: element.getBoundingClientRect(),
    }));
    // The box of a text has some room above and below its letters.
    const apart = (one: DOMRect, other: DOMRect) =>
      one.right <= other.left + 1 ||
      other.right <= one.left + 1 ||
      one.bottom <= other.top + 4 ||
      other.bottom <= one.top + 4;
    return texts.flatMap((one, at) =>
      texts
        .slice(at + 1)
        .filter((other) => !apart(one.box, other.box))
        .map((other) => `${one.text} | ${other.text}`),
    );
  });
}

/** Names of a picture's lanes that a line or an arrow of the picture is drawn over or under. */
export async function crossedNames(page: Page, names: readonly string[]): Promise<string[]> {
  await page.locator("svg.picture").first().scrollIntoViewIfNeeded();
  return page.evaluate((wanted) => {
    const svg = document.querySelector("svg.picture")!;
    // What cannot be seen is not under a point: lines are cut off at the edge of the plot.
    const isCrossed = (x: number, y: number) =>
      document.elementsFromPoint(x, y).some((found) => found.tagName === "path" && svg.contains(found));
    return wanted.filter((name) => {
      // Bars may have the name of their holder; those of lanes are the leftmost.
      const boxes = [...svg.querySelectorAll("text")]
        .filter(({ textContent }) => textContent === name)
        .map((label) => label.getBoundingClientRect());
      const [box] = boxes.sort((one, other) => one.left - other.left);
      if (!box) return true;
      const { left, right, top, bottom } = box;
      for (let x = left; x < right; x += 1) {
        for (let y = top; y < bottom; y += 1) if (isCrossed(x, y)) return true;
      }
      return false;
    });
  }, names);
}

/**
 * Texts in view that are smaller than 11 px, or whose contrast with what is behind them is less than 4.5. `within`: of this
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
    const isDrawn = (element: Element) => element instanceof SVGElement && element.tagName !== "svg";
    const layersAt = (x: number, y: number) =>
      document
        .elementsFromPoint(x, y)
        .filter(({ tagName }) => !["text", "tspan", "path", "line"].includes(tagName))
        .map((other) => {
          const { fill, fillOpacity, backgroundColor } = getComputedStyle(other);
          if (!isDrawn(other)) return backgroundColor;
          const share = `${Number(fillOpacity) * 100}%`;
          return fill.startsWith("url") ? "transparent" : `color-mix(in srgb, ${fill} ${share}, transparent)`;
        })
        .reverse();
    const found: string[] = [];
    const walker = document.createTreeWalker(document.querySelector(root)!, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement!;
      const text = node.textContent!.trim();
      if (text === "" || element.closest("script, style, .spoken, :disabled, [aria-disabled=true]")) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const [box] = range.getClientRects();
      if (!box || box.width === 0) continue;
      const [x, y] = [box.left + Math.min(4, box.width / 2), box.top + box.height / 2];
      if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
      // What has been scrolled out of its box is not there.
      if (!isDrawn(element) && !document.elementsFromPoint(x, y).includes(element)) continue;
      const { fontSize, color, fill } = getComputedStyle(element);
      const under = layersAt(x, y);
      const [ink, ground] = [painted([...under, isDrawn(element) ? fill : color]), painted(under)];
      const [dark, bright] = [luminance(ink), luminance(ground)].sort((one, other) => one - other);
      const contrast = (bright! + 0.05) / (dark! + 0.05);
      if (contrast < 4.5 || Number.parseFloat(fontSize) < 11) {
        found.push(`${text}: ${fontSize}, contrast ${contrast.toFixed(2)}, ${ink} on ${ground}`);
      }
    }
    return found;
  }, within);
}
