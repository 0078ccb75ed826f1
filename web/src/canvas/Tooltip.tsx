/** What is under the pointer, beside it and within the window. */
import type { ComponentChildren, JSX } from "preact";

interface Props {
  /** CSS pixels from the upper left corner of the box that holds it. */
  readonly x: number;
  readonly y: number;
  /** Width of that box: right of its middle the tooltip opens to the left. */
  readonly width: number;
  /** Height of that box: in its lower part the tooltip opens upwards; without it always downwards. */
  readonly height?: number;
  readonly children: ComponentChildren;
}

export function Tooltip({ x, y, width, height, children }: Props): JSX.Element {
  const side = x > width / 2 ? { right: `${Math.max(width - x + 12, 0)}px` } : { left: `${Math.max(x + 12, 0)}px` };
  const level = height !== undefined && y > height * 0.6 ? { bottom: `${height - y + 12}px` } : { top: `${y + 12}px` };
  return (
    <div class="tooltip" role="status" style={{ ...level, ...side }}>
      {children}
    </div>
  );
}
