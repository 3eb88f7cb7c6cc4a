import type { Page } from "playwright-core";

/** Texts of a page whose contrast with what is behind them is less than 4.5 (WCAG 2, 1.4.3), with the contrast. */
export function paleTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    type Color = [red: number, green: number, blue: number, alpha: number];
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
    const known = new Map<string, Color>();
    const parsed = (color: string): Color => {
      const before = known.get(color);
      if (before) return before;
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [red!, green!, blue!, alpha! / 255]);
      return known.get(color)!;
    };
    const over = (front: Color, back: Color, opacity = 1): Color => {
      const alpha = front[3] * opacity;
      const mixed = [0, 1, 2].map((at) => front[at]! * alpha + back[at]! * (1 - alpha));
      return [mixed[0]!, mixed[1]!, mixed[2]!, 1];
    };
    const luminance = (color: Color) => {
      const [red, green, blue] = color.slice(0, 3).map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
    };
    const behind = (element: Element | null): Color => {
      if (element === null) return [255, 255, 255, 1];
      const own = parsed(getComputedStyle(element).backgroundColor);
      return own[3] === 1 ? own : over(own, behind(element.parentElement));
    };
    const opacityOf = (element: Element | null): number =>
      element ? Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement) : 1;

    const found: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.textContent!.trim();
      const element = walker.currentNode.parentElement!;
      const opacity = opacityOf(element);
      if (text === "" || opacity === 0 || !element.checkVisibility({ visibilityProperty: true })) continue;
      const style = getComputedStyle(element);
      const back = behind(element);
      const color = parsed(element instanceof SVGElement ? style.fill : style.color);
      const [dark, light] = [luminance(over(color, back, opacity)), luminance(back)].sort((a, b) => a - b);
      const contrast = (light! + 0.05) / (dark! + 0.05);
      if (contrast < 4.5) found.push(`${contrast.toFixed(2)}: ${text.slice(0, 40)}`);
    }
    return found;
  });
}
