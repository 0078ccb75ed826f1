// Bundles the interactive part of the report, which Python inlines: a script in pieces, of which a page gets what its
// widgets need, a few lines that run before it, a style sheet, the texts of the interface in each language, and the
// worker for graphs.
// `node build.mjs` writes them among the package's assets; `--check` compares instead and fails on a difference.
import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minified } from "./minified.mjs";
import { script } from "./pieces.mjs";

const assets = fileURLToPath(new URL("../src/pyrometer/report/assets/", import.meta.url));
const shared = {
  bundle: true,
  minify: true,
  write: false,
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

const workers = new Map();
const workerInputs = {};

/** A worker's script is data of the pages that need it: pages that load nothing start it from a blob. */
const workerData = {
  name: "worker-data",
  setup(bundler) {
    bundler.onLoad({ filter: /\.worker\.ts$/ }, async ({ path }) => {
      const { outputFiles, metafile } = await build({ ...shared, entryPoints: [path], format: "iife", metafile: true });
      Object.assign(workerInputs, metafile.inputs);
      const name = basename(path, ".worker.ts");
      workers.set(`${name}.js`, await minified(outputFiles[0].text));
      const blocks = JSON.stringify(fileURLToPath(new URL("src/data/blocks", import.meta.url)));
      return {
        contents: `import { Blocks } from ${blocks};\nexport default () => new Blocks(document).read("worker/${name}");`,
      };
    });
  },
};

const dictionary = await translations("src/i18n/chinese.ts");
const report = await script(
  { ...shared, jsx: "automatic", jsxImportSource: "preact", plugins: [workerData] },
  Object.keys(dictionary),
);
const { outputFiles } = await build({
  ...shared,
  entryPoints: { theme: "src/shell/early.ts", style: "src/style.css" },
  outdir: "out",
  format: "iife",
});
const made = new Map(outputFiles.map((file) => [basename(file.path).replace("style.css", "report.css"), file.text]));
made.set("report.js", report.text);
for (const [name, text] of workers) made.set(name, text);
made.set("english.json", JSON.stringify(Object.keys(dictionary)));
made.set("chinese.json", JSON.stringify(Object.values(dictionary)));
made.set("LICENSES.txt", await licences({ ...report.inputs, ...workerInputs }));

let stale = 0;
for (const [name, text] of made) {
  if (!process.argv.includes("--check")) await writeFile(assets + name, text);
  else if ((await readFile(assets + name, "utf8").catch(() => "")) !== text) {
    console.error(`${name} is not what web/src builds; run "make web" and commit it`);
    stale += 1;
  }
}
process.exitCode = stale ? 1 : 0;

/** The dictionary of a language: its texts are data of a page, in the same order as the English ones. */
async function translations(path) {
  const { outputFiles } = await build({ ...shared, entryPoints: [path], format: "esm" });
  const { CHINESE } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
  return CHINESE;
}

/** The licences of the packages whose code is in the bundle. */
async function licences(inputs) {
  const packages = new Set(
    Object.keys(inputs)
      .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
      .filter(Boolean),
  );
  const texts = [...packages].sort().map(async (name) => {
    const { version, license } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
    const text = await firstOf(["LICENSE", "LICENSE.md", "LICENSE.txt"].map((file) => `node_modules/${name}/${file}`));
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

async function firstOf(paths) {
  for (const path of paths) {
    const text = await readFile(path, "utf8").catch(() => null);
    if (text !== null) return text;
  }
  throw new Error(`no licence among ${paths.join(", ")}`);
}
