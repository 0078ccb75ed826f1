// Bundles the interactive part of the report: one script and one style sheet, which Python inlines into every page.
// `node build.mjs` writes them among the package's assets; `--check` compares instead and fails on a difference.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const assets = fileURLToPath(new URL("../src/pyrometer/report/assets/", import.meta.url));
const shared = { bundle: true, minify: true, write: false, target: ["es2022"], legalComments: "none", logLevel: "warning" };

/** A worker's script as text: pages that load nothing start it from a blob. */
const workerText = {
  name: "worker-text",
  setup(bundler) {
    bundler.onLoad({ filter: /\.worker\.ts$/ }, async ({ path }) => {
      const { outputFiles } = await build({ ...shared, entryPoints: [path], format: "iife" });
      return { contents: outputFiles[0].text, loader: "text" };
    });
  },
};

const { outputFiles, metafile } = await build({
  ...shared,
  entryPoints: { report: "src/main.ts", style: "src/style.css" },
  outdir: "out",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [workerText],
  metafile: true,
});
const made = new Map(outputFiles.map((file) => [file.path.endsWith(".css") ? "report.css" : "report.js", file.text]));
made.set("LICENSES.txt", await licences(metafile));

let stale = 0;
for (const [name, text] of made) {
  if (!process.argv.includes("--check")) await writeFile(assets + name, text);
  else if ((await readFile(assets + name, "utf8").catch(() => "")) !== text) {
    console.error(`${name} is not what web/src builds; run "make web" and commit it`);
    stale += 1;
  }
}
process.exitCode = stale ? 1 : 0;

/** The licences of the packages whose code is in the bundle. */
async function licences({ inputs }) {
  const packages = new Set(
    [...Object.keys(inputs), "node_modules/@dagrejs/dagre/package.json"]
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
