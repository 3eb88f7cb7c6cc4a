type Child = Node | string;

/** An element with its class, and what is in it. Texts are texts: nothing is parsed as markup. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  kind: string,
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (kind !== "") made.className = kind;
  made.append(...children);
  return made;
}

/** How many characters of a long name's end are shown: the style leaves room for as many. */
const endLength = 12;

/** A name that is cut in the middle where it has no room, as many differ at the end only; it is whole when it is pointed at. */
export function cut(text: string): HTMLElement {
  const parts =
    text.length <= 2 * endLength
      ? [text]
      : [element("span", "start", text.slice(0, -endLength)), text.slice(-endLength)];
  const made = element("span", "cut", ...parts);
  made.title = text;
  return made;
}

/** A button. */
export function button(text: string, onClick: () => void): HTMLButtonElement {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

/**
 * Puts children into an element, and leaves alone what is equal already: a title is shown only where what the pointer is
 * on stays.
 */
export function show(parent: Element, fresh: readonly Node[]): void {
  for (const [index, node] of fresh.entries()) {
    const old = parent.childNodes[index];
    if (old === undefined) parent.append(node);
    else if (isList(old) && isList(node) && old.cloneNode().isEqualNode(node.cloneNode())) {
      show(old, [...node.childNodes]);
    } else if (!old.isEqualNode(node)) old.replaceWith(node);
  }
  while (parent.childNodes.length > fresh.length) parent.lastChild?.remove();
}

const isList = (node: Node): node is Element => /^(?:TABLE|THEAD|TBODY|TR|OL|UL|LI)$/.test(node.nodeName);

/** A column of a table. `kind`: `name`, `number` or none. */
export interface Column<Row> {
  readonly label: string;
  readonly kind?: "name" | "number";
  /** px. Default: what the others leave. */
  readonly width?: number;
  cell(row: Row): Child;
}

/** A table; on a narrow screen each row is a block, with its labels. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): HTMLTableElement {
  const heads = columns.map(({ label, kind = "", width }) => {
    const head = element("th", kind, label);
    if (width !== undefined) head.style.width = `${width}px`;
    return head;
  });
  const body = rows.map((row) => {
    const cells = columns.map(({ label, kind = "", cell }) => {
      const made = element("td", kind, cell(row));
      made.dataset.label = label;
      made.title = made.textContent?.trim() ?? "";
      return made;
    });
    return element("tr", "", ...cells);
  });
  return element(
    "table",
    "stack",
    element("thead", "", element("tr", "", ...heads)),
    element("tbody", "", ...body),
  );
}
