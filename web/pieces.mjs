// Cuts the report's script into pieces, so that a page carries no more of it than its widgets need. What several
// widgets share is a piece of its own. All pieces are minified as one program and share one scope: a page's script is
// what is left of the whole without the pieces that no widget of the page needs.
import { readdir } from "node:fs/promises";
import { basename } from "node:path";
import { parse, tokTypes } from "acorn";
import { build } from "esbuild";
import { requireSelfContained } from "./cuts.mjs";
import { minified } from "./minified.mjs";

const START = "src/main.ts";
const TEXTS = "src/i18n/texts.ts"; // stands first: any module may hold a text
const SHORT = 16; // a reference to the table is not much shorter
const CUT = "debugger;"; // a minifier neither moves it nor joins it with another statement; `cuts.mjs` proves that nothing crossed it

/**
 * The whole script, and the modules in it. Before each piece stands a line `//@` with the widgets that need it; where
 * it names none, every page does. A text of the interface stands in it as its place among `texts`, data of the page.
 */
export async function script(options, texts) {
  const inputs = await modules(options);
  const groups = grouped(inputs);
  const program = await whole(groups, options);
  const small = await minified(withoutTexts(program, texts), { drop_debugger: false });
  const parts = small.split(CUT);
  if (parts.length !== groups.length + 1 || small.includes("\n//@")) throw new Error("the script cannot be cut");
  const cut = parts.map((part, index) => ({ widgets: groups[index]?.widgets ?? [], text: part.trim() }));
  const everywhere = (text) => ({ widgets: [], text });
  const pieces = [everywhere('(()=>{"use strict";'), ...cut.filter(({ text }) => text !== ""), everywhere("})();")];
  requireSelfContained(pieces);
  const lines = pieces.map(({ widgets, text }) => `${["//@", ...widgets].join(" ")}\n${text}\n`);
  return { text: lines.join(""), inputs };
}

/** All modules, each with its imports. */
async function modules(options) {
  const entryPoints = [START, ...(await readdir("src/pieces")).map((file) => `src/pieces/${file}`)];
  const { metafile } = await build({ ...options, entryPoints, outdir: "out", metafile: true });
  return metafile.inputs;
}

/** The modules by the widgets that reach them, so ordered that what a piece needs stands before it. */
function grouped(inputs) {
  const widgets = Object.keys(inputs).filter((path) => path.startsWith("src/pieces/")).sort();
  const everywhere = reached(START, inputs);
  const users = new Map([...everywhere].map((path) => [path, []]));
  for (const widget of widgets)
    for (const path of reached(widget, inputs))
      if (!everywhere.has(path)) users.set(path, [...(users.get(path) ?? []), basename(widget, ".ts")]);
  users.delete(START);
  users.delete(TEXTS);
  const groups = new Map([["", { widgets: [], modules: [TEXTS] }]]);
  for (const [path, needing] of [...users].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const group = groups.get(`${needing}`) ?? { widgets: needing, modules: [] };
    groups.set(`${needing}`, group);
    group.modules.push(path);
  }
  // What a module imports is needed by the same widgets, and perhaps by more.
  const many = (group) => group.widgets.length || Infinity;
  return [...groups.values()].sort((one, other) => many(other) - many(one) || (`${one.widgets}` < `${other.widgets}` ? -1 : 1));
}

/** A module and all that it imports. */
function reached(path, inputs, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const imported of inputs[path].imports) reached(imported.path, inputs, found);
  return found;
}

/** One program: the modules group by group with a cut behind each, and last what starts it. */
async function whole(groups, options) {
  const imports = groups.flatMap(({ modules }, index) => [...modules.map((path) => `./${path}`), `cut:${index}`]);
  const cuts = {
    name: "cuts",
    setup(bundler) {
      bundler.onResolve({ filter: /^cut:/ }, ({ path }) => ({ path, namespace: "cut" }));
      bundler.onLoad({ filter: /.*/, namespace: "cut" }, () => ({ contents: CUT }));
    },
  };
  const { outputFiles } = await build({
    ...options,
    minify: false,
    format: "esm",
    stdin: { contents: [...imports, `./${START}`].map((path) => `import "${path}";`).join("\n"), resolveDir: "." },
    plugins: [...options.plugins, cuts],
  });
  return outputFiles[0].text;
}

/** The program with a reference in place of each longer text; names of properties and cases stay as they are. */
function withoutTexts(program, texts) {
  if (!/^var TEXTS = /m.test(program)) throw new Error("another name hides the table of texts");
  const places = new Map([...texts.entries()].map(([place, text]) => [text, place]));
  const tokens = []; // and no search for quotes, which may stand inside of other strings
  parse(program, { ecmaVersion: 2022, sourceType: "module", onToken: tokens });
  let made = "";
  let copied = 0;
  for (const { type, value, start, end } of tokens) {
    if (type !== tokTypes.string || value.length < SHORT || !places.has(value) || program[end] === ":") continue;
    made += `${program.slice(copied, start)}TEXTS[${places.get(value)}]`;
    copied = end;
  }
  return made + program.slice(copied);
}
