/** What a pointer does in a drawing: drags move it, a pinch zooms, a press selects, a double press opens. */
import type { Camera } from "./camera";

const CLICK_PX = 4;

/** A drag, or a pinch, as it began. */
export interface Held {
  readonly pointers: Map<number, { x: number; y: number }>;
  moved: number;
}

interface Actions {
  readonly select: (box: number) => void;
  readonly open: (box: number) => void;
  readonly pan: (x: number, y: number) => void;
  readonly zoom: (factor: number, x: number, y: number) => void;
  readonly hover: (at: { readonly box: number; readonly x: number; readonly y: number } | null) => void;
  readonly camera: () => Camera;
}

interface Handlers {
  readonly onPointerDown: (event: PointerEvent) => void;
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerUp: (event: PointerEvent) => void;
  readonly onPointerCancel: () => void;
  readonly onPointerLeave: () => void;
  readonly onDblClick: (event: MouseEvent) => void;
}

/** The number of the box at an event; -1: none. */
export function boxAt(event: Event): number {
  const element = event.target instanceof Element ? event.target.closest("[data-box]") : null;
  return element === null ? -1 : Number(element.getAttribute("data-box"));
}

/** Handlers for the drawing's element. */
export function handlersOf(held: { current: Held | null }, actions: Actions): Handlers {
  const at = (event: PointerEvent): { x: number; y: number } => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  return {
    onPointerDown: (event) => {
      held.current ??= { pointers: new Map(), moved: 0 };
      held.current.pointers.set(event.pointerId, at(event));
      actions.hover(null);
    },
    onPointerMove: (event) => {
      const here = at(event);
      const drag = held.current;
      const before = drag?.pointers.get(event.pointerId);
      if (drag === null || before === undefined) {
        const box = boxAt(event);
        actions.hover(box < 0 ? null : { box, ...here });
        return;
      }
      drag.moved += Math.hypot(here.x - before.x, here.y - before.y);
      if (drag.moved <= CLICK_PX) return;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      const other = [...drag.pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other === undefined) actions.pan(before.x - here.x, before.y - here.y);
      else {
        const spread = (one: { x: number; y: number }): number => Math.max(Math.hypot(one.x - other.x, one.y - other.y), 1);
        actions.zoom(spread(here) / spread(before), (here.x + other.x) / 2, (here.y + other.y) / 2);
      }
      drag.pointers.set(event.pointerId, here);
    },
    onPointerUp: (event) => {
      const drag = held.current;
      if (drag !== null && drag.moved <= CLICK_PX) actions.select(boxAt(event));
      drag?.pointers.delete(event.pointerId);
      if (drag?.pointers.size === 0) held.current = null;
    },
    onPointerCancel: () => {
      held.current = null;
    },
    onPointerLeave: () => actions.hover(null),
    onDblClick: (event) => {
      const box = boxAt(event);
      if (box >= 0) actions.open(box);
    },
  };
}
