/** Widgets by the name that the static page calls them. Each registers itself: a page has only those that it draws. */
import type { Widget } from "./widget";

/** What this page can draw. */
export const WIDGETS = new Map<string, Widget>();

/** The parameters of addresses that a widget knows. */
export const KEYS = new Map<string, RegExp>();

/** Let a name in the static page mean this widget, which knows these parameters of an address, parted by `|`. */
export function register(name: string, widget: Widget, keys = "$"): void {
  WIDGETS.set(name, widget);
  KEYS.set(name, new RegExp(`^(${keys})$`));
}
