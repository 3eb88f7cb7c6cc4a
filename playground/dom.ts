/** What an element gets: properties, or listeners whose names begin with `on`. */
type Given = Readonly<Record<string, unknown>>;

/** A new element. Text is text: nothing is parsed as markup. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  given: Given = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value as EventListener);
    else if (key.includes("-") || key === "for" || key === "role") made.setAttribute(key, String(value));
    else Reflect.set(made, key, value);
  }
  made.append(...children);
  return made;
}

/** A button that says what it does. */
export function button(label: string, act: () => void, given: Given = {}): HTMLButtonElement {
  return element("button", { type: "button", onclick: act, ...given }, label);
}

/** Changes a text only where it differs, so that a selection in the page survives. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}
