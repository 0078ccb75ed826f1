/** A shape for what bounds an operator, so that colour does not carry it alone. */
import { diamond } from "../charts/marks";

/** What can bound an operator; everything else counts as unknown. */
export const BOUNDS = ["memory", "compute", "overhead", "unknown"] as const;
export type Kind = (typeof BOUNDS)[number];

/** The bound as it is drawn. */
export function kindOf(bound: string): Kind {
  return BOUNDS.find((kind) => kind === bound) ?? "unknown";
}

/** A disc for memory, a square for arithmetic, a diamond for overhead, a ring (an unfilled disc) for unknown. */
export function shapeOf(kind: Kind, x: number, y: number, radius: number): string {
  if (kind === "compute") {
    const half = radius * 0.89; // of the same area as the disc
    return `M${x - half} ${y - half}h${half * 2}v${half * 2}h${-half * 2}Z`;
  }
  if (kind === "overhead") return diamond(x, y, radius * 1.25);
  return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${radius * 2} 0a${radius} ${radius} 0 1 0 ${-radius * 2} 0Z`;
}
