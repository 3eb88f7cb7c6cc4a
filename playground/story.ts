import { button, element, setText } from "./dom.ts";
import type { Step } from "./steps.ts";

/** What happens in a scene, step by step. */
export class Story {
  readonly element: HTMLElement = element("div", { className: "telling" });
  /** Says the step that begins to those who cannot see it. */
  readonly #spoken = element("p", { className: "spoken", "aria-live": "polite" });
  readonly #list = element("ol", { className: "steps" });
  readonly #choose: (step: Step) => void;
  #steps: readonly Step[] = [];
  #current: Step | undefined;

  constructor(choose: (step: Step) => void) {
    this.#choose = choose;
    this.element.append(this.#spoken, this.#list);
  }

  /** Begins with the steps of a scene, or without any. */
  begin(steps: readonly Step[]): void {
    if (steps === this.#steps && steps.length > 0) return;
    this.#steps = steps;
    this.#current = undefined;
    const lines = steps.map((step) => {
      const line = button("", () => this.#choose(step));
      line.append(element("span", { className: "hint" }, `${step.time} ms`), ` ${step.text}`);
      return element("li", {}, line);
    });
    this.#list.replaceChildren(...lines);
  }

  /** Marks the step that a time belongs to, and says it. */
  show(time: number): void {
    const current = this.#steps.filter((step) => step.time <= time).at(-1);
    if (current === this.#current) return;
    this.#current = current;
    for (const [index, line] of [...this.#list.children].entries()) {
      const isCurrent = this.#steps[index] === current;
      line.className = isCurrent ? "current" : "";
      if (isCurrent) line.firstElementChild!.setAttribute("aria-current", "step");
      else line.firstElementChild!.removeAttribute("aria-current");
    }
    setText(this.#spoken, current?.text ?? "");
  }
}
