/** Interactive parts of a page. The static page says where they stand: `<div data-widget="timeline" data-block="timeline/0">`. */
import type { ComponentType } from "preact";
import type { Blocks } from "../data/blocks";
import type { Route } from "../shell/router";

/** What every widget is given. */
export interface WidgetProps {
  /** The page's data. */
  readonly blocks: Blocks;
  /** The `data-…` attributes of the place where it stands. */
  readonly place: Readonly<Record<string, string | undefined>>;
  /** Where the reader is; changes when the address does. */
  readonly route: Route;
}

/** A widget. */
export type Widget = ComponentType<WidgetProps>;
