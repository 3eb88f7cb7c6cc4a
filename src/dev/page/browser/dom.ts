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

/** A button. */
export function button(text: string, onClick: () => void): HTMLButtonElement {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

/** A column of a table. `kind`: `name`, `number` or none. */
export interface Column<Row> {
  readonly label: string;
  readonly kind?: "name" | "number";
  cell(row: Row): Child;
}

/** A table; on a narrow screen each row is a block, with its labels. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): HTMLTableElement {
  const heads = columns.map(({ label, kind = "" }) => element("th", kind, label));
  const body = rows.map((row) => {
    const cells = columns.map(({ label, kind = "", cell }) => {
      const made = element("td", kind, cell(row));
      made.dataset.label = label;
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
