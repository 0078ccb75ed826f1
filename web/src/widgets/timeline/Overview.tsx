/** The whole time in a strip: where the view lies, to be dragged or drawn anew. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useWidth } from "../../canvas/Surface";
import { useThemeVersion } from "../../canvas/theme";
import { panned, type Range, toPixels, toValue } from "../../canvas/viewport";
import { t } from "../../i18n/language";
import { Batches } from "./drawing";
import { fullest } from "./layout";
import type { Scene } from "./scene";

interface Props {
  readonly scene: Scene;
  readonly range: Range;
  readonly onRange: (range: Range) => void;
}

const STRIP_PX = 5;
const LEAST_PX = 16;
const MOST_TRACKS = 10;
const DRAG_PX = 3;

export function Overview({ scene, range, onRange }: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const held = useRef<{ readonly x: number; readonly range: Range | null } | null>(null);
  const width = useWidth(canvas);
  const theme = useThemeVersion();
  const tracks = scene.rows.slice(0, MOST_TRACKS);
  const strip = Math.max(STRIP_PX, Math.ceil((LEAST_PX - 3) / Math.max(tracks.length, 1)) - 1);
  const height = Math.max(LEAST_PX, tracks.length * (strip + 1) + 3);

  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    [context.canvas.width, context.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    context.scale(ratio, ratio);
    const batches = new Batches(scene);
    tracks.forEach((rows, i) => {
      const [lane] = fullest(rows.filter((one) => one !== undefined));
      if (lane !== undefined) batches.add(lane, 2 + i * (strip + 1), strip, { range: scene.axis, width, lit: null });
    });
    batches.draw(context);
  }, [scene, width, theme, height]);

  const at = (event: PointerEvent): number => event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  const left = toPixels(scene.axis, 100, range.start);
  const share = toPixels(scene.axis, 100, range.end) - left;
  return (
    <div
      class="timeline-overview"
      title={t("The whole recording; drag to choose a part, click to go there")}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        const value = toValue(scene.axis, width, at(event));
        const inside = share < 98 && value > range.start && value < range.end;
        held.current = { x: at(event), range: inside ? range : null };
      }}
      onPointerMove={(event) => {
        const drag = held.current;
        if (drag === null) return;
        const x = at(event);
        const [from, to] = [toValue(scene.axis, width, drag.x), toValue(scene.axis, width, x)];
        if (drag.range !== null) onRange(panned(scene.axis, drag.range, to - from));
        else if (Math.abs(x - drag.x) > DRAG_PX) onRange(panned(scene.axis, { start: Math.min(from, to), end: Math.max(from, to) }, 0));
      }}
      onPointerUp={(event) => {
        const drag = held.current;
        held.current = null;
        if (drag === null || drag.range !== null || Math.abs(at(event) - drag.x) > DRAG_PX) return;
        const middle = toValue(scene.axis, width, drag.x);
        onRange(panned(scene.axis, range, middle - (range.start + range.end) / 2));
      }}
    >
      <canvas ref={canvas} style={{ height: `${height}px` }} aria-hidden="true" />
      <i style={{ left: `${left}%`, width: `${Math.max(share, 0.15)}%` }} />
    </div>
  );
}
