import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute } from "../src/shell/router";
import { type Asked, formatAsked, parseAsked } from "../src/widgets/table/asked";
import type { Column } from "../src/widgets/table/model";

const COLUMNS: readonly Column[] = [
  { key: "name", title: "Name", kind: "code" },
  { key: "total_ns", title: "Time", kind: "ns" },
  { key: "share", title: "Share", kind: "share" },
];
const FIRST: Asked = { find: "", bounds: null, sort: [{ key: "total_ns", down: true }] };
const asked: Asked = { find: "gemm -relu", bounds: { share: ">5%", total_ns: "10us..2ms" }, sort: [{ key: "name", down: false }, { key: "share", down: true }] };

describe("what is asked of a table", () => {
  it("stands in the address, short, and is read back", () => {
    const parameters = formatAsked(asked, "", FIRST) as Record<string, string>;
    expect(parameters).toEqual({ find: "gemm -relu", sort: "name,-share", where: "share:>5%;total_ns:10us..2ms" });
    const address = formatRoute({ page: "operators", parameters });
    expect(address).toBe("#/operators?find=gemm+-relu&sort=name,-share&where=share:%3E5%25;total_ns:10us..2ms");
    expect(parseAsked(parseRoute(address)?.parameters ?? {}, "", COLUMNS, FIRST)).toEqual({ asked, wrong: [] });
  });

  it("is taken out of the address where it is as at first", () => {
    expect(formatAsked(FIRST, "gaps", FIRST)).toEqual({ "gaps.find": null, "gaps.sort": null, "gaps.where": null });
    expect(parseAsked({ sort: "-name" }, "gaps", COLUMNS, FIRST)).toEqual({ asked: null, wrong: [] });
  });

  it("may be to sort by nothing", () => {
    const unsorted = { ...FIRST, sort: [] };
    expect(formatAsked(unsorted, "", FIRST)).toMatchObject({ sort: "none" });
    expect(parseAsked({ sort: "none" }, "", COLUMNS, FIRST).asked).toEqual(unsorted);
  });

  it("leaves out what makes no sense, and tells which parts", () => {
    const damaged = { sort: "-colour,share", where: "share:often;name:>3;weight:>1;;:;share", find: "x" };
    expect(parseAsked(damaged, "", COLUMNS, FIRST)).toEqual({
      asked: { find: "x", bounds: null, sort: [{ key: "share", down: false }] },
      wrong: ["sort=-colour", "where=share:often", "where=name:>3", "where=weight:>1", "where=:", "where=share"],
    });
    expect(parseAsked({ sort: "colour" }, "", COLUMNS, FIRST).asked).toEqual(FIRST);
  });
});

describe("a query", () => {
  it("may hold question marks, as people write them", () => {
    expect(parseRoute("#/operators?find=a?b=c")?.parameters).toEqual({ find: "a?b=c" });
  });
});
