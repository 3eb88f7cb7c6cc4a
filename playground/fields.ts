import { element, setText } from "./dom.ts";

/** A control with a value. */
export interface Field<Value> {
  readonly element: HTMLElement;
  /** Shows a value that something else has chosen. */
  show(value: Value): void;
}

/** A whole number between two. */
export function slider(
  label: string,
  { least, most, unit }: { readonly least: number; readonly most: number; readonly unit: string },
  choose: (value: number) => void,
): Field<number> {
  const text = element("span");
  const input = element("input", { type: "range", min: String(least), max: String(most) });
  const say = () => setText(text, `${label}: ${input.value} ${unit}`);
  input.addEventListener("input", say);
  input.addEventListener("change", () => choose(Number(input.value)));
  return {
    element: element("label", {}, text, input),
    show: (value) => {
      input.value = String(Math.round(value));
      say();
    },
  };
}
