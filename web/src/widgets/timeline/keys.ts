/** Keys of the timeline beyond those that every surface knows: f, m, /, Escape, and Enter for the next match. */
import { useCallback, useEffect } from "preact/hooks";
import { keyed } from "../../canvas/viewport";
import type { Scene } from "./scene";
import { type Looking, PAGE } from "./state";

interface Given {
  readonly scene: Scene;
  readonly looking: Looking;
  readonly search: { readonly current: HTMLInputElement | null };
  readonly canvas: { readonly current: HTMLCanvasElement | null };
}

/** Tells whether a key was ours. While the timeline's page is shown they work without the focus on the canvas too. */
export function useKeys({ scene, looking, search, canvas }: Given): (key: string) => boolean {
  const own = useCallback(
    (key: string): boolean => {
      switch (key) {
        case "f":
        case "F":
          if (looking.selected >= 0) looking.zoomTo(looking.selected);
          else if (looking.measured !== null) looking.setRange(looking.measured);
          return true;
        case "m":
        case "M":
          looking.measure(looking.range);
          return true;
        case "/":
          search.current?.focus();
          search.current?.select();
          return true;
        case "Enter":
          looking.step(false);
          return true;
        case "Escape":
          return left(looking);
        default:
          return false;
      }
    },
    [looking],
  );
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const plain = !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!plain || isControl(event.target) || document.body.dataset["shown"] !== PAGE || canvas.current?.offsetParent == null) return;
      // Arrows scroll the page, unless the canvas has the focus.
      if (event.key.startsWith("Arrow") || (event.key === "Enter" && looking.matches.length === 0)) return;
      const range = keyed(scene.axis, looking.range, event.key);
      if (own(event.key)) event.preventDefault();
      else if (range !== null) looking.setRange(range);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [scene, looking, own]);
  return own;
}

/** Whether an element has its own use for keys. */
function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, button, a, summary, [tabindex='0']") !== null;
}

/** Take back the last thing first: the selection, the measured range, the kind, the search. */
function left(looking: Looking): boolean {
  if (looking.selected >= 0) looking.select(-1);
  else if (looking.measured !== null) looking.measure(null);
  else if (looking.kind !== null) looking.setKind(null);
  else if (looking.find !== "") looking.setFind("");
  else return false;
  return true;
}
