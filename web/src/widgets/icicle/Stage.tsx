/** The drawing: a window of limited height onto the rows, with its own scroll bar when the tree is deep. */
import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Frame, type Spot, Surface } from "../../canvas/Surface";
import { useThemeVersion } from "../../canvas/theme";
import { t } from "../../i18n/language";
import { neighbour, nodeAtPlace } from "./layout";
import { paint, ROW, type Scene } from "./paint";
import { palette } from "./palette";
import { Tip } from "./Tip";
import { at } from "./tree";
import { axisOf, rangeOf, useChange, useGlide } from "./zoom";

interface Props {
  readonly scene: Scene;
  /** The node that fills the width. */
  readonly zoomed: number;
  readonly onSelect: (node: number) => void;
  readonly onZoom: (node: number) => void;
  readonly onLeave: () => void;
  readonly onSearch: () => void;
  readonly onCanvas: (canvas: HTMLCanvasElement | null) => void;
}

const MOST_ROWS = 26;

export function Stage(props: Props): JSX.Element {
  const { scene, zoomed } = props;
  const { tree, layout, selected } = scene;
  const theme = useThemeVersion();
  const colours = useMemo(palette, [theme]);
  const box = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [spot, setSpot] = useState<Spot | null>(null);
  const [range, setRange, glide] = useGlide(rangeOf(tree, layout, zoomed));
  useChange(() => setRange(rangeOf(tree, layout, zoomed)), [layout]);
  useChange(() => glide(rangeOf(tree, layout, zoomed)), [zoomed]);
  const height = Math.max(Math.min(layout.rows.length, MOST_ROWS), 2) * ROW;
  useLayoutEffect(() => reveal(box.current, at(layout.row, selected), height), [selected, layout]);

  const draw = useCallback((frame: Frame) => paint(frame, scene, colours, scrolled), [scene, colours, scrolled]);
  const nodeAt = ({ y, value }: Spot): number | null => nodeAtPlace(layout, Math.floor((y + scrolled) / ROW), value);
  const pointed = spot === null ? null : nodeAt(spot);
  useEffect(() => setSpot(null), [layout, scrolled]);
  return (
    <div class="icicle-stage">
      <div
        class="icicle-window"
        ref={box}
        style={{ height: `${height}px` }}
        onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}
      >
        <div style={{ height: `${layout.rows.length * ROW}px` }}>
          <div class="icicle-view">
            <Surface
              axis={axisOf(layout)}
              range={range}
              height={height}
              label={t("Call tree. Arrow keys select, Enter zooms in, Escape goes up, W A S D move, slash searches.")}
              draw={draw}
              onRange={setRange}
              onPoint={setSpot}
              onDouble={() => undefined}
              onDrag={(pixels) => box.current?.scrollBy(0, pixels)}
              onCanvas={props.onCanvas}
              onPress={(place) => {
                const node = nodeAt(place);
                if (node !== null) props.onZoom(node);
              }}
              onKey={(key) => pressed(key, props)}
            />
          </div>
        </div>
      </div>
      {spot !== null && pointed !== null && (
        <Tip scene={scene} node={pointed} spot={spot} width={box.current?.clientWidth ?? 0} />
      )}
    </div>
  );
}

/** What a key does; whether it did anything. */
function pressed(key: string, { scene, zoomed, onSelect, onZoom, onLeave, onSearch }: Props): boolean {
  const { tree, layout, selected } = scene;
  if (key.startsWith("Arrow")) {
    const start = at(layout.row, selected) < 0 ? layout.rows[0]?.[0] : neighbour(tree, layout, selected, key);
    if (typeof start === "number") onSelect(start);
    return true;
  }
  switch (key) {
    case "Enter":
      onZoom(selected);
      return true;
    case "Escape":
    case "Backspace":
      if (zoomed > 0) onZoom(at(tree.parent, zoomed));
      else onLeave();
      return true;
    case "/":
      onSearch();
      return true;
    default:
      return false;
  }
}

/** Scroll so that a row is in view, with one above it. */
function reveal(box: HTMLElement | null, row: number, height: number): void {
  if (box === null || row < 0) return;
  const top = row * ROW;
  if (top < box.scrollTop + ROW) box.scrollTop = Math.max(top - ROW, 0);
  else if (top + 2 * ROW > box.scrollTop + height) box.scrollTop = top + 2 * ROW - height;
}
