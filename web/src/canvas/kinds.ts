/** What kinds of events are called, and their colours; the same in every drawing of a trace, and those of the parts of a step. */
import { colour, themeVersion } from "./theme";

interface Look {
  readonly words: string;
  readonly variable: string;
  /** Hatched, where a colour is close to another one's or two kinds must be told apart without colours. */
  readonly hatched?: boolean;
}

const PLAIN: Look = { words: "other", variable: "--phase-5" };
const LOOKS: Readonly<Record<string, Look>> = {
  kernel: { words: "kernel", variable: "--phase-2" },
  communication: { words: "communication kernel", variable: "--phase-3", hatched: true },
  memcpy: { words: "copy", variable: "--phase-1" },
  memset: { words: "fill", variable: "--phase-7" },
  sync: { words: "wait of a stream", variable: "--phase-6", hatched: true },
  cpu_op: { words: "operator", variable: "--phase-4" },
  runtime: { words: "runtime call", variable: "--phase-8" },
  driver: { words: "driver call", variable: "--phase-8", hatched: true },
  python_function: { words: "Python function", variable: "--phase-9" },
  module: { words: "module", variable: "--phase-10" },
  user_annotation: { words: "annotation", variable: "--phase-11" },
  gpu_user_annotation: { words: "annotation on a stream", variable: "--phase-11", hatched: true },
  several: { words: "several kinds, drawn together", variable: "--phase-5", hatched: true },
  overhead: { words: "profiler's overhead", variable: "--phase-5" },
};

/** What a kind is called, in English; to be translated. */
export function kindWords(kind: string): string {
  return LOOKS[kind]?.words ?? kind.replaceAll("_", " ");
}

/** Whether a kind is hatched, so that it can be told from others without colours. */
export function isHatched(kind: string): boolean {
  return LOOKS[kind]?.hatched === true;
}

/** How slices of a kind are filled, and the ink that can be read on it. */
export interface Paint {
  readonly fill: string | CanvasPattern;
  readonly plain: string;
  readonly ink: string;
}

const kept = new Map<string, { readonly version: number; readonly paint: Paint }>();

/** The paint of a kind in the present theme. */
export function paintOf(kind: string): Paint {
  const held = kept.get(kind);
  if (held?.version === themeVersion()) return held.paint;
  const { variable, hatched } = LOOKS[kind] ?? PLAIN;
  const plain = colour(variable) || "#888888";
  const paint = { fill: hatched ? (hatch(plain) ?? plain) : plain, plain, ink: inkOn(plain) };
  kept.set(kind, { version: themeVersion(), paint });
  return paint;
}

const DARK = "#14171c";
const LIGHT = "#ffffff";

/** Dark or light ink, whichever is read more easily on a colour written as `#rrggbb`. */
export function inkOn(background: string): string {
  const parts = /^#(..)(..)(..)/.exec(background);
  if (parts === null) return DARK;
  const [red = 0, green = 0, blue = 0] = parts.slice(1).map((part) => {
    const share = Number.parseInt(part, 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return light > 0.18 ? DARK : LIGHT;
}

const HATCH_PX = 6;

function hatch(background: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [HATCH_PX, HATCH_PX];
  const context = tile.getContext("2d");
  if (context === null) return null;
  context.fillStyle = background;
  context.fillRect(0, 0, HATCH_PX, HATCH_PX);
  context.strokeStyle = inkOn(background) === DARK ? "#ffffff66" : "#00000055";
  context.lineWidth = 1.5;
  context.beginPath();
  for (const shift of [-HATCH_PX, 0, HATCH_PX]) {
    context.moveTo(shift, HATCH_PX);
    context.lineTo(shift + HATCH_PX, 0);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}
