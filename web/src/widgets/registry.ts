/** Widgets by the name that the static page calls them. Each registers itself: a page has only those that it draws. */
import type { Widget } from "./widget";

/** What this page can draw. */
export const WIDGETS = new Map<string, Widget>();

/** Let a name in the static page mean this widget. */
export function register(name: string, widget: Widget): void {
  WIDGETS.set(name, widget);
}
