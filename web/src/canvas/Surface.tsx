/**
 * A canvas that fills its width, with a range in view: drags and wheels move and zoom it, W/S zoom and A/D move it.
 * What is drawn, and what is under the pointer, its owner decides.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Axis, panned, type Range, toValue, zoomed } from "./viewport";

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

interface Props {
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
  readonly onKey?: (key: string) => boolean;
  /** How far a vertical drag or wheel moved; without it vertical wheels scroll the page. */
  readonly onScroll?: (pixels: number) => void;
}

const ZOOM_STEP = 1.25;
const PAN_SHARE = 0.12;
const CLICK_PX = 4;

export function Surface(props: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const held = useRef<{ x: number; y: number; range: Range; moved: boolean } | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useLayoutEffect(() => {
    const request = requestAnimationFrame(() => paint(canvas.current, width, latest.current));
    return () => cancelAnimationFrame(request);
  }, [width, props.height, props.range, props.version, props.draw]);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const wheel = (event: WheelEvent): void => turn(event, latest.current);
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const spot = (event: PointerEvent): Spot => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, y: event.clientY - box.top, value: toValue(props.range, box.width, x) };
  };
  return (
    <canvas
      ref={canvas}
      class="surface"
      style={{ height: `${props.height}px` }}
      tabIndex={0}
      role="img"
      aria-label={props.label}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        held.current = { x: event.clientX, y: event.clientY, range: props.range, moved: false };
      }}
      onPointerMove={(event) => {
        const drag = held.current;
        if (drag === null) return props.onPoint?.(spot(event));
        drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > CLICK_PX;
        if (!drag.moved) return;
        const share = (drag.x - event.clientX) / Math.max(width, 1);
        props.onRange(panned(props.axis, drag.range, share * (drag.range.end - drag.range.start)));
        props.onScroll?.(-event.movementY);
      }}
      onPointerUp={(event) => {
        const drag = held.current;
        held.current = null;
        if (drag !== null && !drag.moved) props.onPress?.(spot(event));
      }}
      onPointerCancel={() => {
        held.current = null;
      }}
      onPointerLeave={() => props.onPoint?.(null)}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (props.onKey?.(event.key) === true || moveByKey(event.key, props)) event.preventDefault();
      }}
    />
  );
}

function moveByKey(key: string, { axis, range, onRange }: Props): boolean {
  const middle = (range.start + range.end) / 2;
  const step = (range.end - range.start) * PAN_SHARE;
  switch (key.toLowerCase()) {
    case "w":
      onRange(zoomed(axis, range, ZOOM_STEP, middle));
      return true;
    case "s":
      onRange(zoomed(axis, range, 1 / ZOOM_STEP, middle));
      return true;
    case "a":
    case "arrowleft":
      onRange(panned(axis, range, -step));
      return true;
    case "d":
    case "arrowright":
      onRange(panned(axis, range, step));
      return true;
    case "0":
      onRange({ start: axis.start, end: axis.end });
      return true;
    default:
      return false;
  }
}

function turn(event: WheelEvent, { axis, range, onRange, onScroll }: Props): void {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const about = toValue(range, box.width, event.clientX - box.left);
    onRange(zoomed(axis, range, Math.exp(-event.deltaY / 200), about));
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
    event.preventDefault();
    const pixels = event.deltaX || event.deltaY;
    onRange(panned(axis, range, (pixels / box.width) * (range.end - range.start)));
  } else if (onScroll !== undefined) {
    onScroll(event.deltaY);
  }
}

function paint(canvas: HTMLCanvasElement | null, width: number, { draw, height, range }: Props): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context || width === 0) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  draw({ context, width, height, range });
}

function useWidth(canvas: { readonly current: HTMLCanvasElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}
