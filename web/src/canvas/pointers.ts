/** What fingers and mice do on a surface: drag, press, double click, pinch, and measure with Shift. */
import { useMemo } from "preact/hooks";
import type { Spot, SurfaceProps } from "./Surface";
import { panned, pinched, type Range, toValue, zoomed } from "./viewport";

const CLICK_PX = 4;
const DOUBLE_ZOOM = 3;

/** Where pointers were when the drag or pinch began, and what was in view. */
interface Held {
  readonly range: Range;
  readonly x: number;
  readonly y: number;
  readonly spread: number;
  readonly measures: boolean;
  moved: boolean;
  lastY: number;
}

interface Handlers {
  readonly onPointerDown: (event: PointerEvent) => void;
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerUp: (event: PointerEvent) => void;
  readonly onPointerCancel: (event: PointerEvent) => void;
  readonly onPointerLeave: () => void;
  readonly onDblClick: (event: MouseEvent) => void;
}
interface Box<T> {
  readonly current: T;
}

/** Handlers of a canvas's pointers. */
export function usePointers(props: Box<SurfaceProps>, canvas: Box<HTMLCanvasElement | null>): Handlers {
  return useMemo(() => handlers(props, canvas), []);
}

function handlers(props: Box<SurfaceProps>, canvas: Box<HTMLCanvasElement | null>): Handlers {
  const down = new Map<number, { readonly x: number; readonly y: number }>();
  let held: Held | null = null;

  const hold = (measures: boolean, moved: boolean): void => {
    const { x, y, spread } = centre(down);
    held = { range: props.current.range, x, y, spread, measures, moved, lastY: y };
  };
  const release = (event: PointerEvent): void => {
    down.delete(event.pointerId);
    if (down.size > 0) hold(false, true);
    else held = null;
  };
  const spot = (clientX: number, clientY: number, range = props.current.range): Spot => {
    const box = canvas.current?.getBoundingClientRect() ?? new DOMRect(0, 0, 1, 1);
    const x = clientX - box.left;
    return { x, y: clientY - box.top, value: toValue(range, box.width, x) };
  };
  const drag = (from: Held): void => {
    const { axis, onRange, onScroll, onDrag, onMeasure } = props.current;
    const { x, y, spread } = centre(down);
    from.moved ||= down.size > 1 || Math.hypot(x - from.x, y - from.y) > CLICK_PX;
    if (!from.moved) return;
    const began = spot(from.x, from.y, from.range).value;
    if (from.measures) {
      const ended = spot(x, y).value;
      onMeasure?.({ start: Math.max(Math.min(began, ended), axis.start), end: Math.min(Math.max(began, ended), axis.end) });
      return;
    }
    const width = canvas.current?.clientWidth || 1;
    if (down.size > 1) onRange(pinched(axis, from.range, spread / Math.max(from.spread, 1), began, (x - from.x) / width));
    else onRange(panned(axis, from.range, ((from.x - x) / width) * (from.range.end - from.range.start)));
    onScroll?.(from.lastY - y);
    onDrag?.(from.lastY - y);
    from.lastY = y;
  };

  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      canvas.current?.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      hold(event.shiftKey && props.current.onMeasure !== undefined, down.size > 1);
      props.current.onPoint?.(null);
    },
    onPointerMove: (event) => {
      if (held === null) return props.current.onPoint?.(spot(event.clientX, event.clientY));
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      drag(held);
    },
    onPointerUp: (event) => {
      const pressed = held !== null && !held.moved;
      release(event);
      if (pressed) props.current.onPress?.(spot(event.clientX, event.clientY));
    },
    onPointerCancel: release,
    onPointerLeave: () => props.current.onPoint?.(null),
    onDblClick: (event) => {
      const { axis, range, onRange, onDouble } = props.current;
      const at = spot(event.clientX, event.clientY);
      if (onDouble !== undefined) onDouble(at);
      else onRange(zoomed(axis, range, DOUBLE_ZOOM, at.value));
    },
  };
}

function centre(down: ReadonlyMap<number, { readonly x: number; readonly y: number }>): { x: number; y: number; spread: number } {
  const points = [...down.values()];
  const x = points.reduce((sum, point) => sum + point.x, 0) / Math.max(points.length, 1);
  const y = points.reduce((sum, point) => sum + point.y, 0) / Math.max(points.length, 1);
  return { x, y, spread: Math.max(...points.map((point) => Math.abs(point.x - x)), 0) * 2 };
}
