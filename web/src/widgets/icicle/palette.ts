/** Colours of boxes and of the text in them, read from the style sheet once per theme. */
import { colour, PHASES } from "../../canvas/theme";
import type { Level } from "./change";

/** A colour, and one that can be read on it. */
export interface Paint {
  readonly fill: string;
  readonly text: string;
}

/** All colours of the drawing. */
export interface Palette {
  readonly kinds: readonly Paint[];
  readonly levels: Readonly<Record<Level, Paint>>;
  readonly merged: string;
  readonly outline: string;
  readonly ground: string;
  readonly font: string;
}

type Rgb = readonly [number, number, number];

const DARK = "#14171c";
const LIGHT = "#ffffff";
/** How much of the hue each level has over the panel; colours are those of the matrix of the static part. */
const STRENGTH = [0, 0.28, 0.55, 0.9] as const;

/** The colours as they are now. */
export function palette(): Palette {
  const panel = colour("--panel");
  const level = (hue: string, size: 1 | 2 | 3): Paint => painted(mixed(colour(hue), panel, STRENGTH[size]));
  const [grew, shrank] = ["--phase-6", "--phase-2"];
  return {
    kinds: PHASES.map((variable) => painted(colour(variable))),
    levels: {
      [-3]: level(shrank, 3),
      [-2]: level(shrank, 2),
      [-1]: level(shrank, 1),
      0: painted(colour("--line")),
      1: level(grew, 1),
      2: level(grew, 2),
      3: level(grew, 3),
    },
    merged: colour("--tail"),
    outline: colour("--ink"),
    ground: colour("--ground"),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  };
}

function painted(fill: string): Paint {
  return { fill, text: luminance(rgbOf(fill)) > 0.19 ? DARK : LIGHT };
}

/** So much of one colour over another; both as `#rrggbb`. */
export function mixed(over: string, under: string, share: number): string {
  const [a, b] = [rgbOf(over), rgbOf(under)];
  return `#${a.map((value, i) => hex(value * share + (b[i] ?? 0) * (1 - share))).join("")}`;
}

/** How light a colour is, from 0 to 1, as WCAG defines it. */
export function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

/** Red, green and blue of `#rrggbb` or `#rgb`; grey for anything else. */
export function rgbOf(text: string): Rgb {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text);
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(text);
  const parts = short?.slice(1).map((digit) => digit + digit) ?? long?.slice(1) ?? ["80", "80", "80"];
  const [r = 128, g = 128, b = 128] = parts.map((part) => Number.parseInt(part, 16));
  return [r, g, b];
}

function hex(value: number): string {
  return Math.round(value).toString(16).padStart(2, "0");
}
