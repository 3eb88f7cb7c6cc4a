/** The path of a patch's file, relative to the project. @param {string} file */
export const pathOf = (file) => (file.startsWith("twins/") ? `lock-server/src/${file}` : `src/${file}`);

/**
 * Applies a patch of a mutant to a source.
 *
 * @param {string} source
 * @param {import("./mutant.ts").Patch} patch
 * @returns {string} the patched source
 * @throws when its function, or its text in there, is not found exactly once
 */
export function applyPatch(source, { file, within, find, replace }) {
  const [from, to] = within ? placeOf(within, source, file) : [0, source.length];
  const pieces = source.slice(from, to).split(find);
  if (pieces.length !== 2) {
    const where = within ? `${within} of ${pathOf(file)}` : pathOf(file);
    throw new Error(`found ${pieces.length - 1} times in ${where}:\n${find}`);
  }
  return source.slice(0, from) + pieces.join(replace) + source.slice(to);
}

/**
 * Where a function, method, class or constant begins and ends; overloads are one. The formatter indents the last line as the
 * first.
 */
function placeOf(name, source, file) {
  const declared = `^( *)(?:export |async )*(?:function\\*? |class |const )${name}\\b.*`;
  const member = `^( {2})(?:async |static |get |\\*)*${name}[(<].*(?: \\{|[(<,])$`;
  const found = [...source.matchAll(new RegExp(`${declared}|${member}`, "gm"))];
  const [first, last] = [found[0], found.at(-1)];
  if (!first || !last) throw new Error(`${pathOf(file)} does not declare ${name}`);
  if (last[0].endsWith(";")) return [first.index, last.index + last[0].length];
  const end = source.slice(last.index).search(new RegExp(`^${last[1] ?? last[2]}\\}[;)]*$`, "m"));
  return [first.index, end < 0 ? source.length : last.index + end];
}
