/**
 * A canvas that fills its width, with a range in view: drags, wheels, pinches and double clicks move and zoom it, W/S
 * zoom and A/D move it. What is drawn, and what is under the pointer, its owner decides.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePointers } from "./pointers";
import { useThemeVersion } from "./theme";
import { type Axis, keyed, panned, type Range, toValue, zoomed } from "./viewport";

/** What a drawing is given: the context in CSS pixels, the size, and the range in view. */
export interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  readonly range: Range;
}

/** A place on the canvas, in CSS pixels, and the value of the axis there. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly value: number;
}

export interface SurfaceProps {
  readonly axis: Axis;
  readonly range: Range;
  readonly height: number;
  /** What the canvas shows, for those who cannot see it. */
  readonly label: string;
  /** Changes when there is something new to draw though range and size are the same. */
  readonly version?: unknown;
  readonly draw: (frame: Frame) => void;
  readonly onRange: (range: Range) => void;
  readonly onPoint?: (spot: Spot | null) => void;
  readonly onPress?: (spot: Spot) => void;
  /** A double click; without it the view zooms in there. */
  readonly onDouble?: (spot: Spot) => void;
  /** A drag with Shift held, from one value to another; null while there is none. Without it Shift does nothing. */
  readonly onMeasure?: (range: Range | null) => void;
  readonly onKey?: (key: string) => boolean;
  /** How far a vertical drag or wheel moved; true when it had an effect, else the wheel scrolls the page. */
  readonly onScroll?: (pixels: number) => boolean | void;
  /** How far a vertical drag moved, for owners that scroll by themselves. */
  readonly onDrag?: (pixels: number) => void;
  /** The canvas, for pictures of it and to give it the focus. */
  readonly onCanvas?: (canvas: HTMLCanvasElement | null) => void;
}

export function Surface(props: SurfaceProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const theme = useThemeVersion();
  const latest = useRef(props);
  latest.current = props;
  const pointers = usePointers(latest, canvas);

  useLayoutEffect(() => {
    const request = requestAnimationFrame(() => paint(canvas.current, width, latest.current));
    return () => cancelAnimationFrame(request);
  }, [width, theme, props.height, props.range, props.version, props.draw]);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const wheel = (event: WheelEvent): void => turn(event, latest.current);
    element.addEventListener("wheel", wheel, { passive: false });
    latest.current.onCanvas?.(element);
    return () => {
      element.removeEventListener("wheel", wheel);
      latest.current.onCanvas?.(null);
    };
  }, []);

  return (
    <canvas
      ref={canvas}
      class="surface"
      style={{ height: `${props.height}px` }}
      tabIndex={0}
      role="application"
      aria-label={props.label}
      {...pointers}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (props.onKey?.(event.key) === true) return event.preventDefault();
        const range = keyed(props.axis, props.range, event.key);
        if (range === null) return;
        event.preventDefault();
        props.onRange(range);
      }}
    />
  );
}

function turn(event: WheelEvent, { axis, range, onRange, onScroll }: SurfaceProps): void {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const about = toValue(range, box.width, event.clientX - box.left);
    onRange(zoomed(axis, range, Math.exp(-event.deltaY / 200), about));
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
    event.preventDefault();
    const pixels = event.deltaX || event.deltaY;
    onRange(panned(axis, range, (pixels / box.width) * (range.end - range.start)));
  } else if (onScroll?.(event.deltaY) === true) {
    event.preventDefault();
  }
}

function paint(canvas: HTMLCanvasElement | null, width: number, { draw, height, range }: SurfaceProps): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context || width === 0) return;
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.globalAlpha = 1;
  context.clearRect(0, 0, width, height);
  draw({ context, width, height, range });
}

/** The width of an element in CSS pixels, followed as it changes. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return;
    const observer = new ResizeObserver(() => setWidth(current.clientWidth));
    observer.observe(current);
    setWidth(current.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}
