/** What is asked of a table, as parameters of the address: `find=gemm&sort=-total_ns,calls&where=share:>5%`. */
import { useEffect, useRef, useState } from "preact/hooks";
import { leaveOut } from "../../shell/notice";
import { type Changes, parseRoute, remember, type Route } from "../../shell/router";
import { parseBound } from "./bounds";
import { type Column, isWords, type Sort } from "./model";

/** What the reader asks for. */
export interface Asked {
  readonly find: string;
  /** What is asked of columns, by key; null while nobody asks. */
  readonly bounds: Readonly<Record<string, string>> | null;
  readonly sort: readonly Sort[];
}

/** Where in the address a table keeps it. */
export interface Kept {
  readonly page: string;
  readonly route: Route;
  /** Stands before the names of its parameters, as in `gaps.sort`, where a page has several tables. */
  readonly name?: string;
}

type Parameters = Readonly<Record<string, string>>;
const NOTHING = "none";

/** What parameters ask of a table, null when they say nothing of it; and those parts that make no sense there. */
export function parseAsked(parameters: Parameters, name: string, columns: readonly Column[], first: Asked): { asked: Asked | null; wrong: string[] } {
  const [find, sort, where] = ["find", "sort", "where"].map((key) => parameters[prefixed(name, key)]);
  if (find === undefined && sort === undefined && where === undefined) return { asked: null, wrong: [] };
  const wrong: string[] = [];
  const known = (part: string, key: string): Column | undefined => {
    const column = columns.find((one) => one.key === key);
    if (column === undefined) wrong.push(part);
    return column;
  };
  const keys = (sort === NOTHING ? "" : (sort ?? "")).split(",").filter((part) => part !== "");
  const sorts = keys.flatMap((part) => {
    const key = part.replace(/^-/, "");
    return known(`${prefixed(name, "sort")}=${part}`, key) === undefined ? [] : [{ key, down: part.startsWith("-") }];
  });
  const bounds: Record<string, string> = {};
  for (const part of (where ?? "").split(";").filter((one) => one !== "")) {
    const at = part.indexOf(":");
    const text = part.slice(at + 1);
    const column = known(`${prefixed(name, "where")}=${part}`, part.slice(0, Math.max(at, 0)));
    if (column === undefined) continue;
    if (isWords(column.kind) || parseBound(column.kind, text) === null) wrong.push(`${prefixed(name, "where")}=${part}`);
    else bounds[column.key] = text;
  }
  const sorted = sort === undefined || (sorts.length === 0 && sort !== NOTHING) ? first.sort : sorts;
  return { asked: { find: find ?? "", bounds: Object.keys(bounds).length === 0 ? null : bounds, sort: sorted }, wrong };
}

/** The parameters of what is asked; what is as at first is taken out. */
export function formatAsked({ find, bounds, sort }: Asked, name: string, first: Asked): Changes {
  const where = Object.entries(bounds ?? {}).filter(([, text]) => text.trim() !== "").map(([key, text]) => `${key}:${text.trim()}`);
  const order = sortText(sort);
  return {
    [prefixed(name, "find")]: find || null,
    [prefixed(name, "sort")]: order === sortText(first.sort) ? null : order || NOTHING,
    [prefixed(name, "where")]: where.join(";") || null,
  };
}

function sortText(sort: readonly Sort[]): string {
  return sort.map(({ key, down }) => `${down ? "-" : ""}${key}`).join(",");
}

function prefixed(name: string, key: string): string {
  return name === "" ? key : `${name}.${key}`;
}

/** What is asked of a table, and how to ask for something else; in step with the address where it is kept there. */
export function useAsked(columns: readonly Column[], first: Asked, kept: Kept | undefined): [Asked, (change: Partial<Asked>) => void] {
  const { page = "", name = "" } = kept ?? {};
  const read = (parameters: Parameters): Asked | null => {
    const { asked, wrong } = parseAsked(parameters, name, columns, first);
    leaveOut(wrong);
    return asked;
  };
  const [asked, setAsked] = useState<Asked>(() => {
    const here = kept === undefined ? null : parseRoute(location.hash);
    return (here?.page === page ? read(here.parameters) : null) ?? first;
  });
  const seen = useRef(kept?.route);
  useEffect(() => {
    if (kept === undefined || seen.current === kept.route) return;
    seen.current = kept.route;
    if (kept.route.page !== page) return;
    const named = read(kept.route.parameters);
    // Who comes back from another page finds all as it was; on the page itself the address counts.
    if (named !== null || kept.route.from === page) setAsked(named ?? first);
    else remember(page, formatAsked(asked, name, first));
  }, [kept?.route]);
  const change = (wanted: Partial<Asked>): void => {
    const next = { ...asked, ...wanted };
    setAsked(next);
    // Headings are clicked, and so is what takes all bounds away; the rest is typed.
    if (kept !== undefined) remember(page, formatAsked(next, name, first), "sort" in wanted || wanted.bounds === null);
  };
  return [asked, change];
}
