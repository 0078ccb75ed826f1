/** What the reader looks at, kept in step with the address. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { around, type Range } from "../../canvas/viewport";
import { leaveOut } from "../../shell/notice";
import { note, type Route } from "../../shell/router";
import { parametersOf, placeOf, wrongIn } from "./address";
import { type Lit, litBy, matchesOf, nextMatch } from "./find";
import { type Layout, layoutOf, pastCallers, RULER_PX, scrollTo } from "./layout";
import { laneOf, type Scene } from "./scene";

export const PAGE = "timeline";
const NOTE_MS = 250;
const LEAST_PX = 3;

/** All that can be looked at, and how it is changed. */
export interface Looking {
  readonly range: Range;
  readonly selected: number;
  readonly find: string;
  readonly kind: string | null;
  readonly measured: Range | null;
  readonly folded: ReadonlySet<number>;
  readonly layout: Layout;
  readonly lit: Lit;
  readonly matches: Int32Array;
  readonly setRange: (range: Range) => void;
  readonly select: (slice: number) => void;
  readonly setFind: (text: string) => void;
  readonly setKind: (kind: string | null) => void;
  readonly measure: (range: Range | null) => void;
  readonly fold: (track: number) => void;
  /** Select a slice and bring it into view. */
  readonly show: (slice: number) => void;
  /** Bring a slice's own time into view. */
  readonly zoomTo: (slice: number) => void;
  readonly step: (back: boolean) => void;
}

interface Sight {
  readonly scroll: { readonly current: HTMLElement | null };
  readonly height: number;
}

export function useLooking(scene: Scene, route: Route, rank: string | null, { scroll, height }: Sight): Looking {
  const first = useMemo(() => placeOf(scene, route.page === PAGE ? route.parameters : {}), []);
  const [range, setRange] = useState(first.range);
  const [selected, select] = useState(first.selected);
  const [find, setFind] = useState(first.find);
  const [kind, setKind] = useState(first.kind);
  const [measured, measure] = useState(first.measured);
  const [folded, setFolded] = useState(first.folded);
  const layout = useMemo(() => layoutOf(scene, folded), [scene, folded]);
  const lit = useMemo(() => litBy(scene, find, kind), [scene, find, kind]);
  const matches = useMemo(() => (find.trim() === "" ? new Int32Array(0) : matchesOf(scene, lit)), [scene, find, lit]);

  const reveal = (slice: number): void => {
    const lane = laneOf(scene, slice);
    const { current } = scroll;
    if (lane === undefined || current === null) return;
    current.scrollTop = scrollTo(layout, lane, current.scrollTop, height - RULER_PX);
  };
  const zoomTo = (slice: number): void => {
    setRange(around(scene.axis, { start: scene.start[slice] ?? 0, end: scene.end[slice] ?? 0 }));
    reveal(slice);
  };
  const show = (slice: number): void => {
    if (slice < 0) return;
    const [start, end] = [scene.start[slice] ?? 0, scene.end[slice] ?? 0];
    const extent = range.end - range.start;
    const visible = ((end - start) / extent) * (scroll.current?.clientWidth ?? 1000);
    select(slice);
    if (visible < LEAST_PX || end - start > extent) setRange(around(scene.axis, { start, end }, 0.1));
    else if (start < range.start || end > range.end) setRange(around(scene.axis, { start, end }, (end - start) / extent));
    reveal(slice);
  };
  useAddress(scene, route, rank, { range, selected, find, kind, measured, folded }, (place) => {
    setRange(place.range);
    select(place.selected);
    setFind(place.find);
    setKind(place.kind);
    measure(place.measured);
    setFolded(place.folded);
    if (place.selected >= 0) reveal(place.selected);
  });
  useEffect(() => {
    if (first.selected >= 0) reveal(first.selected);
    else if (scroll.current !== null) scroll.current.scrollTop = pastCallers(scene, layout);
  }, []);
  return {
    range, selected, find, kind, measured, folded, layout, lit, matches,
    setRange, select, setFind, setKind, measure, show, zoomTo,
    fold: (track) => setFolded((held) => toggled(held, track)),
    step: (back) => show(nextMatch(scene, matches, selected, range.start, back)),
  };
}

type Place = ReturnType<typeof placeOf>;

/** Follow the address when the reader goes to a link, and write into it where they are. */
function useAddress(scene: Scene, route: Route, rank: string | null, place: Place, follow: (place: Place) => void): void {
  const followed = useRef(route);
  const written = useRef(JSON.stringify(parametersOf(scene, place))); // at first the address is as the reader gave it
  useEffect(() => {
    if (route.page === PAGE) leaveOut(wrongIn(scene, route.parameters));
  }, []);
  useEffect(() => {
    if (followed.current === route || route.page !== PAGE) return;
    followed.current = route;
    leaveOut(wrongIn(scene, route.parameters));
    // Who comes back from another page finds all as it was; on the page itself the address counts.
    if (route.from !== PAGE && Object.keys(route.parameters).length === 0) return note(PAGE, parametersOf(scene, place));
    follow(placeOf(scene, route.parameters));
  }, [route]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const parameters = parametersOf(scene, place);
      const text = JSON.stringify(parameters);
      // Elsewhere the address is another page's.
      if (written.current === text || document.body.dataset["shown"] !== PAGE) return;
      written.current = text;
      note(PAGE, { ...(rank === null ? {} : { rank }), ...parameters });
    }, NOTE_MS);
    return () => clearTimeout(timer);
  }, [scene, rank, ...Object.values(place)]);
}

function toggled(held: ReadonlySet<number>, track: number): ReadonlySet<number> {
  const next = new Set(held);
  if (!next.delete(track)) next.add(track);
  return next;
}
