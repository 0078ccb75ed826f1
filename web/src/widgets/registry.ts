/** All widgets by the name that the static page calls them. */
import type { Widget } from "./widget";

export const WIDGETS: Readonly<Record<string, Widget>> = {};
