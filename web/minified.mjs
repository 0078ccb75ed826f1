// The pass behind esbuild's: shorter code, which may stand inside a `<script>` element.
import { minify } from "terser";

/** A program in fewer bytes, with `compress` among the options. Nothing that is called unsafe is switched on. */
export async function minified(program, compress = {}) {
  const { code } = await minify(program, {
    module: true,
    ecma: 2020,
    compress: { ecma: 2020, toplevel: true, passes: 3, ...compress },
    mangle: { toplevel: true },
    format: { inline_script: true },
  });
  if (/<\/script|<!--/i.test(code)) throw new Error("the script would end its element");
  return code;
}
