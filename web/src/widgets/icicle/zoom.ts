/** What is in view, and the way there: gliding for those who do not mind motion, at once for all others. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Axis, Range } from "../../canvas/viewport";
import { at, type Tree } from "./tree";
import type { Layout } from "./layout";

const GLIDE_MS = 180;
/** The closest view shows this part of the whole: a nanosecond of an hour would be beyond any screen. */
const CLOSEST = 1e-9;

/** The horizontal axis of a drawing. */
export function axisOf(layout: Layout): Axis {
  const whole = layout.whole > 0 ? layout.whole : 1;
  return { start: 0, end: whole, least: Math.max(whole * CLOSEST, Number.MIN_VALUE) };
}

/** The range that a node fills; of a node that is nothing, that of the nearest ancestor that is something. */
export function rangeOf(tree: Tree, layout: Layout, node: number): Range {
  let here = node;
  while (here > 0 && at(layout.size, here) <= 0) here = at(tree.parent, here);
  if (here <= 0) return { start: 0, end: axisOf(layout).end };
  return { start: at(layout.start, here), end: at(layout.start, here) + at(layout.size, here) };
}

/** The range in view, how to set it, and how to glide to one. */
export function useGlide(first: Range): [Range, (range: Range) => void, (range: Range) => void] {
  const [range, setRange] = useState(first);
  const now = useRef(range);
  const pending = useRef(0);
  const set = useCallback((next: Range) => {
    cancelAnimationFrame(pending.current);
    now.current = next;
    setRange(next);
  }, []);
  const glide = useCallback((target: Range) => {
    cancelAnimationFrame(pending.current);
    if (!allowsMotion()) return set(target);
    const [from, began] = [now.current, performance.now()];
    const step = (time: number): void => {
      const share = eased(Math.min(Math.max((time - began) / GLIDE_MS, 0), 1));
      now.current = share === 1 ? target : between(from, target, share);
      setRange(now.current);
      if (share < 1) pending.current = requestAnimationFrame(step);
    };
    pending.current = requestAnimationFrame(step);
  }, []);
  useEffect(() => () => cancelAnimationFrame(pending.current), []);
  return [range, set, glide];
}

/** Calls an effect when values change, but not at first. */
export function useChange(effect: () => void, values: readonly unknown[]): void {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else effect();
  }, values as unknown[]);
}

function allowsMotion(): boolean {
  return !matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function eased(share: number): number {
  return 1 - (1 - share) ** 3;
}

function between(from: Range, to: Range, share: number): Range {
  return { start: from.start + (to.start - from.start) * share, end: from.end + (to.end - from.end) * share };
}
