import { describe, expect, it } from "vitest";
import { requireSelfContained } from "../cuts.mjs";

const piece = (widgets, text) => ({ widgets: widgets.split(" ").filter((name) => name !== ""), text });
const cut = (...pieces) => () => requireSelfContained([piece("", "(()=>{"), ...pieces, piece("", "})();")]);

describe("pieces of a script", () => {
  it("may name what every page with them has", () => {
    expect(cut(piece("", "var a=1;"), piece("idle memory", "function b(){return a}"), piece("idle", "b();"))).not.toThrow();
  });

  it("may not name what a page with them can lack", () => {
    expect(cut(piece("idle", "var b=1;"), piece("memory", "(()=>b)();"))).toThrow(/b, in the piece of memory, is declared for idle/);
    expect(cut(piece("idle", "function b(){}"), piece("idle memory", "b();"))).toThrow(/in the piece of idle and memory/);
    expect(cut(piece("idle", "const b=1;"), piece("", "b;"))).toThrow(/in the piece of every page/);
  });

  it("may have names of their own that stand elsewhere too", () => {
    expect(cut(piece("idle", "var b=1;"), piece("memory", "(b=>b)(2);"))).not.toThrow();
  });

  it("give a variable its first value where it is declared", () => {
    expect(cut(piece("", "var a;"), piece("idle", "a=1;"))).toThrow(/a, in the piece of idle, gets its value only there/);
    expect(cut(piece("", "var a=0;"), piece("idle", "(()=>{a=1})();"))).not.toThrow();
  });

  it("are whole statements", () => {
    expect(cut(piece("", "var a=["), piece("idle", "1];"))).toThrow(SyntaxError);
  });
});
