/** The timeline of one rank: tools, overview, canvas with its tracks, legend, and what is known of the selected slice. */
import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { type Spot, Surface } from "../../canvas/Surface";
import type { Range } from "../../canvas/viewport";
import { formatCount, formatNs } from "../../data/quantity";
import { perfettoJson } from "../../export/perfetto";
import { saveCanvas } from "../../export/picture";
import { download } from "../../export/download";
import { t } from "../../i18n/language";
import type { Route } from "../../shell/router";
import { Figure } from "../Figure";
import { Details } from "./Details";
import { Hint } from "./Hint";
import { useKeys } from "./keys";
import { HEADER_PX, laneAt, RULER_PX } from "./layout";
import { Legend } from "./Legend";
import { MeasuredRange } from "./MeasuredRange";
import { Overview } from "./Overview";
import { paintView, type View } from "./painting";
import { type Scene, sliceAt } from "./scene";
import { type Looking, useLooking } from "./state";
import { Tools } from "./Tools";
import { TrackNames } from "./TrackNames";

interface Props {
  readonly scene: Scene;
  readonly route: Route;
  readonly choice: JSX.Element | null;
  /** The rank, where the address must name it. */
  readonly rank: string | null;
  /** What saved files are called: by the rank, or by the side of a comparison. */
  readonly file: string;
}

const TOLERANCE_PX = 3;
const LEAST_PX = 220;
const MOST_PX = 520;

export function Stage({ scene, route, choice, rank, file }: Props): JSX.Element {
  const scroll = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const canvas = useRef<HTMLCanvasElement | null>(null);
  const [scrolled, setScrolled] = useState(0);
  const [hovered, setHovered] = useState<Spot | null>(null);
  const most = Math.max(LEAST_PX, Math.min(MOST_PX, Math.round(window.innerHeight * 0.6)));
  const looking = useLooking(scene, route, rank, { scroll, height: most });
  const { layout, range, selected, lit, measured } = looking;
  const height = Math.min(most, layout.height + RULER_PX + 2);
  const view: View = useMemo(
    () => ({ scene, layout, scrolled, lit, selected, measured }),
    [scene, layout, scrolled, lit, selected, measured],
  );
  const under = useCallback(
    (spot: Spot): number => {
      const lane = spot.y < RULER_PX ? undefined : laneAt(layout, spot.y - RULER_PX + scrolled);
      const tolerance = ((range.end - range.start) / (canvas.current?.clientWidth || 1)) * TOLERANCE_PX;
      return lane === undefined ? -1 : sliceAt(scene, lane, spot.value, tolerance);
    },
    [scene, layout, scrolled, range],
  );
  const own = useKeys({ scene, looking, search, canvas });
  const hoveredSlice = hovered === null ? -1 : under(hovered);
  const draw = useCallback((frame: Parameters<typeof paintView>[0]) => paintView(frame, view), [view]);

  return (
    <Figure
      title="Streams and threads over time"
      how="Each row is a call depth of a thread, or a stream; a slice is as wide as it took. Look for streams without work, and for what the threads do meanwhile. Drag or use A and D to move, W and S or Ctrl + wheel to zoom, click for details, Shift + drag to measure."
      change="Times include the profiler's own cost, which is largest where many short operators follow each other: compare with an unprofiled run before you trust gaps of a few microseconds."
      tools={<Tools scene={scene} looking={looking} search={search} choice={choice} onSave={(what) => save(what, view, looking, file)} />}
    >
      {(scene.content.num_passing ?? 0) > 0 && (
        <p class="note">{t("{n} Python frames that only pass their call on are left out; the flame graph can show them.", { n: formatCount(scene.content.num_passing ?? 0) })}</p>
      )}
      {scene.content.notice !== null && <p class="note">{t(scene.content.notice)}</p>}
      <Overview scene={scene} range={range} onRange={looking.setRange} />
      <div
        class="timeline-scroll"
        ref={scroll}
        style={{ height: `${height}px` }}
        onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}
      >
        <div style={{ height: `${layout.height + RULER_PX}px` }}>
          <div class="timeline-view" style={{ height: `${height}px` }}>
            <Surface
              axis={scene.axis}
              range={range}
              height={height}
              label={t("Timeline of {tracks} tracks with {slices} slices; W, A, S and D zoom and move, slash searches", {
                tracks: scene.content.tracks.length,
                slices: scene.count,
              })}
              version={view}
              draw={draw}
              onRange={looking.setRange}
              onPoint={setHovered}
              onPress={(spot) => looking.select(under(spot))}
              onDouble={(spot) => {
                const slice = under(spot);
                if (slice >= 0) looking.zoomTo(slice);
              }}
              onMeasure={looking.measure}
              onDrag={(pixels) => scroll.current?.scrollBy(0, pixels)}
              onKey={own}
              onCanvas={(element) => {
                canvas.current = element;
              }}
            />
            <TrackNames scene={scene} looking={looking} top={scrolled} height={height - RULER_PX} />
            {hovered !== null && hoveredSlice >= 0 && (
              <Hint scene={scene} slice={hoveredSlice} spot={hovered} width={canvas.current?.clientWidth ?? 0} height={height} />
            )}
          </div>
        </div>
      </div>
      <Legend scene={scene} chosen={looking.kind} onChoose={looking.setKind} />
      {measured !== null && <MeasuredRange scene={scene} range={measured} looking={looking} />}
      {selected >= 0 && <Details scene={scene} slice={selected} looking={looking} />}
    </Figure>
  );
}

/** What can be saved. */
export type Saved = "picture" | "perfetto";

function save(what: Saved, view: View, { range, measured }: Looking, name: string): void {
  if (what === "picture") return saveCanvas(pictureOf(view, range), name);
  const wanted = measured ?? range;
  const from = formatNs(wanted.start - view.scene.axis.start);
  download(`${name}-from-${from}.json`, perfettoJson(view.scene, wanted), "application/json");
}

/** The view with its tracks as high as they are, names included. */
function pictureOf(view: View, range: Range): HTMLCanvasElement {
  const shown = document.querySelector<HTMLCanvasElement>(".timeline-view canvas");
  const [width, height] = [shown?.clientWidth || 1000, Math.min(view.layout.height + RULER_PX + HEADER_PX, 4000)];
  const ratio = window.devicePixelRatio > 1 ? window.devicePixelRatio : 2;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const context = canvas.getContext("2d");
  if (context === null) return canvas;
  context.scale(ratio, ratio);
  paintView({ context, width, height, range }, { ...view, scrolled: 0, named: true });
  return canvas;
}
