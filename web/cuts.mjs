// Proves that pieces of one program may be left out: no piece that a page has names what a piece that it lacks declares.
import { parse } from "acorn";
import { analyze } from "eslint-scope";

const ECMA = 2022;

/**
 * Fails where a page could lack what its script names. The first piece opens the function around all others, which the
 * last one closes; a piece without widgets is on every page.
 */
export function requireSelfContained(pieces) {
  for (const { text } of pieces.slice(1, -1)) parse(text, { ecmaVersion: ECMA }); // whole statements, or it throws
  const ends = [];
  for (const { text } of pieces) ends.push((ends.at(-1) ?? 0) + text.length + 1);
  const program = pieces.map(({ text }) => text).join("\n");
  const home = (node) => pieces[ends.findIndex((end) => node.range[0] < end)];
  const faults = shared(program).flatMap((variable) => faultsOf(variable, home));
  if (faults.length > 0) throw new Error(`the script cannot be cut: ${[...new Set(faults)].join("; ")}`);
}

/** The variables that all pieces share. */
function shared(program) {
  const tree = parse(program, { ecmaVersion: ECMA, ranges: true });
  const everything = analyze(tree, { ecmaVersion: ECMA, sourceType: "script" });
  return everything.globalScope.childScopes[0].variables.filter(({ defs }) => defs.length > 0);
}

function faultsOf({ name, defs, references, scope }, home) {
  const declared = defs.map((definition) => home(definition.name));
  return references.flatMap((reference) => {
    const here = home(reference.identifier);
    const where = `${name}, in the piece of ${said(here)}`;
    if (!declared.some((piece) => isWherever(piece, here))) return [`${where}, is declared for ${declared.map(said)}`];
    // A variable's first value, unlike what functions give it later, must not depend on other widgets of the page.
    const isFirst = reference.isWrite() && reference.from === scope;
    return isFirst && !declared.every((piece) => isWherever(here, piece)) ? [`${where}, gets its value only there`] : [];
  });
}

/** Whether every page with one piece has the other. */
function isWherever(other, one) {
  return other.widgets.length === 0 || (one.widgets.length > 0 && one.widgets.every((widget) => other.widgets.includes(widget)));
}

function said({ widgets }) {
  return widgets.join(" and ") || "every page";
}
