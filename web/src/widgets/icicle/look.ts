/** What the reader looks at, and how it is written into the address. */
import { HIDDEN, type Hidden } from "./hiding";
import type { Order } from "./layout";
import { type Weight, WEIGHTS } from "./tree";

/** Everything that the reader can choose. */
export interface Look {
  /** Which recording; the part of the block's name after the slash. Empty for the first. */
  readonly rank: string;
  /** Null for what the tree has most to say about. */
  readonly weight: Weight | null;
  /** Of two, the side that boxes are as wide as. */
  readonly side: "before" | "after";
  readonly order: Order;
  readonly hide: readonly Hidden[];
  /** Name that the tree is turned about; empty for none. */
  readonly about: string;
  /** Path of the selected node; empty for none. */
  readonly node: string;
  readonly find: string;
}

/** How it is at first. */
export const FIRST_LOOK: Look = {
  rank: "",
  weight: null,
  side: "after",
  order: "size",
  hide: ["chains"],
  about: "",
  node: "",
  find: "",
};

const NOTHING = "none";

/** What an address says; what it leaves out is as at first. */
export function parseLook(parameters: Readonly<Record<string, string>>): Look {
  const { rank = "", weight, side, order, hide, about = "", node = "", find = "" } = parameters;
  return {
    rank,
    weight: WEIGHTS.find((one) => one === weight) ?? null,
    side: side === "before" ? "before" : "after",
    order: order === "call" ? "call" : "size",
    hide: hide === undefined ? FIRST_LOOK.hide : HIDDEN.filter((one) => hide.split(" ").includes(one)),
    about,
    node,
    find,
  };
}

/** Those parameters of an address whose values are none of those that can be chosen, as they stand there. */
export function wrongIn(parameters: Readonly<Record<string, string>>): string[] {
  const choices: Readonly<Record<string, readonly string[]>> = { weight: WEIGHTS, side: ["before", "after"], order: ["size", "call"], hide: [...HIDDEN, NOTHING] };
  return Object.entries(choices).flatMap(([key, known]) => {
    const value = parameters[key];
    return value === undefined || value.split(" ").every((one) => known.includes(one)) ? [] : [`${key}=${value}`];
  });
}

/** The parameters of an address: only what is not as at first. */
export function formatLook(look: Look): Record<string, string> {
  const all: Record<keyof Look, string> = {
    ...look,
    weight: look.weight ?? "",
    hide: look.hide.join(" ") || NOTHING,
  };
  const first: Record<keyof Look, string> = { ...FIRST_LOOK, weight: "", hide: FIRST_LOOK.hide.join(" ") };
  const told = Object.entries(all).filter(([key, value]) => value !== first[key as keyof Look]);
  return Object.fromEntries(told);
}

/** Names of all parameters that are ours. */
export const LOOK_KEYS: readonly string[] = Object.keys(FIRST_LOOK);
