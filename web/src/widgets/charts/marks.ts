/** Geometry of marks: paths, labels that do not cover each other, and which mark is meant. */

/** A mark that can be read: where it is, in pixels of the drawing, and what is said about it. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  /** What it is, then its figures, a line each. */
  readonly lines: readonly string[];
}

/** Many dots in one element: each is a line of no length, drawn as a disc by round ends. */
export function dots(places: readonly (readonly [number, number])[]): string {
  return places.map(([x, y]) => `M${short(x)} ${short(y)}h0`).join("");
}

/** A line through places. */
export function polyline(places: readonly (readonly [number, number])[]): string {
  return places.map(([x, y], i) => `${i === 0 ? "M" : "L"}${short(x)} ${short(y)}`).join("");
}

/** A line that goes on level and then jumps, as a distribution does. */
export function steps(places: readonly (readonly [number, number])[]): string {
  return places.map(([x, y], i) => (i === 0 ? `M${short(x)} ${short(y)}` : `H${short(x)}V${short(y)}`)).join("");
}

/** A triangle around a place, pointing up or down. */
export function triangle(x: number, y: number, size = 4.5, down = false): string {
  const tip = down ? size : -size;
  return `M${short(x)} ${short(y + tip)}L${short(x + size)} ${short(y - tip * 0.7)}H${short(x - size)}Z`;
}

/** A diamond around a place. */
export function diamond(x: number, y: number, size = 7): string {
  return `M${short(x)} ${short(y - size)}l${size} ${size}l${-size} ${size}l${-size} ${-size}Z`;
}

function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** How far from the pointer a mark may be, in pixels. */
export const REACH = 48;

/** The mark nearest to a place; only across when the drawing is read from left to right. Null when all are too far. */
export function nearest(spots: readonly Spot[], x: number, y: number, across: boolean): number | null {
  let [best, least] = [-1, Infinity];
  spots.forEach((spot, i) => {
    const aside = Math.abs(spot.x - x);
    // Of marks above each other the one at the pointer's height is meant.
    const far = across ? aside + Math.abs(spot.y - y) * 1e-3 : Math.hypot(aside, spot.y - y);
    if (far < least) [best, least] = [i, far];
  });
  return best >= 0 && (across || least <= REACH) ? best : null;
}

/** The mark that a key leads to from here; null leaves the drawing. Undefined for keys that mean nothing here. */
export function stepped(key: string, shift: boolean, at: number | null, count: number): number | null | undefined {
  if (key === "Escape") return null;
  if (count === 0) return undefined;
  const stride = Math.max(1, Math.round(count / 100)) * (shift ? 10 : 1);
  const held = (place: number): number => Math.min(Math.max(place, 0), count - 1);
  if (key === "ArrowRight" || key === "ArrowDown") return at === null ? 0 : held(at + stride);
  if (key === "ArrowLeft" || key === "ArrowUp") return at === null ? count - 1 : held(at - stride);
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : undefined;
}

/** A label that wants to stand beside a mark. */
export interface Wanted {
  readonly x: number;
  readonly y: number;
  /** Radius of its mark. */
  readonly gap: number;
  readonly text: string;
  /** Where it may stand, instead of beside the mark. */
  readonly tries?: readonly Omit<Placed, "text">[];
}

/** A label that has found its place. */
export interface Placed {
  readonly x: number;
  readonly y: number;
  readonly anchor: "start" | "end" | "middle";
  readonly text: string;
}

/** A part of the drawing. */
export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** About how wide a text is drawn, in pixels. */
export function widthOf(text: string, size = 12): number {
  let width = 0;
  for (const character of text) width += (character.codePointAt(0) ?? 0) > 0x2e7f ? size : size * 0.6;
  return width;
}

/** Places for labels, the most important first; one that would cover another or something taken, or leave the frame, is dropped. */
export function placed(wanted: readonly Wanted[], frame: Box, alreadyTaken: readonly Box[] = []): Placed[] {
  const taken = [...alreadyTaken];
  const found: Placed[] = [];
  for (const { x, y, gap, text, tries } of wanted) {
    const width = widthOf(text);
    const beside: readonly Omit<Placed, "text">[] = [
      { x: x + gap + 5, y: y + 4, anchor: "start" },
      { x: x - gap - 5, y: y + 4, anchor: "end" },
      { x, y: y - gap - 5, anchor: "middle" },
      { x, y: y + gap + 14, anchor: "middle" },
    ];
    for (const one of tries ?? beside) {
      const left = one.anchor === "start" ? one.x : one.anchor === "end" ? one.x - width : one.x - width / 2;
      const box = { left, right: left + width, top: one.y - 11, bottom: one.y + 4 };
      const inside = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
      if (!inside || taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      found.push({ ...one, text });
      break;
    }
  }
  return found;
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** A name that fits into so many characters, its middle left out: beginnings and endings tell names apart. */
export function shortened(name: string, most: number): string {
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) * 0.6);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

/**
 * A row for each label of vertical lines, 0 the lowest, so that lines do not cross labels: the first `leaning` of them
 * lean right, over lines that begin below them; the others lean left, above all of those.
 */
export function labelRows(count: number, leaning: number): number[] {
  return Array.from({ length: count }, (_, i) => (i < leaning ? leaning - 1 - i : i));
}
