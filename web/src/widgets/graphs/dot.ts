/** A drawing in the language of Graphviz, for its own layouts and for other tools. */
import type { Scene } from "./scene";

/** What is drawn, as DOT; `dot -Tsvg` draws it. */
export function sceneDot(scene: Scene, title: string): string {
  const boxes = scene.boxes.map(({ label, owner, detail, kind }, number) => {
    const text = [label, owner, detail].filter((line) => line !== "").join("\n");
    const shape = ["input", "output", "attribute"].includes(kind) ? " shape=ellipse" : "";
    return `  box${number} [label=${quoted(text)}${shape}]`;
  });
  const lines = scene.edges.map(({ source, target }) => `  box${source} -> box${target}`);
  return [`digraph ${quoted(title)} {`, '  rankdir=TB\n  node [shape=box style=rounded fontname="Helvetica"]', ...boxes, ...lines, "}"].join("\n");
}

/** A string of DOT: quotes and backslashes escaped, lines parted by an escape of their own. */
function quoted(text: string): string {
  const printable = text.replace(/[\u0000-\u0009\u000b-\u001f\u007f]/g, "\ufffd");
  return `"${printable.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
}
