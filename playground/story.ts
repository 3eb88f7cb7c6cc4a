import { button, element, setText } from "./dom.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { sentenceOf } from "./sentences.ts";
import type { Step } from "./steps.ts";

/** How many sentences of a free world stay. */
const told = 8;

/** What happens, in words: the steps of a scene or, in a world of one's own, what has happened last. */
export class Story {
  readonly element: HTMLElement = element("div", { className: "telling" });
  /** Says the step that begins to those who cannot see it. */
  readonly #spoken = element("p", { className: "spoken", "aria-live": "polite" });
  readonly #list = element("ol");
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
    this.#list.className = steps.length > 0 ? "steps" : "log";
    this.#list.ariaLive = steps.length > 0 ? "off" : "polite";
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

  /** Adds what an event means, where there are no steps. */
  tell(event: TimelineEvent): void {
    const sentence = this.#steps.length > 0 ? undefined : sentenceOf(event);
    const lines = this.#list.children as HTMLCollectionOf<HTMLElement>;
    // Each round of a long wait says the same.
    if (!sentence || [...lines].some(({ dataset }) => dataset.call === callOf(event))) return;
    const line = element("li", { className: event.phase === "violated" ? "broken" : "" });
    line.dataset.call = callOf(event);
    line.append(`${Math.round(event.time)} ms: ${sentence}`);
    this.#list.append(line);
    while (lines.length > told) lines[0]!.remove();
  }
}

/** The call whose round was refused; of such sentences one is enough. Other events have a name of their own. */
function callOf({ operation, call, time, phase, client }: TimelineEvent): string {
  return operation === "round" && call !== undefined ? call : `${phase} ${time} ${client}`;
}
