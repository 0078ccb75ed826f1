/** A graph as SVG: only what is in view is drawn, and moving about changes one attribute. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Tooltip } from "../../canvas/Tooltip";
import { t } from "../../i18n/language";
import { beginning, type Camera, centred, closer, type Frame, holds, inView, moved, type Size, whole } from "./camera";
import { shapes } from "./marks";
import type { Painted } from "./overlay";
import type { Scene } from "./scene";
import { type Held, handlersOf } from "./pointer";

/** What is marked in a drawing. */
export interface Marked {
  /** The selected box; -1: none. */
  readonly selected: number;
  /** Boxes that a search found. */
  readonly found: ReadonlySet<number>;
  /** Boxes that stand for what is selected in the other graph. */
  readonly twins: ReadonlySet<number>;
  /** Boxes with a break or a finding. */
  readonly flagged: ReadonlySet<number>;
}

interface Props {
  readonly scene: Scene;
  readonly painted: Painted;
  readonly marked: Marked;
  readonly label: string;
  /** A box to bring into view; a new object brings it again. */
  readonly focus: { readonly box: number } | null;
  readonly tip: (box: number) => JSX.Element;
  readonly onSelect: (box: number) => void;
  readonly onOpen: (box: number) => void;
  readonly onKey: (key: string) => boolean;
}

const STEP = 1.25;
const PAN = 0.15;
/** Below this scale nothing could be read. */
const WORDS = 0.34;

interface Drawn {
  readonly frame: Frame;
  readonly words: boolean;
}

export function Drawing(props: Props): JSX.Element {
  const { scene, painted, marked, focus } = props;
  const svg = useRef<SVGSVGElement>(null);
  const moving = useRef<SVGGElement>(null);
  const camera = useRef<Camera>({ x: 0, y: 0, scale: 1 });
  const view = useSize(svg);
  const [drawn, setDrawn] = useState<Drawn>({ frame: { left: 0, top: 0, right: 0, bottom: 0 }, words: true });
  const [hover, setHover] = useState<{ readonly box: number; readonly x: number; readonly y: number } | null>(null);
  const held = useRef<Held | null>(null);
  const latest = useRef(drawn);
  latest.current = drawn;

  const show = (next: Camera): void => {
    camera.current = next;
    const { x, y, scale } = next;
    moving.current?.setAttribute("transform", `scale(${scale}) translate(${-x} ${-y})`);
    const words = scale >= WORDS;
    const seen = inView(next, view, 0);
    const wide = inView(next, view);
    const roomy = latest.current.frame.right - latest.current.frame.left > 3 * (wide.right - wide.left);
    if (words !== latest.current.words || roomy || !holds(latest.current.frame, seen)) {
      latest.current = { frame: wide, words };
      setDrawn(latest.current);
    }
  };
  useLayoutEffect(() => {
    if (view.width > 0) show(beginning(scene, view, topOf(scene)));
  }, [scene, view.width > 0]);
  useEffect(() => {
    const box = focus === null ? undefined : scene.boxes[focus.box];
    if (box === undefined || view.width === 0) return;
    const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    if (!holds(inView(camera.current, view, -0.08), { left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height })) {
      show(centred(scene, view, middle, Math.max(camera.current.scale, 0.7)));
    }
  }, [focus, scene, view.width > 0]);

  const zoom = (factor: number, x = view.width / 2, y = view.height / 2): void =>
    show(closer(camera.current, scene, view, factor, x, y));
  const pan = (x: number, y: number): void => show(moved(camera.current, scene, view, x, y));
  const fit = (): void => show(whole(scene, view));
  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (props.onKey(event.key) || byKey(event.key, zoom, pan, fit, view)) event.preventDefault();
  };
  const wheel = useRef<(event: WheelEvent) => void>(() => undefined);
  wheel.current = (event) => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const zooms = event.ctrlKey || event.metaKey || document.activeElement === svg.current;
    if (!sideways && !zooms) return; // else the page could not be scrolled past the drawing
    event.preventDefault();
    const box = svg.current?.getBoundingClientRect();
    if (sideways && !event.ctrlKey) pan(event.deltaX || event.deltaY, 0);
    else zoom(Math.exp(-event.deltaY / (event.ctrlKey ? 200 : 500)), event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0));
  };
  useEffect(() => {
    const element = svg.current;
    const turn = (event: WheelEvent): void => wheel.current(event);
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  }, []);

  const content = useMemo(() => shapes(scene, painted, marked, drawn.frame, drawn.words), [scene, painted, marked, drawn]);
  return (
    <div class="graph-drawing">
      <svg
        ref={svg}
        class="graph-svg"
        tabindex={0}
        role="img"
        aria-label={props.label}
        onKeyDown={keys}
        {...handlersOf(held, { select: props.onSelect, open: props.onOpen, pan, zoom, hover: setHover, camera: () => camera.current })}
      >
        <g ref={moving}>{content}</g>
      </svg>
      <span class="graph-zoom">
        <button type="button" aria-label={t("Closer")} onClick={() => zoom(STEP)}>
          +
        </button>
        <button type="button" aria-label={t("Farther")} onClick={() => zoom(1 / STEP)}>
          −
        </button>
        <button type="button" onClick={fit}>
          {t("Fit")}
        </button>
      </span>
      {hover !== null && scene.boxes[hover.box] !== undefined && (
        <Tooltip x={hover.x} y={hover.y} width={view.width}>
          {props.tip(hover.box)}
        </Tooltip>
      )}
    </div>
  );
}

/** The middle of the uppermost box; of several the one nearest to the middle of the drawing. */
function topOf({ boxes, width }: Scene): { readonly x: number; readonly y: number } {
  const off = (box: { readonly x: number; readonly width: number }): number => Math.abs(box.x + box.width / 2 - width / 2);
  const [first] = [...boxes].sort((a, b) => a.y - b.y || off(a) - off(b));
  return first === undefined ? { x: width / 2, y: 0 } : { x: first.x + first.width / 2, y: first.y };
}

function byKey(key: string, zoom: (factor: number) => void, pan: (x: number, y: number) => void, fit: () => void, view: Size): boolean {
  const [x, y] = [view.width * PAN, view.height * PAN];
  const moves: Readonly<Record<string, () => void>> = {
    w: () => pan(0, -y),
    s: () => pan(0, y),
    a: () => pan(-x, 0),
    d: () => pan(x, 0),
    "+": () => zoom(STEP),
    "=": () => zoom(STEP),
    "-": () => zoom(1 / STEP),
    "0": fit,
  };
  const move = moves[key.toLowerCase()];
  move?.();
  return move !== undefined;
}

function useSize(element: { readonly current: Element | null }): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const shown = element.current;
    if (shown === null) return;
    const measure = (): void => setSize({ width: shown.clientWidth, height: shown.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(shown);
    measure();
    return () => observer.disconnect();
  }, []);
  return size;
}
