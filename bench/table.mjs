/** Prints a title, and the head of a table in Markdown. */
export function printHead(title, ...columns) {
  console.log(`\n${title}\n`);
  printRow(...columns);
  printRow(...columns.map(() => "---"));
}

export function printRow(...cells) {
  console.log(`| ${cells.join(" | ")} |`);
}
